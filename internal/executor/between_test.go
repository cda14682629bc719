//go:build unix

package executor_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

// settingsBetween returns the settings after all reports between turns.
func (h *hub) settingsBetween() (now catalog.Session) {
	h.Lock()
	defer h.Unlock()
	for _, p := range h.between {
		now.Mode, now.Info = cmp.Or(p.Session.Mode, now.Mode), cmp.Or(p.Session.Info, now.Info)
		if p.Session.Commands != nil {
			now.Commands = p.Session.Commands
		}
	}
	return now
}

// titled reports whether the session had that title.
func (h *hub) titled(title string) bool {
	h.Lock()
	defer h.Unlock()
	return slices.Contains(h.titles, title)
}

// Updates after a turn are reported while no prompt runs.
func TestReportsBetweenTurns(t *testing.T) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{})
	p := prompt(t, "choosy", "later 1 gate")
	gate := filepath.Join(p.CWD, "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	assert.Equal(t, catalog.StatusCompleted, execute(t, x, p).Status)
	assert.Empty(t, h.settingsBetween())
	open, err := os.OpenFile(gate, os.O_WRONLY, 0) // the turn is over, and the agent waits for this
	require.NoError(t, err)
	defer open.Close()
	h.Await(t, func() bool { return h.settingsBetween().Mode != nil }, "the agent's mode")
	assert.Equal(t, catalog.Session{
		Mode:     &catalog.Selection{Current: "code", Choices: now(t, h).Mode.Choices},
		Commands: []domain.AgentCommand{{Name: "late"}}, Info: &domain.SessionInfo{Title: "000001"},
	}, h.settingsBetween())
	for _, p := range h.between {
		assert.Equal(t, []string{"s", "task-1"}, []string{p.SessionID, p.TaskID})
	}
}

// A conversation without an id ends with its prompt, so nothing is reported of it.
func TestNoReportsWithoutAConversation(t *testing.T) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{})
	p := prompt(t, "choosy", "later 1000")
	p.SessionID = ""
	execute(t, x, p)
	x.Close(t.Context())
	assert.Empty(t, h.between)
}

// The executor reports an agent's frequent title changes twice a second, and the last one in any
// case. Package acp tests the interval.
func TestFrequentTitlesAreLimited(t *testing.T) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{})
	execute(t, x, prompt(t, "choosy", "later 5000"))
	h.Await(t, func() bool { return h.titled("005000") }, "the last title")
	h.Lock()
	defer h.Unlock()
	assert.Less(t, len(h.between), 100, "a hundred reports would take 50 s")
}

// Reports between two turns come before those of the next turn.
func TestNextTurnFollowsEarlierReports(t *testing.T) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{})
	for i := range 20 {
		p := prompt(t, "choosy", "later 50")
		p.CWD, p.Launch.Root = "/", "/" // so that the agent is the same
		p.TaskID = "task-" + strings.Repeat("i", i+1)
		require.Equal(t, catalog.StatusCompleted, execute(t, x, p).Status)
	}
	h.Await(t, func() bool { return h.titled("001000") }, "the last title")
	h.Lock()
	defer h.Unlock()
	assert.True(t, slices.IsSorted(h.titles), "%v", h.titles)
	for i := 1; i < len(h.between); i++ {
		assert.LessOrEqual(t, h.between[i-1].TaskID, h.between[i].TaskID)
	}
}
