package main

import (
	"context"

	"github.com/duet-rpc/duet-rpc/client"
)

// tellLeftOpen tells of what earlier turns of a conversation have asked and
// nobody has answered: the turn that begins closes it, unless it asks it again.
func tellLeftOpen(ctx context.Context, c *client.Client, thread string, view *promptView) {
	open, _, err := openApprovals(ctx, c, "")
	if err != nil { // what follows needs the hub as well, and says so
		return
	}
	for _, a := range open {
		if !a.Stale || a.ThreadID != thread {
			continue
		}
		view.aside("? "+a.asks(), bold)
		if a.Reopened != "" {
			view.note(a.Reopened)
		}
		view.note("asked before this turn; answer with: duet-rpc approvals approve " + shortest(a.ID, open) + ", or let this turn go on without it")
	}
}
