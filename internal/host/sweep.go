package host

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// unbegun is a session whose start was cut off.
type unbegun struct {
	worktree.Session
	lock io.Closer
}

// Sweep looks for sessions of the project here whose process was killed while it started them on hosts. Drafts of attempts never
// run: Sweep deletes them on the hosts and on this machine, with the hosts that were made for them. It remembers a session that
// has begun, so that lists have it. What a host keeps that does not answer is for the next call.
func Sweep(ctx context.Context, s *hubprocess.Settings) {
	own := *s
	if own.Host != "" {
		own.Host, own.Root = "", own.Here
	}
	p, err := own.Project()
	if err != nil {
		return
	}
	ids := worktree.Unbegun(p.Root)
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hubprocess.LineWithin)
	defer cancel()
	repo, err := openWorktrees(ctx, p, true, nil)
	if err != nil {
		return
	}
	byHost := make(map[string][]unbegun)
	attempts := make(map[string]bool)
	for _, id := range ids {
		of, lock, found, err := repo.TakeUnbegun(ctx, id)
		if err != nil || !found {
			continue
		}
		defer lock.Close()
		byHost[of.Host] = append(byHost[of.Host], unbegun{of, lock})
		if of.Attempts != "" {
			attempts[of.Attempts] = true
		}
	}
	if len(attempts) > 0 { // first: without a record of a host it would not be looked for again
		if sweepHere(ctx, &own, p, attempts) != nil {
			return
		}
	}
	var sweeping sync.WaitGroup
	for name, list := range byHost {
		sweeping.Go(func() {
			there := own
			there.Host, there.Here, there.Root = name, own.Root, ""
			if a, err := OpenAway(ctx, &there); err == nil {
				a.sweep(ctx, list)
			}
		})
	}
	sweeping.Wait()
}

// sweepHere deletes the drafts of attempts on this machine.
func sweepHere(ctx context.Context, s *hubprocess.Settings, p project.Project, attempts map[string]bool) error {
	if !p.HasDatabase() {
		return nil
	}
	c, err := hubprocess.Dial(ctx, s, p)
	if hubprocess.MayComeYet(err) {
		if err = hubprocess.EnsureDaemon(ctx, s, p); err == nil {
			c, err = hubprocess.Dial(ctx, s, p)
		}
	}
	if err != nil {
		return err
	}
	defer c.Close()
	drafts, _, err := hubclient.Sessions(ctx, c, protocol.SessionListParams{Filter: "draft"})
	for _, draft := range drafts {
		if attempts[draft.Attempts] {
			if _, _, err := hubclient.SessionDelete(ctx, c, protocol.SessionRefParams{Session: protocol.Ref(draft.ID)}); err != nil {
				return err
			}
		}
	}
	return err
}

// sweep is Sweep of sessions on the host.
func (a *Away) sweep(ctx context.Context, list []unbegun) {
	for _, of := range a.over(ctx, list) {
		a.start = of.lock
		_ = a.Finish(ctx, of.ID, &protocol.DiscardResult{}) // otherwise the next call does
	}
}

// over returns the sessions of which the host has nothing any more.
func (a *Away) over(ctx context.Context, list []unbegun) []unbegun {
	if _, isThere := a.host.WasMade(); a.host.Of != "" && (!isThere || a.host.IsPartial()) {
		return list // none began there, or they went with it
	}
	c, err := a.host.Dial(ctx, hubprocess.StartIfUsed)
	if hubprocess.IsNeverUsed(err) || hubprocess.LacksProject(err) {
		return list
	}
	if err != nil {
		return nil
	}
	defer c.Close()
	return slices.DeleteFunc(list, func(of unbegun) bool { return !a.sweepOne(ctx, c, of) })
}

// sweepOne reports whether the host has nothing of a session any more.
func (a *Away) sweepOne(ctx context.Context, c *client.Client, of unbegun) bool {
	session, _, err := hubclient.Turn(ctx, c, of.ID)
	switch {
	case client.KindOf(err) == "not_found":
		return true
	case err != nil:
		return false
	case session.State == domain.Draft && session.Attempts != "":
		_, _, err := hubclient.SessionDelete(ctx, c, protocol.SessionRefParams{Session: protocol.Ref(of.ID)})
		return err == nil
	}
	_ = a.Note(ctx, session) // it has begun, or is a user's draft
	return false
}
