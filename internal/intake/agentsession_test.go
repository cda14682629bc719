package intake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestWhatAnAgentTellsOfItsSessionIsKept(t *testing.T) {
	r := newRecords(t)
	const whole = `{"agent":{"name":"n","version":"1"},"mode":{"current":"ask","choices":[{"id":"ask","name":"Ask"},{"id":"code"}]},
		"model":{"current":"small","choices":[{"id":"small"},{"id":"big"}]},"options":[{"id":"fast","type":"boolean","current":"false","extra":{"x":1}}]}`
	agent := &domain.AgentInfo{Name: "n", Version: "1"}
	modes := []domain.Choice{{ID: "ask", Name: "Ask"}, {ID: "code"}}
	models := &domain.Selection{Current: "small", Choices: []domain.Choice{{ID: "small"}, {ID: "big"}}}
	options := []domain.AgentOption{{ID: "fast", Type: "boolean", Current: "false", Extra: []byte(`{"x":1}`)}}
	commands := []domain.AgentCommand{{Name: "review", InputHint: "what"}}
	part := func(s domain.AgentSession) []domain.Payload {
		return []domain.Payload{domain.AgentSessionChanged{AgentSession: s}}
	}
	for _, c := range []struct {
		kind, data string
		want       []domain.Payload
	}{
		{catalog.EventSession, whole, part(domain.AgentSession{Agent: agent, Modes: &domain.Selection{Current: "ask", Choices: modes}, Models: models, Options: options})},
		{catalog.EventSession, whole, nil},
		{catalog.EventMode, `{"current":"ask","available":["ask","code"],"choices":[{"id":"ask","name":"Ask"},{"id":"code"}]}`, []domain.Payload{
			domain.AgentModeChanged{Mode: "ask", Modes: []string{"ask", "code"}, Choices: modes},
		}},
		{catalog.EventSession, `{"commands":[{"name":"review","input_hint":"what"}]}`, part(domain.AgentSession{Commands: commands})},
		{catalog.EventSession, `{"info":{"title":"A title","updated_at":"now"}}`, part(domain.AgentSession{Info: &domain.SessionInfo{Title: "A title", Updated: "now"}})},
		{catalog.EventSession, `{"mode":{"current":"code"}}`, part(domain.AgentSession{Modes: &domain.Selection{Current: "code", Choices: modes}})},
		{catalog.EventMode, `{"current":"code","available":["ask","code"]}`, []domain.Payload{domain.AgentModeChanged{Mode: "code", Modes: []string{"ask", "code"}}}},
		{catalog.EventMode, `{"current":"code"}`, []domain.Payload{domain.AgentModeChanged{Mode: "code"}}},
		{catalog.EventSession, `{"options":[]}`, part(domain.AgentSession{Options: []domain.AgentOption{}})},
	} {
		assert.Equal(t, c.want, r.report(t, c.kind, c.data), c.data)
	}
	seen, err := r.store.AgentSession(t.Context(), r.turn.Session)
	require.NoError(t, err)
	assert.Equal(t, domain.AgentSession{
		Agent: agent, Modes: &domain.Selection{Current: "code", Choices: modes}, Models: models, Options: []domain.AgentOption{}, Commands: commands,
		Info: &domain.SessionInfo{Title: "A title", Updated: "now"},
	}, seen.AgentSession)
	turn, err := r.store.Turn(t.Context(), r.turn.ID)
	require.NoError(t, err)
	assert.Equal(t, []string{"code", "small"}, []string{turn.AgentMode, turn.Model})
	assert.Equal(t, 2, r.reconsidered, "each time it was in another mode")
	assert.Equal(t, 2, r.changed)
}

// Third-party executors report modes only by their ids.
func TestModesWithoutNames(t *testing.T) {
	r := newRecords(t)
	r.report(t, catalog.EventMode, `{"current":"plan","available":["plan","build"]}`)
	seen, err := r.store.AgentSession(t.Context(), r.turn.Session)
	require.NoError(t, err)
	assert.Equal(t, &domain.Selection{Current: "plan", Choices: []domain.Choice{{ID: "plan"}, {ID: "build"}}}, seen.Modes)
}

func TestAnEventCarriesNoMoreThanItCan(t *testing.T) {
	r := newRecords(t)
	var commands []string
	for i := range 2000 {
		commands = append(commands, fmt.Sprintf(`{"name":"c%d","description":%q}`, i, strings.Repeat("x", 100)))
	}
	got := r.report(t, catalog.EventSession, `{"mode":{"current":"ask"},"commands":[`+strings.Join(commands, ",")+`]}`)
	assert.Equal(t, []domain.Payload{domain.AgentSessionChanged{AgentSession: domain.AgentSession{Modes: &domain.Selection{Current: "ask"}}, Truncated: true}}, got)
	seen, err := r.store.AgentSession(t.Context(), r.turn.Session)
	require.NoError(t, err)
	assert.Len(t, seen.Commands, 2000, "all of it is kept")
}
