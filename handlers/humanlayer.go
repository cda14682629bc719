package handlers

import (
	"cmp"
	"context"

	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/sessionsettings"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerSessions registers the methods that start, list and end sessions: the native ones, HumanLayer's,
// and those that still have HumanLayer's parameters.
func registerSessions(reg *server.Registry, d Domain, e *editors) {
	s := sessions{d, &editorFiles{readers: d.EditorFiles}, e}
	registerNative(reg, d, s)
	f := sessionFamily
	handle(reg, d, humanLayerFamily, "launchSession", s.launch, server.Releasing(), // it may make a worktree
		server.Doc("Starts a session: an agent runs a prompt in a new conversation."))
	handle(reg, d, humanLayerFamily, "listSessions", s.list,
		server.Doc("Lists sessions, the newest first. If not all fit, pass next_before as before to get more."))
	handle(reg, d, humanLayerFamily, "getSessionState", s.state, server.Doc("Returns a session without its conversation."))
	handle(reg, d, humanLayerFamily, "getSessionLeaves", s.leaves, server.Doc("Lists the last session of each conversation, the newest first."))
	handle(reg, d, humanLayerFamily, "continueSession", s.continues,
		server.Doc("Continues a session's conversation with another prompt. From the last session of the conversation, or one that has not ended, the prompt waits its turn there. From an earlier session, or with fork, it starts a new conversation that shares the history up to that session. A draft is launched: it keeps its ids, and the parameters replace its own. The new session has the permissions of the session before, but a fork never keeps a mode in which tools run without approval."))
	handle(reg, d, humanLayerFamily, "interruptSession", s.interrupt,
		server.Doc("Interrupts a session, also while it waits for input. It can be continued. For a session that has ended, this stops the background work of its agent. With background, it stops only that task, whether or not the session has ended."))
	handle(reg, d, humanLayerFamily, "updateSessionSettings", s.update,
		server.Doc("Changes settings of a session's conversation. A working agent gets a new mode, model or options at once. If it refuses one, the event task_error says so; session.set waits for the agent instead."))
	handle(reg, d, humanLayerFamily, "updateSessionTitle", s.retitle, server.Doc("Sets the title of a session's conversation."))
	handle(reg, d, humanLayerFamily, "archiveSession", s.archive, server.Doc("Archives a session's conversation, or restores it. Refused (`bad_state`) while its agent works in the background or goes on by itself. Continuing a session also restores it."))
	handle(reg, d, humanLayerFamily, "bulkArchiveSessions", s.archiveMany, server.Doc("Archives the conversations of several sessions, or restores them."))
	handle(reg, d, f, "session.delete", s.delete, server.LongRunning(), // it runs the cleanup of a worktree
		server.Doc("Deletes a session's conversation with everything that only it uses. This cannot be undone. All clients get the event session_deleted. Refused while a session of the conversation runs or its agent works in the background. Sessions from which other conversations were forked stay, archived. The conversation's worktree is deleted, too; if it has work that is not landed, nothing is deleted (`would_lose_work`, as for session.discard). The log keeps its numbers, without the deleted events."))
	handle(reg, d, f, "session.land", land, server.LongRunning(),
		server.Doc("Brings the changes in the worktree of a session's conversation to a branch. Files that are not committed become a commit. If it fails, nothing is changed. data.kind: `conflict` (both sides have changed the files in data.paths), `overlap` (uncommitted files of the user are in the way, in data.paths), `bad_state` (a conversation works there, or another git operation is in progress), `no_worktree`, `worktree_failed`. data.more counts the paths that do not fit."))
	handle(reg, d, f, "session.discard", discard, server.LongRunning(),
		server.Doc("Deletes the worktree of a session's conversation and its branch. The conversation stays; a fork continues it in the project's directory. Without force, work that is not landed is an error (`would_lose_work`), and data.losses lists it: commits, uncommitted, untracked, nested and ignored, each with count and first. Other values of data.kind: `bad_state` (a conversation works there), `no_worktree`, `worktree_failed`."))
	handle(reg, d, f, "session.launchAttempts", s.launchAttempts, server.LongRunning(),
		server.Doc("Launches a prompt once for each of several agents, all of them or none. Each is a conversation with a git worktree of its own, and all start from the commit that is checked out. session.attempts compares them, session.chooseAttempt lands one and discards the others."))
	handle(reg, d, f, "session.attempts", s.attempts, server.LongRunning(),
		server.Doc("Compares the attempts at the same prompt: their state, gates, changes, time and cost. data.kind is `no_attempts` if the conversation is not one of several."))
	handle(reg, d, f, "session.chooseAttempt", chooseAttempt, server.LongRunning(),
		server.Doc("Lands the worktree of a session's conversation as session.land does, and then discards the worktrees of the other attempts at the same prompt as session.discard does with force. If landing fails, nothing is discarded."))
	handle(reg, d, humanLayerFamily, "getRecentPaths", s.recentPaths, server.Doc("Lists working directories of sessions, the last used first."))
}

func (s sessions) list(ctx context.Context, h *hub.Hub, p humanlayer.ListSessionsParams) (humanlayer.SessionList, error) {
	return s.listed(ctx, h, p.Before, domain.TurnFilter{
		States: p.Status.States(), Agent: p.Agent, Archived: p.Archived, Limit: pageSize(p.Limit, sessionsByDefault, sessionsAtMost),
	})
}

func (s sessions) listed(ctx context.Context, h *hub.Hub, before string, f domain.TurnFilter) (humanlayer.SessionList, error) {
	turns, err := s.turns(ctx, h, before, f)
	if err != nil {
		return humanlayer.SessionList{}, err
	}
	list := make([]*humanlayer.Session, 0, len(turns))
	for _, t := range turns {
		list = append(list, humanlayer.SessionOf(t))
	}
	r := humanlayer.SessionList{Sessions: fit(list, room(ctx))}
	if n := len(r.Sessions); mayHaveMore(n, len(list), f) {
		r.NextBefore = r.Sessions[n-1].ID
	}
	return r, nil
}

func (s sessions) leaves(ctx context.Context, h *hub.Hub, p humanlayer.SessionLeavesParams) (humanlayer.SessionList, error) {
	return s.listed(ctx, h, p.Before, leavesFilter(p.Filter, p.Limit))
}

func (s sessions) state(ctx context.Context, h *hub.Hub, p protocol.SessionParams) (humanlayer.SessionStateResult, error) {
	t, err := s.whole(ctx, h, p.SessionID)
	if err != nil {
		return humanlayer.SessionStateResult{}, err
	}
	one := []*humanlayer.Session{humanlayer.SessionOf(t)}
	fit(one, room(ctx))
	return humanlayer.SessionStateResult{Session: *one[0]}, nil
}

func (sessions) interrupt(ctx context.Context, h *hub.Hub, p protocol.InterruptParams) (protocol.InterruptResult, error) {
	s, err := interrupted(ctx, h, p.SessionID, p.Background, p.Reason)
	return protocol.InterruptResult{Success: err == nil, SessionID: s.HumanLayerSession, Status: protocol.StatusOf(s.State)}, err
}

func (sessions) update(ctx context.Context, h *hub.Hub, p protocol.UpdateSettingsParams) (protocol.Success, error) {
	c := sessionsettings.Change{
		Title: p.Title, Mode: p.PermissionMode, Model: p.Model, AutoAcceptEdits: p.AutoAcceptEdits,
		SkipPermissions: p.SkipPermissions, Archived: p.Archived, AdditionalDirectories: p.AdditionalDirectories, Options: p.Options,
	}
	if p.SkipTimeoutMillis != nil {
		timeout := milliseconds(*p.SkipTimeoutMillis)
		c.SkipPermissionsTimeout = &timeout
	}
	_, err := h.Settings().Update(ctx, p.SessionID, c)
	return protocol.Success{Success: err == nil}, err
}

func (sessions) retitle(ctx context.Context, h *hub.Hub, p protocol.UpdateTitleParams) (protocol.Success, error) {
	_, err := h.Settings().Update(ctx, p.SessionID, sessionsettings.Change{Title: &p.Title})
	return protocol.Success{Success: err == nil}, err
}

func (sessions) archive(ctx context.Context, h *hub.Hub, p protocol.ArchiveParams) (protocol.Success, error) {
	_, err := h.Settings().Update(ctx, p.SessionID, archived(p.Archived))
	return protocol.Success{Success: err == nil}, err
}

func (sessions) archiveMany(ctx context.Context, h *hub.Hub, p protocol.ArchiveManyParams) (protocol.ArchiveManyResult, error) {
	var r protocol.ArchiveManyResult
	for _, id := range p.SessionIDs {
		if _, err := h.Settings().Update(ctx, id, archived(p.Archived)); err != nil {
			if hubKind(err) == "" || hubKind(err) == domain.KindUnavailable {
				return protocol.ArchiveManyResult{}, err
			}
			r.FailedSessions = append(r.FailedSessions, id)
		}
	}
	r.Success = len(r.FailedSessions) == 0
	return r, nil
}

func (s sessions) launch(ctx context.Context, h *hub.Hub, p humanlayer.LaunchParams) (humanlayer.LaunchResult, error) {
	r, err := s.start(ctx, h, p.Native())
	return humanlayer.Launched(r), err
}

func (s sessions) continues(ctx context.Context, h *hub.Hub, p humanlayer.ContinueParams) (humanlayer.ContinueResult, error) {
	if p.Fork {
		r, err := s.fork(ctx, h, p.ForkParams())
		return humanlayer.Continued(r), err
	}
	r, err := s.prompt(ctx, h, p.Prompt())
	return humanlayer.Continued(r), err
}

func checkLaunch(p humanlayer.LaunchParams) error {
	return cmp.Or(protocol.NotEmpty("query", p.Query), checkAgentSettings(p.AgentSettings), checkContent(p.PromptContent), objectOrNone("metadata", p.Metadata), uuidOrNone("conversation_id", p.ConversationID), uuidOrNone("launch_id", p.LaunchID))
}

func checkContinue(p humanlayer.ContinueParams) error {
	return cmp.Or(protocol.NotEmpty("session_id", p.SessionID), protocol.NotEmptyIfGiven("query", p.Query), checkAgentSettings(p.AgentSettings), checkContent(p.PromptContent), objectOrNone("metadata", p.Metadata), uuidOrNone("conversation_id", p.ForkID), checkChoice(p), checkDeliver(p.Deliver))
}

// checkChoice refuses an agent and its settings without fork. session.set changes a conversation.
func checkChoice(p humanlayer.ContinueParams) error {
	if p.Fork {
		return nil
	}
	for _, c := range []struct {
		param string
		given bool
	}{{"agent", p.Agent != ""}, {"model", p.Model != ""}, {"permission_mode", p.PermissionMode != ""}, {"options", len(p.Options) > 0}} {
		if c.given {
			return server.InvalidParam(server.ParamError{Param: c.param, Expected: "nothing without fork; session.set changes a conversation", Received: "a value"})
		}
	}
	return nil
}

func sessionAtMost(s *humanlayer.Session) int {
	total := 4096 + textAtMost(s.Texts()...) + textAtMost(&s.Summary, &s.Title, &s.ConversationTitle, &s.Model, &s.WorkingDir, &s.ClaudeSessionID, &s.CallerTaskID, &s.Agent, &s.StopReason)
	return total + listsAtMost(s.AdditionalDirectories, s.UnansweredServers, s.Worktree, s.AuthMethods, s.Gates)
}

// registerQueue registers the methods that list and change queued prompts. interruptSession cancels
// one.
func registerQueue(reg *server.Registry, d Domain) {
	f := sessionFamily
	handle(reg, d, f, "session.queue", func(ctx context.Context, h *hub.Hub, p protocol.SessionParams) (protocol.QueueResult, error) {
		return queueOf(ctx, h, p.SessionID)
	}, server.Doc("Lists the queued prompts of a session's conversation, the next one first."))
	handle(reg, d, f, "session.editQueued", func(ctx context.Context, h *hub.Hub, p protocol.EditQueuedParams) (protocol.QueueResult, error) {
		if err := h.EditQueued(ctx, p.SessionID, p.Query); err != nil {
			return protocol.QueueResult{}, err
		}
		return queueOf(ctx, h, p.SessionID)
	}, server.Doc("Changes the text of a queued prompt; its content blocks stay. A prompt that has started is refused (`bad_state`). All clients get the event queue_changed."))
	handle(reg, d, f, "session.moveQueued", func(ctx context.Context, h *hub.Hub, p protocol.MoveQueuedParams) (protocol.QueueResult, error) {
		if err := h.MoveQueued(ctx, p.SessionID, p.Before); err != nil {
			return protocol.QueueResult{}, err
		}
		return queueOf(ctx, h, p.SessionID)
	}, server.Doc("Moves a queued prompt within the queue of its session. A prompt that has started is refused (`bad_state`). All clients get the event queue_changed."))
}

func queueOf(ctx context.Context, h *hub.Hub, id string) (protocol.QueueResult, error) {
	list, err := h.Queued(ctx, id)
	if err != nil {
		return protocol.QueueResult{}, err
	}
	prompts := make([]*protocol.QueuedPrompt, 0, len(list))
	for _, s := range list {
		prompts = append(prompts, &protocol.QueuedPrompt{SessionID: s.HumanLayerSession, TaskID: domain.TaskName(s.Task), Query: s.Prompt, CreatedAt: s.Turn.Created, Editable: s.IsWritten()})
	}
	prompts = fit(prompts, room(ctx))
	for n, p := range prompts {
		p.Truncated = p.Query != list[n].Prompt
	}
	return protocol.QueueResult{Queued: prompts}, nil
}
