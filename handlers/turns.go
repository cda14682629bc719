package handlers

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/sessionsettings"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerSessions registers the methods of the nouns session, turn and attempt (docs/protocol.md,
// "Sessions and turns"), and HumanLayer's over them.
func registerSessions(reg *server.Registry, d Domain, e *editors) {
	s := sessions{d, &editorFiles{readers: d.EditorFiles}, e}
	f := nativeFamily
	registerAttempts(reg, d, s)
	registerHumanLayer(reg, d, s)
	handle(reg, d, f, "session.start", s.start, server.Releasing(), // it may make a worktree
		server.Doc("Starts a session with its first prompt."))
	handle(reg, d, f, "session.prompt", s.prompt,
		server.Doc("Continues a session with another prompt. While the session works, the prompt waits, or reaches the agent during the turn (deliver). From a turn that has ended and is not the last of its session, it starts a fork. A draft is sent: it keeps its number, and the parameters replace its own. The new turn has the permissions of the turn before, but a fork never keeps a mode in which tools run without approval."))
	handle(reg, d, f, "session.fork", s.fork,
		server.Doc("Starts a session that shares the history of another one up to a turn, and continues it with a prompt."))
	handle(reg, d, f, "session.list", s.listSessions,
		server.Doc("Lists sessions by their last turns, the newest first. If not all fit, pass next_before as before to get more."))
	handle(reg, d, f, "session.get", s.get,
		server.Doc("Returns a session by its last turn, and its queued prompts, the next one first."))
	handle(reg, d, f, "session.rename", rename, server.Doc("Sets the title of a session."))
	handle(reg, d, f, "session.archive", s.archiveSessions, server.Doc("Archives sessions, or restores them. Those whose agent works in the background or goes on by itself are not archived. A prompt also restores its session."))
	handle(reg, d, f, "session.delete", s.delete, server.LongRunning(), // it runs the cleanup of a worktree
		server.Doc("Deletes a session with everything that only it uses. This cannot be undone. All clients get the event session_deleted. Refused while a turn of the session runs or its agent works in the background (`bad_state`). Turns from which other sessions were forked stay, archived. The session's worktree is deleted, too; if it has work that is not landed, nothing is deleted (`would_lose_work`, as for session.discard). The log keeps its numbers, without the deleted events."))
	handle(reg, d, f, "session.land", land, server.LongRunning(),
		server.Doc("Brings the changes in the session's worktree to a branch. Files that are not committed become a commit. If it fails, nothing is changed. data.kind: `conflict` (both sides have changed the files in data.paths), `overlap` (uncommitted files of the user are in the way, in data.paths), `bad_state` (a session works there, or another git operation is in progress), `no_worktree`, `worktree_failed`. data.more counts the paths that do not fit."))
	handle(reg, d, f, "session.discard", discard, server.LongRunning(),
		server.Doc("Deletes the session's worktree and its branch. The session stays; a fork continues it in the project's directory. Without force, work that is not landed is an error (`would_lose_work`), and data.losses lists it: commits, uncommitted, untracked, nested and ignored, each with count and first. Other values of data.kind: `bad_state` (a session works there), `no_worktree`, `worktree_failed`."))
	handle(reg, d, f, "turn.list", s.listTurns,
		server.Doc("Lists turns of all sessions or of one, the newest first. If not all fit, pass next_before as before to get more."))
	handle(reg, d, f, "turn.get", s.getTurn, server.Doc("Returns a turn, without the items of the conversation."))
	handle(reg, d, f, "turn.interrupt", s.interruptTurn,
		server.Doc("Interrupts a turn, also while it waits for input; a queued one is cancelled. The session can be continued. For a turn that has ended, this stops the background work of its agent. With background, it stops only that task, whether or not the turn has ended."))
	handle(reg, d, f, "turn.edit", editTurn, server.Doc("Changes the text of a queued prompt; its content blocks stay. A prompt that has started is refused (`bad_state`). All clients get the event queue_changed."))
	handle(reg, d, f, "turn.move", moveTurn, server.Doc("Moves a queued prompt within the queue of its session. A prompt that has started is refused (`bad_state`). All clients get the event queue_changed."))
}

func registerAttempts(reg *server.Registry, d Domain, s sessions) {
	handle(reg, d, nativeFamily, "attempt.start", s.startAttempts, server.LongRunning(),
		server.Doc("Starts a session with the same prompt for each of several agents, all of them or none. Each has a git worktree of its own, and all start from the commit that is checked out. attempt.list compares them, attempt.choose lands one and discards the others."))
	handle(reg, d, nativeFamily, "attempt.list", s.attempts, server.LongRunning(),
		server.Doc("Compares the attempts at the same prompt: their state, gates, changes, time and cost. data.kind is `no_attempts` if the session is not one of several."))
	handle(reg, d, nativeFamily, "attempt.choose", chooseAttempt, server.LongRunning(),
		server.Doc("Lands the session's worktree as session.land does, and then discards the worktrees of the other attempts at the same prompt as session.discard does with force. If landing fails, nothing is discarded."))
}

func (s sessions) listSessions(ctx context.Context, h *hub.Hub, p protocol.SessionListParams) (protocol.SessionsResult, error) {
	f := leavesFilter(p.Filter, p.Limit)
	turns, err := s.turns(ctx, h, string(p.Before), f)
	if err != nil {
		return protocol.SessionsResult{}, err
	}
	r := protocol.SessionsResult{Sessions: fit(turns, room(ctx))}
	if n := len(r.Sessions); mayHaveMore(n, len(turns), f) {
		r.NextBefore = r.Sessions[n-1].Name
	}
	return r, nil
}

