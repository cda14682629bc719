//go:build unix

package executor_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

// silences returns the reports of the agent's silence.
func (h *hub) silences(t *testing.T) (all []catalog.Silence) {
	t.Helper()
	for _, data := range h.data(catalog.EventSilence) {
		var s catalog.Silence
		require.NoError(t, json.Unmarshal([]byte(data), &s))
		all = append(all, s)
	}
	return all
}

func TestSilentAgentIsReported(t *testing.T) {
	for words, want := range map[string]catalog.Silence{
		"mutter": {Note: "API error 500, trying again"},
		"retry":  {Note: "Reconnecting... 1/5: high demand"},
		"dangle": {Note: "API error 500, trying again", ToolID: "t1", Tool: "Look into it"},
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			x := newExecutor(t, h, executor.Options{SilentAfter: 300 * time.Millisecond, SilentToolAfter: 300 * time.Millisecond})
			began := time.Now()
			go func() {
				h.Await(t, func() bool { // it may be slow to start, too
					all := h.silences(t)
					return len(all) > 0 && all[len(all)-1].Note == want.Note
				}, "that it is silent")
				x.StopTask(t.Context(), catalog.StopTaskParams{TaskID: "task-1"})
			}()
			result := execute(t, x, prompt(t, "plain", words))
			assert.Equal(t, catalog.StatusCancelled, result.Status)
			all := h.silences(t)
			last := all[len(all)-1]
			assert.True(t, last.Ended)
			assert.WithinRange(t, time.UnixMilli(last.SinceMS), began, time.Now())
			last.SinceMS, last.Ended = 0, false
			assert.Equal(t, want, last)
			types := h.types()
			assert.Equal(t, []string{"agent_silent", "content_block_delta"}, types[len(types)-2:], "its end comes before what ended it")
		})
	}
}
