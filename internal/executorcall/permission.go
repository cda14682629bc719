package executorcall

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// RequestPermission asks, by the policy first and then a person, whether a tool of
// the run may run that the token is for.
func (c *Calls) RequestPermission(ctx context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	token, err := c.TokenOf(ctx, p.SessionToken, p.TaskID)
	if err != nil {
		return catalog.RequestPermissionResult{}, err
	}
	p = c.opts.Keys.WithoutKeys(p, token.Thread)
	if len(p.Unasked) > 0 {
		return c.opts.Approvals.CheckUnasked(ctx, token.Run, p)
	}
	c.opts.Reports.EndMessage(ctx, token.Run)
	result, err := c.opts.Approvals.Ask(ctx, token.Run, p)
	if err != nil || result.ApprovalID == "" {
		return result, err
	}
	// Should the run not be found, its answers count as taken when it completes.
	if run, err := c.opts.Store.Run(ctx, token.Run); err == nil && !c.opts.Agents.ConfirmsAnswers(run.Agent) {
		c.opts.Reports.Answered(token.Run, result.ApprovalID)
	}
	return result, nil
}
