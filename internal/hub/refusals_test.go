package hub

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/query"
)

var othersToken = domain.Errorf(domain.KindInvalidToken, "the session token is that of another conversation")

// A question answered after more than a day resumes the run as if answered at once.
func TestAQuestionMayWaitForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
			x.say("before ")
			first := x.ask(ctx, "Write", map[string]string{"file_path": "a"})
			x.say(verdictText(first) + " ")
			x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "call-" + x.p.TaskID, Status: "completed", Result: json.RawMessage(`"done"`)})
			x.say(verdictText(x.ask(ctx, "Write", map[string]string{"file_path": "b"})))
			return completed
		}, withoutPolling)
		s := launch(t, h, "p")
		for range 2 {
			a := pendingOf(t, h, 1)[0]
			time.Sleep(25 * time.Hour)
			inState(t, h, s, domain.WaitingInput)
			approve(t, h, a, "")
		}
		s = await(t, h, s)
		assert.Equal(t, domain.Completed, s.State, s.Error)
		assert.Equal(t, "before yes user_approved yes user_approved", wholeText(t, h, s))
	})
}

// wholeText returns all text that the agent produced in a run.
func wholeText(t *testing.T, h *Hub, s domain.Session) (text string) {
	t.Helper()
	c, err := h.query.Conversation(context.Background(), s.UUID, query.Page{})
	require.NoError(t, err)
	for _, e := range c.Entries {
		if e.Kind == domain.ItemMessage && e.Role == "assistant" {
			text += e.Content
		}
	}
	return text
}

// A run with a refused report does not complete, whatever the reason.
func TestARunWhoseReportsAreRefusedDoesNotComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send := func(x *turn, p catalog.ReportMessageParams) {
			p.SessionToken, p.TaskID = x.p.SessionToken, x.p.TaskID
			_ = x.daemon.ReportMessage(context.Background(), p)
		}
		var h *Hub
		why := map[string]func(*turn){
			"a delta that is none": func(x *turn) {
				send(x, catalog.ReportMessageParams{EventType: catalog.EventContentDelta, EventData: json.RawMessage(`{"delta":7}`)})
			},
			"a change of no file": func(x *turn) {
				send(x, catalog.ReportMessageParams{EventType: catalog.EventFileChange, EventData: json.RawMessage(`{}`)})
			},
			"a tool call that is none": func(x *turn) {
				send(x, catalog.ReportMessageParams{EventType: catalog.EventToolCall, EventData: json.RawMessage(`[]`)})
			},
			"one that came too late": func(x *turn) {
				numbered(x, 3)
				time.Sleep(300*time.Millisecond + time.Millisecond)
				numbered(x, 2)
			},
			"told by who knows whose executor it is": func(x *turn) { h.Intake().ReportRefused(x.p.TaskID, othersToken) },
		}
		h = openHub(t, database(t), func(_ context.Context, x *turn) catalog.ExecutePromptResult {
			x.n = 10
			x.say("before")
			if do := why[x.p.Prompt]; do != nil {
				do(x)
			}
			x.say(" after")
			switch x.p.Prompt {
			case "it failed anyway":
				h.Intake().ReportRefused(x.p.TaskID, othersToken)
				return catalog.ExecutePromptResult{Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: "OWN", Message: "own"}}
			case "another's":
				h.Intake().ReportRefused("of nobody", othersToken)
			case "twice":
				numbered(x, 11, 11)
			}
			return completed
		})
		for prompt := range why {
			s := await(t, h, launch(t, h, prompt))
			assert.Equal(t, domain.Failed, s.State, prompt)
			assert.Equal(t, intake.CodeOutputMissing, s.ErrorCode, prompt)
			assert.Contains(t, s.Error, "output is missing", prompt)
			assert.Contains(t, wholeText(t, h, s), "after", "the rest is there: %s", prompt)
		}
		s := await(t, h, launch(t, h, "it failed anyway"))
		assert.Equal(t, "OWN", s.ErrorCode)
		for _, prompt := range []string{"another's", "twice"} {
			s = await(t, h, launch(t, h, prompt))
			assert.Equal(t, domain.Completed, s.State, prompt)
		}
	})
}
