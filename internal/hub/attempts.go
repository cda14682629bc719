package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// Attempts are sessions that begin with the same prompt and the same commit, each in a worktree of
// its own. They have the same [domain.Settings.Attempts]; nothing else is stored.

// MaxAttempts is how many attempts one prompt can have.
const MaxAttempts = 10

// LaunchAttempts launches a prompt once for each choice of an agent: all of them or none. spec must not
// name an agent, its settings, an id or a worktree.
func (h *Hub) LaunchAttempts(
	ctx context.Context, spec LaunchSpec, choices []AgentChoice,
) ([]domain.TurnInSession, error) {
	if n := len(choices); n < 2 || n > MaxAttempts {
		return nil, domain.Invalid("agents", fmt.Sprintf("2 to %d agents", MaxAttempts), fmt.Sprint(n))
	}
	for i, choice := range choices {
		agent, err := h.configured.AgentFor(clientenv.IsRestricted(ctx), choice.Agent)
		if err != nil {
			return nil, err
		}
		choices[i].Agent = agent.Name
	}
	spec.Settings.Attempts, spec.Worktree, spec.Draft = uuid.NewString(), new(true), true
	var drafts []domain.TurnInSession
	drop := func() {
		for _, s := range drafts {
			if _, err := h.Delete(context.WithoutCancel(ctx), s.HumanLayerSession); err != nil {
				h.log.Warn("an attempt that was not launched stays as a draft",
					"session", s.HumanLayerSession, "err", err)
			}
		}
	}
	for _, choice := range choices {
		one := spec
		one.Agent, one.Mode, one.Model, one.Settings.Options = choice.Agent, choice.Mode, choice.Model, choice.Options
		s, err := h.Launch(ctx, one)
		if err != nil {
			drop()
			return nil, err
		}
		drafts = append(drafts, s)
		if spec.Base == "" {
			if w, found := h.Worktree(s.Session.CWD); found {
				_, created, err := h.openWorktree(ctx, w, !clientenv.IsRestricted(ctx))
				if err != nil {
					drop()
					return nil, err
				}
				spec.Base = created.Base
			}
		}
	}
	err := h.write(ctx, func(t store.Tx) error {
		for _, s := range drafts {
			turn, err := t.Turn(h.ctx, s.Turn.ID)
			if err != nil {
				return err
			}
			if err := h.launchDraft(ctx, t, &turn, ContinueSpec{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		drop()
		return nil, err
	}
	for i, s := range drafts {
		if drafts[i], err = h.query.ByTurn(ctx, s.Turn.ID); err != nil {
			return nil, err
		}
	}
	return drafts, nil
}

// An Attempt is one of several sessions with the same prompt.
type Attempt struct {
	Turn  domain.TurnInSession // the last turn
	Usage domain.Usage         // of the session
	// Changes are those since the common commit.
	Changes worktree.Changes
	Gone    bool  // the worktree is deleted
	Err     error // why the changes are not known, or nil
}

// Attempts returns the attempts that a session belongs to, or those with the id set, in the order of their launch. patch
// says how many bytes of each patch are returned. The error is of KindNoAttempts if there are none.
func (h *Hub) Attempts(ctx context.Context, id, set string, patch int, now time.Time) ([]Attempt, error) {
	var turns []domain.TurnInSession
	var err error
	if set == "" {
		turns, err = h.attemptsWith(ctx, id)
	} else if turns, err = h.attemptsOf(ctx, set); err == nil && len(turns) == 0 {
		err = domain.Errorf(domain.KindNoAttempts, "no session is one of the attempts %q", set)
	}
	if err != nil {
		return nil, err
	}
	of, err := h.opts.Project.OpenWorktrees(ctx, !clientenv.IsRestricted(ctx))
	if err != nil {
		return nil, WorktreeError(err)
	}
	list, err := of.List(ctx)
	if err != nil {
		return nil, WorktreeError(err)
	}
	attempts := make([]Attempt, len(turns))
	for i, s := range turns {
		a := &attempts[i]
		a.Turn = s
		if a.Usage, _, err = h.query.Usage(ctx, domain.UsageFilter{Session: s.Session.ID}, "", now); err != nil {
			return nil, err
		}
		top, _ := h.Worktree(s.Session.CWD)
		j := slices.IndexFunc(list, func(w worktree.Worktree) bool { return w.Top == top })
		if a.Gone = j < 0 || h.lostWorktree(s.Session); !a.Gone {
			a.Changes, a.Err = of.Changes(ctx, list[j], patch)
		}
	}
	return attempts, nil
}

// attemptsWith returns the last turns of the attempts that a session belongs to, the one that was
// launched first at the beginning.
func (h *Hub) attemptsWith(ctx context.Context, id string) (list []domain.TurnInSession, err error) {
	one, err := h.query.Turn(ctx, id)
	if err != nil {
		return nil, stored(err)
	}
	set := one.Session.Settings.Attempts
	if set == "" || h.opts.WorktreesDir == "" {
		return nil, domain.Errorf(domain.KindNoAttempts,
			"%s is not one of several attempts: duet-rpc prompt --agents begins them", one.Label())
	}
	return h.attemptsOf(ctx, set)
}

func (h *Hub) attemptsOf(ctx context.Context, set string) (list []domain.TurnInSession, err error) {
	err = h.everyLeaf(ctx, func(s domain.TurnInSession) {
		if s.Session.Settings.Attempts == set {
			list = append(list, s)
		}
	})
	slices.SortFunc(list, func(a, b domain.TurnInSession) int { return int(a.Session.ID - b.Session.ID) })
	return list, err
}

// ChooseSpec says which attempt is landed, and how.
type ChooseSpec struct {
	LandSpec
	// Interrupt ends the attempts that still work. Without it they are an error of KindBadState.
	Interrupt bool
}

// Chosen is the result of [Hub.Choose].
type Chosen struct {
	Landed    worktree.Landed
	Discarded []DiscardedAttempt // the others
}

// A DiscardedAttempt is an attempt that was not chosen.
type DiscardedAttempt struct {
	Turn domain.TurnInSession
	DiscardedWorktree
	Err error // why its worktree stays, or nil
}

// Choose lands an attempt and then discards the worktrees of the others. Work that is not landed is kept
// as in [Hub.DiscardWorktree] with force. If landing fails, nothing is discarded; its errors are those of
// [Hub.Land].
func (h *Hub) Choose(ctx context.Context, spec ChooseSpec) (c Chosen, err error) {
	chosen, err := h.query.Turn(ctx, spec.Turn)
	if err != nil {
		return c, stored(err)
	}
	all, err := h.attemptsWith(ctx, spec.Turn)
	if err != nil {
		return c, err
	}
	if _, err := h.findWorktree(ctx, spec.Turn); err != nil {
		return c, err
	}
	others := slices.DeleteFunc(all, func(s domain.TurnInSession) bool {
		return s.Session.ID == chosen.Session.ID || h.lostWorktree(s.Session)
	})
	working, err := h.stillWorking(ctx, others)
	if err != nil {
		return c, err
	}
	if len(working) > 0 && !spec.Interrupt {
		return c, domain.Errorf(domain.KindBadState,
			"other attempts still work (%s): wait for their end, or have them interrupted", strings.Join(working, ", "))
	}
	if c.Landed, err = h.Land(ctx, spec.LandSpec); err != nil {
		return c, err
	}
	for _, s := range others {
		d := DiscardedAttempt{Turn: s}
		if slices.Contains(working, s.Name()) {
			d.Err = h.interruptAndAwait(ctx, s)
		}
		if d.Err == nil {
			d.DiscardedWorktree, d.Err = h.DiscardWorktree(ctx, s.HumanLayerSession, true)
		}
		c.Discarded = append(c.Discarded, d)
	}
	return c, nil
}

// stillWorking returns the turns that have not ended, or whose gates are checked.
func (h *Hub) stillWorking(ctx context.Context, list []domain.TurnInSession) (names []string, err error) {
	turns := make([]int64, len(list))
	for i, s := range list {
		turns[i] = s.Turn.ID
	}
	gates, err := h.gates.OfAll(ctx, turns)
	for _, s := range list {
		if gates := gates[s.Turn.ID]; !s.State.Ended() || gates.State == domain.LoopChecking {
			names = append(names, s.Name())
		}
	}
	return names, err
}

// interruptAndAwait ends a session's turns.
func (h *Hub) interruptAndAwait(ctx context.Context, s domain.TurnInSession) error {
	_, err := h.Interrupt(ctx, s.HumanLayerSession, "not_chosen")
	var known *domain.Error
	if errors.As(err, &known) && known.Kind == domain.KindNotCancellable { // it has ended meanwhile
		err = nil
	}
	if err == nil {
		_, err = h.Await(ctx, s.HumanLayerSession)
	}
	return err
}
