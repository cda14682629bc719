package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// reports records what the hub receives.
type reports struct {
	task.Hub
	events []catalog.ReportMessageParams
}

func (r *reports) ReportMessage(_ context.Context, p catalog.ReportMessageParams) error {
	r.events = append(r.events, p)
	return nil
}

// Changes between two prompts, or during a replay of the session, are reported with the next
// prompt.
func TestUnreportedSettingsAreReportedLater(t *testing.T) {
	hub := &reports{}
	turn := newTurn(task.New(t.Context(), t.Context(), hub, slog.New(slog.DiscardHandler), catalog.ExecutePromptParams{TaskID: "t", Launch: &catalog.AgentLaunch{}}), Options{})
	defer turn.Close()
	a := &agent{}
	a.update(nil, []byte(`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"review"},17,{"description":"no name"}]}`), false)
	a.current.Store(turn)
	a.loading.Store(true)
	a.update(nil, []byte(`{"sessionUpdate":"current_mode_update","currentModeId":"code"}`), false)
	a.update(nil, []byte(`{"sessionUpdate":"config_option_update","configOptions":"what"}`), false)
	a.update(nil, []byte(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"replayed"}}`), false)
	assert.Empty(t, hub.events)
	a.reportSettings(turn)
	require.Len(t, hub.events, 2)
	var reported catalog.Session
	require.NoError(t, json.Unmarshal(hub.events[0].EventData, &reported))
	assert.Equal(t, catalog.Session{Mode: &catalog.Selection{Current: "code"}, Commands: []domain.AgentCommand{{Name: "review"}}}, reported)
	assert.Equal(t, catalog.EventMode, hub.events[1].EventType)
	a.reportChanged()
	assert.Len(t, hub.events, 2, "it is reported once")
}

// A message that stands for a change of the mode is not shown as a message.
func TestModeMessageIsNotShown(t *testing.T) {
	hub := &reports{}
	turn := newTurn(task.New(t.Context(), t.Context(), hub, slog.New(slog.DiscardHandler), catalog.ExecutePromptParams{TaskID: "t", Launch: &catalog.AgentLaunch{}}), Options{})
	a := &agent{}
	a.settings.Introduced(&domain.AgentInfo{Name: "gemini-cli"}, domain.PromptTakes{})
	a.settings.Opened(readOffer([]byte(`{"modes":{"currentModeId":"plan","availableModes":[{"id":"plan"},{"id":"default"}]}}`)), true)
	a.current.Store(turn)
	a.update(nil, []byte(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"[MODE_UPDATE] default"}}`), false)
	a.update(nil, []byte(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a message"}}`), false)
	turn.Close()
	var text strings.Builder
	for _, e := range hub.events {
		text.Write(e.EventData)
	}
	assert.Equal(t, "default", a.settings.Session().Mode.Current)
	assert.NotContains(t, text.String(), "MODE_UPDATE")
	assert.Contains(t, text.String(), "a message")
}

// sessions records the reports between two turns, with their times.
type sessions struct {
	Hub
	mu     sync.Mutex // guards the fields below
	titles []string
	at     []time.Time
}

func (s *sessions) ReportSession(_ context.Context, p catalog.ReportSessionParams) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.titles = append(s.titles, p.Session.Info.Title)
	s.at = append(s.at, time.Now())
	return nil
}

// Title changes between two turns are reported at most twice a second: the first at once, and the
// last in any case.
func TestReportsBetweenTurnsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &sessions{}
		here, there := net.Pipe()
		a := &agent{driver: &Driver{ctx: t.Context(), hub: hub, log: slog.New(slog.DiscardHandler)}, changed: make(chan struct{}, 1)}
		a.conn = acp.NewConn(io.Discard, acp.Handler{})
		go a.conn.Read(here)
		a.last.Store(&lastTask{conversation: "s", task: "t"})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.reportBetweenTurns()
		}()
		began := time.Now()
		title := func(n int) {
			a.update(nil, fmt.Appendf(nil, `{"sessionUpdate":"session_info_update","title":"%d"}`, n), false)
		}
		for n := range 4800 {
			title(n)
			time.Sleep(time.Millisecond)
		}
		title(4800)
		there.Close()
		<-ended
		require.Len(t, hub.at, 11)
		for i, at := range hub.at[:10] {
			assert.Equal(t, time.Duration(i)*betweenReports, at.Sub(began))
		}
		assert.Equal(t, "4800", hub.titles[10])
		assert.Equal(t, 4800*time.Millisecond, hub.at[10].Sub(began), "the end of the agent waits for nothing")
	})
}
