package handlers

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
	"github.com/duet-rpc/duet-rpc/server"
)

// worktreeOf describes the worktree of a session without a git process, or returns nil.
func worktreeOf(h *hub.Hub, of domain.Session) *protocol.WorktreeState {
	top, found := h.Worktree(of.CWD)
	if !found {
		return nil
	}
	_, err := os.Lstat(top)
	return &protocol.WorktreeState{Branch: worktree.BranchOf(top), Dir: top, Gone: errors.Is(err, os.ErrNotExist)}
}

func land(ctx context.Context, h *hub.Hub, p protocol.LandParams) (protocol.LandResult, error) {
	landed, err := h.Land(ctx, landSpec(p))
	return landResult(ctx, landed), withPaths(err)
}

func landSpec(p protocol.LandParams) hub.LandSpec {
	return hub.LandSpec{Turn: string(p.Session), Method: worktree.Method(cmp.Or(p.Method, "merge")), Into: p.Into, Message: p.Message}
}

func landResult(ctx context.Context, landed worktree.Landed) protocol.LandResult {
	r := protocol.LandResult{Branch: landed.Into, Commits: append(
		[]string{}, landed.Commits...,
	), Files: append([]string{}, landed.Files...), Nested: landed.Nested, Unfiltered: listing(landed.Unfiltered)}
	fitFiles(ctx, &r)
	return r
}

// fitFiles leaves out files that do not fit into the result.
func fitFiles(ctx context.Context, r *protocol.LandResult) {
	all := len(r.Files)
	for protocol.EncodedSize(r.Files) > protocol.Room(ctx)/2 {
		r.Files = r.Files[:len(r.Files)/2]
		r.More = all - len(r.Files)
	}
}

func saveWorktree(ctx context.Context, h *hub.Hub, p protocol.SaveParams) (protocol.SaveResult, error) {
	saved, err := h.SaveWorktree(ctx, string(p.Session), worktree.Author{Name: p.Name, Email: p.Email}, p.Landed)
	return protocol.SaveResult{Commit: saved.Commit, Name: saved.Name, Nested: saved.Nested}, err
}

func discard(ctx context.Context, h *hub.Hub, p protocol.DiscardParams) (protocol.DiscardResult, error) {
	done, err := h.DiscardWorktree(ctx, string(p.Session), p.Force)
	return discardResult(done), withLosses(err)
}

func discardResult(done hub.DiscardedWorktree) protocol.DiscardResult {
	return protocol.DiscardResult{Ref: done.Ref, BranchKept: done.BranchKept, Cleanup: done.CleanupError}
}

func checkAttempts(p protocol.StartAttemptsParams) error {
	return cmp.Or(protocol.NotEmpty("prompt", p.Prompt), checkAgentSettings(p.AgentSettings), checkContent(p.PromptContent),
		objectOrNone("metadata", p.Metadata))
}

func (s sessions) startAttempts(ctx context.Context, h *hub.Hub, p protocol.StartAttemptsParams) (protocol.StartAttemptsResult, error) {
	spec := launchSpec(protocol.StartParams{
		Prompt: p.Prompt, Title: p.Title, WorkingDir: p.WorkingDir, AgentSettings: p.AgentSettings, PromptContent: p.PromptContent,
		Priority: p.Priority, TimeoutMS: p.TimeoutMS, Gated: p.Gated, Metadata: p.Metadata,
	}, h)
	var choices []hub.AgentChoice
	for _, a := range p.Agents {
		choices = append(choices, hub.AgentChoice{Agent: a.Agent, Mode: a.Mode, Model: a.Model, Options: a.Options})
	}
	launchedAll, err := h.LaunchAttempts(ctx, spec, choices)
	r := protocol.StartAttemptsResult{Turns: []protocol.Started{}}
	for _, turn := range launchedAll {
		r.Turns = append(r.Turns, startedTurn(turn, protocol.DeliveredStarted))
	}
	return r, err
}

const (
	resultOfAttempt = 2000 // characters of the agent's last message
	filesOfAttempt  = 500
)

func (s sessions) attempts(ctx context.Context, h *hub.Hub, p protocol.AttemptsParams) (protocol.AttemptsResult, error) {
	patch := 0
	if p.Patch {
		patch = protocol.Room(ctx) / 4 / hub.MaxAttempts // JSON may double its length
	}
	r := protocol.AttemptsResult{Attempts: []protocol.Attempt{}}
	all, err := h.Attempts(ctx, string(p.Session), p.Attempts, patch, s.Now())
	if err != nil {
		return r, err
	}
	turns := make([]domain.TurnInSession, len(all))
	for i, a := range all {
		turns[i] = a.Turn
	}
	gates, err := allGates(ctx, h, turns)
	for _, a := range all {
		r.Prompt = protocol.Headline(a.Turn.FirstWords, resultOfAttempt)
		r.Attempts = append(r.Attempts, s.attempt(h, a, gates[a.Turn.Turn.ID]))
	}
	return r, err
}

