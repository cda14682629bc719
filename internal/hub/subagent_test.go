package hub

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
)

// A sub-agent's question names its call, whether the request or an earlier tool report names the
// sub-agent. Later subscribers get it too.
func TestAQuestionNamesItsSubAgent(t *testing.T) {
	for name, c := range map[string]struct{ reported, asked string }{
		"told before": {"task", ""},
		"asked":       {"", "task"},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
				if c.reported != "" {
					x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "call", Tool: "Bash", ParentID: c.reported})
				}
				_, _ = x.request(ctx, catalog.RequestPermissionParams{
					SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, ToolName: "Bash", ToolKind: "execute", ToolUseID: "call", ParentID: c.asked,
				})
				return completed
			})
			early := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventApprovalRequested}}, -1)
			s := launch(t, h, "p")
			a := pendingOf(t, h, 1)[0]
			late := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventApprovalRequested}}, -1)
			for _, heard := range []*collected{early, late} {
				heard.until(t, func() bool { return len(heard.all()) == 1 })
				assert.Equal(t, "task", heard.all()[0].Payload.(domain.ApprovalRequested).ParentID)
			}
			approve(t, h, a, "")
			await(t, h, s)
		})
	}
}
