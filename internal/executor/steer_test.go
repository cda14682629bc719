//go:build unix

package executor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// An agent with steering receives messages while it works. The executor reports each message before
// the output that reacts to it, and refuses messages to other agents.
func TestSteering(t *testing.T) {
	for name, c := range map[string]struct {
		kind, prompt string
		outcome      string
		reported     []string
	}{
		"injected":      {"steered", "heeds", catalog.SteerInjected, []string{"working, still", "> use the other file", "told use the other file"}},
		"refused":       {"steered", "refuses", catalog.SteerRefused, []string{"working, stilltold use the other file"}},
		"not supported": {"plain", "hang", catalog.SteerRefused, []string{"hanging"}},
		"version 2":     {"version2", "works", catalog.SteerRefused, []string{"works, cancelled"}}, // as claude, which does not know the method there
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, x := hubAndExecutor(t)
			p := prompt(t, c.kind, c.prompt)
			steer := func() string {
				r := must(x.Steer(context.Background(), catalog.SteerParams{TaskID: p.TaskID, Text: "use the other file"}))(t)
				return r.Outcome
			}
			assert.Equal(t, catalog.SteerRefused, steer(), "no agent works")
			done := executing(t, x, p)
			h.Await(t, func() bool { return h.text() != "" }, "the agent's first text")
			assert.Equal(t, c.outcome, steer())
			must(x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: p.TaskID}))(t)
			<-done
			assert.Equal(t, c.reported, h.dialogue())
			assert.Equal(t, catalog.SteerRefused, steer(), "the agent has stopped working")
		})
	}
}

// dialogue returns the agent's text and the steering messages, in order.
func (h *hub) dialogue() (list []string) {
	h.Lock()
	defer h.Unlock()
	said := ""
	for _, r := range h.reports {
		switch r.EventType {
		case catalog.EventContentDelta:
			said += deltaOf(r)
		case catalog.EventUserMessage:
			list = append(list, said, "> "+strings.Trim(strings.TrimPrefix(string(r.EventData), `{"text":`), `"}`))
			said = ""
		}
	}
	return append(list, said)
}