func (s sessions) attempt(h *hub.Hub, a hub.Attempt, gates *protocol.Gates) protocol.Attempt {
	t := turnOf(a.Turn, h.Latest())
	r := protocol.Attempt{
		Name: t.Name, Session: t.Session, ID: t.ID, SessionUUID: t.SessionUUID, Agent: t.Agent, Model: t.Model,
		State: t.State, Error: protocol.Headline(t.Error, resultOfAttempt), Result: protocol.Headline(a.Turn.Result, resultOfAttempt),
		Usage: usageOf(a.Usage), Gates: gates, Worktree: worktreeOf(h, a.Turn.Session), Files: []protocol.FileChange{},
		Commits: a.Changes.Commits.Count, Landed: a.Changes.Landed, Patch: a.Changes.Patch, PatchCut: a.Changes.IsCut,
	}
	switch {
	case a.Gone:
		r.Unknown = "the worktree was discarded"
	case a.Err != nil:
		r.Unknown = a.Err.Error()
	}
	for i, f := range a.Changes.Files {
		r.Added += f.Added
		r.Removed += f.Removed
		if i < filesOfAttempt {
			r.Files = append(r.Files, protocol.FileChange{Path: f.Path, Added: f.Added, Removed: f.Removed, Binary: f.IsBinary})
		} else {
			r.More++
		}
	}
	return r
}

func chooseAttempt(ctx context.Context, h *hub.Hub, p protocol.ChooseAttemptParams) (protocol.ChooseAttemptResult, error) {
	chosen, err := h.Choose(ctx, hub.ChooseSpec{LandSpec: landSpec(p.LandParams), Interrupt: p.Interrupt})
	r := protocol.ChooseAttemptResult{LandResult: landResult(ctx, chosen.Landed), Discarded: []protocol.DiscardedAttempt{}}
	for _, d := range chosen.Discarded {
		one := protocol.DiscardedAttempt{
			Turn: d.Turn.Turn.Name(), TurnUUID: d.Turn.HumanLayerSession, Agent: d.Turn.Agent, DiscardResult: discardResult(d.DiscardedWorktree),
		}
		if d.Err != nil {
			one.Error = d.Err.Error()
		}
		r.Discarded = append(r.Discarded, one)
	}
	return r, withPaths(err)
}

// withPaths adds the paths to the error of a landing.
func withPaths(err error) error {
	data, _ := protocol.WorktreeErrorOf(err)
	return withData(err, data)
}

// withLosses adds the list of losses to an error.
func withLosses(err error) error {
	var loss *worktree.LossError
	if !errors.As(err, &loss) {
		return err
	}
	l := loss.Losses
	return withData(err, protocol.WorktreeError{Losses: &protocol.Losses{
		Commits: listing(l.Commits), Uncommitted: listing(l.Uncommitted), Untracked: listing(l.Untracked), Nested: listing(l.Nested),
		Ignored: listing(l.Ignored),
	}})
}

func listing(l worktree.Listing) *protocol.Listing {
	if l.Count == 0 {
		return nil
	}
	return &protocol.Listing{Count: l.Count, First: l.First}
}

func withData(err error, data protocol.WorktreeError) error {
	var e *domain.Error
	if !errors.As(err, &e) || len(data.Paths) == 0 && data.Losses == nil {
		return err
	}
	data.Kind = nativeFamily.Kind(e)
	return nativeFamily.WithData(err, data)
}

func registerAttempts(reg *server.Registry, d Domain, s sessions) {
	handle(reg, d, nativeFamily, "attempt.start", s.startAttempts, server.LongRunning(),
		server.Doc("Starts a session with the same prompt for each of several agents, all of them or none. Each has a git worktree of its own, "+
			"and all start from the commit that is checked out. attempt.list compares them, attempt.choose lands one and discards the others."))
	handle(reg, d, nativeFamily, "attempt.list", s.attempts, server.LongRunning(),
		server.Doc("Compares the attempts at the same prompt: their state, gates, changes, time and cost. data.kind is `no_attempts` if the "+
			"session is not one of several."))
	handle(reg, d, nativeFamily, "attempt.choose", chooseAttempt, server.LongRunning(),
		server.Doc("Lands the session's worktree as session.land does, and then discards the worktrees of the other attempts at the same "+
			"prompt as session.discard does with force. If landing fails, nothing is discarded."))
}