func (s sessions) get(ctx context.Context, h *hub.Hub, p protocol.SessionRefParams) (protocol.GetSessionResult, error) {
	t, err := s.whole(ctx, h, string(p.Session))
	if err != nil {
		return protocol.GetSessionResult{}, err
	}
	waiting, err := h.Queued(ctx, string(p.Session))
	if err != nil {
		return protocol.GetSessionResult{}, err
	}
	one := []*protocol.Turn{t}
	fit(one, room(ctx)/2)
	return protocol.GetSessionResult{Session: *t, Queued: waitingPrompts(waiting, room(ctx)/2)}, nil
}

func rename(ctx context.Context, h *hub.Hub, p protocol.RenameSessionParams) (protocol.Empty, error) {
	_, err := h.Settings().Update(ctx, string(p.Session), sessionsettings.Change{Title: &p.Title})
	return protocol.Empty{}, err
}

// archiveSessions fails if the only session cannot be changed.
func (sessions) archiveSessions(ctx context.Context, h *hub.Hub, p protocol.ArchiveSessionsParams) (protocol.ArchiveSessionsResult, error) {
	r := protocol.ArchiveSessionsResult{Failed: []string{}}
	for _, session := range p.Sessions {
		if _, err := h.Settings().Update(ctx, string(session), archived(p.Archived)); err != nil {
			if len(p.Sessions) == 1 || hubKind(err) == "" || hubKind(err) == domain.KindUnavailable {
				return r, err
			}
			r.Failed = append(r.Failed, string(session))
		}
	}
	return r, nil
}

// waitingPrompts converts queued turns to at most most bytes.
func waitingPrompts(turns []domain.TurnInSession, most int) []*protocol.WaitingPrompt {
	prompts := make([]*protocol.WaitingPrompt, 0, len(turns))
	for _, t := range turns {
		prompts = append(prompts, &protocol.WaitingPrompt{Turn: t.Turn.Name(), TurnUUID: t.HumanLayerSession, Prompt: t.Prompt, CreatedAt: t.Turn.Created, Editable: t.IsWritten()})
	}
	prompts = fit(prompts, most)
	for n, p := range prompts {
		p.Truncated = p.Prompt != turns[n].Prompt
	}
	return prompts
}

func (s sessions) listTurns(ctx context.Context, h *hub.Hub, p protocol.ListTurnsParams) (protocol.TurnList, error) {
	f := domain.TurnFilter{Agent: p.Agent, Archived: p.Archived, Limit: pageSize(p.Limit, sessionsByDefault, sessionsAtMost)}
	for _, state := range p.States {
		f.States = append(f.States, domain.State(state))
	}
	if f.States == nil {
		f.States = protocol.SessionStatus("").States()
	}
	if p.Session != "" {
		of, err := h.Query().Turn(ctx, string(p.Session))
		if err != nil {
			return protocol.TurnList{}, err
		}
		f.Session = of.Session.ID
	}
	turns, err := s.turns(ctx, h, string(p.Before), f)
	if err != nil {
		return protocol.TurnList{}, err
	}
	r := protocol.TurnList{Turns: fit(turns, room(ctx))}
	if n := len(r.Turns); mayHaveMore(n, len(turns), f) {
		r.NextBefore = r.Turns[n-1].Name
	}
	return r, nil
}

func (s sessions) getTurn(ctx context.Context, h *hub.Hub, p protocol.TurnParams) (protocol.TurnResult, error) {
	t, err := s.whole(ctx, h, string(p.Turn))
	if err != nil {
		return protocol.TurnResult{}, err
	}
	one := []*protocol.Turn{t}
	fit(one, room(ctx))
	return protocol.TurnResult{Turn: *t}, nil
}

func (sessions) interruptTurn(ctx context.Context, h *hub.Hub, p protocol.InterruptTurnParams) (protocol.InterruptTurnResult, error) {
	t, err := interrupted(ctx, h, string(p.Turn), p.Background, p.Reason)
	if err != nil {
		return protocol.InterruptTurnResult{}, err
	}
	return protocol.InterruptTurnResult{Turn: t.Turn.Name(), State: string(t.State)}, nil
}

// interrupted interrupts a turn, or one of its agent's background tasks.
func interrupted(ctx context.Context, h *hub.Hub, id, background, reason string) (domain.TurnInSession, error) {
	if background != "" {
		return h.StopBackgroundTask(ctx, id, background)
	}
	return h.Interrupt(ctx, id, reason) // it also takes a turn that has not been started
}

func editTurn(ctx context.Context, h *hub.Hub, p protocol.EditTurnParams) (protocol.QueuedTurns, error) {
	if err := h.EditQueued(ctx, string(p.Turn), p.Prompt); err != nil {
		return protocol.QueuedTurns{}, err
	}
	return queuedWith(ctx, h, p.Turn)
}

func moveTurn(ctx context.Context, h *hub.Hub, p protocol.MoveTurnParams) (protocol.QueuedTurns, error) {
	if err := h.MoveQueued(ctx, string(p.Turn), string(p.Before)); err != nil {
		return protocol.QueuedTurns{}, err
	}
	return queuedWith(ctx, h, p.Turn)
}

func queuedWith(ctx context.Context, h *hub.Hub, turn protocol.Ref) (protocol.QueuedTurns, error) {
	turns, err := h.Queued(ctx, string(turn))
	return protocol.QueuedTurns{Queued: waitingPrompts(turns, room(ctx))}, err
}
