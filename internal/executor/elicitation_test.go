//go:build unix

package executor_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

func TestElicitationForm(t *testing.T) {
	for want, answer := range map[string]catalog.RequestPermissionResult{
		`answer {"action":"accept","content":{"port":80}}`: {Approved: true, Content: json.RawMessage(`{"port":80}`), ApprovalID: "a1"},
		`answer {"action":"decline"}`:                      {Reason: "user_denied"},
		`answer {"action":"cancel"}`:                       {Cancelled: true, Dismissed: true},
	} {
		h, x := hubAndExecutor(t)
		h.answers(answer, nil)
		completes(t, x, prompt(t, "plain", "form"))
		assert.Equal(t, want, h.text())
		q := h.asked[0]
		assert.Equal(t, []string{"t9", "Where to?", "form", "", ""}, []string{q.ToolUseID, q.Title, q.Elicitation.Mode, q.Elicitation.URL, q.ToolName})
		assert.JSONEq(t, `{"type":"object","properties":{"port":{"type":"integer"}},"required":["port"]}`, string(q.Elicitation.Schema))
		if answer.ApprovalID != "" {
			assert.Equal(t, []string{`{"approval_ids":["a1"]}`}, h.data("permission_taken"))
		}
		assert.Empty(t, h.data("elicitation_done"), "a form has no such end")
	}
}

func TestElicitationURL(t *testing.T) {
	h, x := hubAndExecutor(t)
	h.answers(catalog.RequestPermissionResult{Approved: true, ApprovalID: "a1"}, nil)
	execute(t, x, prompt(t, "plain", "link"))
	assert.Equal(t, `answer {"action":"accept"}`, h.text())
	assert.Equal(t, catalog.Elicitation{Mode: "url", URL: "https://example.com/in", ID: "e1"}, *h.asked[0].Elicitation)
	assert.Equal(t, []string{`{"approval_id":"a1"}`}, h.data("elicitation_done"))
}

// A cancelled turn reaches the agent before the missing answer to its question: otherwise the
// agent would go on without the answer.
func TestTurnIsCancelledBeforeItsQuestion(t *testing.T) {
	for name, decide := range map[string]func(context.Context) (catalog.RequestPermissionResult, error){
		"the executor is told first": func(ctx context.Context) (catalog.RequestPermissionResult, error) {
			<-ctx.Done()
			return catalog.RequestPermissionResult{}, ctx.Err()
		},
		"the question is closed first": func(context.Context) (catalog.RequestPermissionResult, error) {
			return catalog.RequestPermissionResult{Cancelled: true}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, x := hubAndExecutor(t)
			ctx, cancel := context.WithCancel(t.Context())
			h.decide = func(of context.Context, _ catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
				time.AfterFunc(50*time.Millisecond, cancel) // at any moment
				return decide(of)
			}
			result := must(x.ExecutePrompt(ctx, prompt(t, "plain", "asked")))(t)
			assert.Equal(t, catalog.StatusCancelled, result.Status)
			assert.Equal(t, "session/cancel", h.text())
		})
	}
}

// An agent's report that the task at a URL is done closes its question, even without an answer of
// the user.
func TestCompletedURLClosesItsQuestion(t *testing.T) {
	p := prompt(t, "plain", "linkdone")
	asked := namedPipe(t, p.CWD, "asked")
	h, x := hubAndExecutor(t)
	h.decide = func(ctx context.Context, _ catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
		assert.NoError(t, os.WriteFile(asked, nil, 0o600), "the agent waits for this write")
		<-ctx.Done()
		return catalog.RequestPermissionResult{}, ctx.Err()
	}
	execute(t, x, p)
	assert.Equal(t, `answer {"action":"accept"}`, h.text())
}

func TestInvalidElicitationsAreRefused(t *testing.T) {
	h, x := hubAndExecutor(t)
	execute(t, x, prompt(t, "plain", "voice"))
	assert.Empty(t, h.asked)
	assert.Contains(t, h.text(), "-32602")
	assert.Contains(t, h.text(), `there is no mode \"voice\", only form and url`)
	assert.Equal(t, []string{"PERMISSION_FAILED"}, h.codes())
}
