package handlers

import (
	"cmp"
	"context"

	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerHumanLayer registers HumanLayer's methods that start, list and end sessions.
func registerHumanLayer(reg *server.Registry, d Domain, s sessions) {
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

func (s sessions) state(ctx context.Context, h *hub.Hub, p humanlayer.SessionParams) (humanlayer.SessionStateResult, error) {
	t, err := s.whole(ctx, h, p.SessionID)
	if err != nil {
		return humanlayer.SessionStateResult{}, err
	}
	one := []*humanlayer.Session{humanlayer.SessionOf(t)}
	fit(one, room(ctx))
	return humanlayer.SessionStateResult{Session: *one[0]}, nil
}

func (sessions) interrupt(ctx context.Context, h *hub.Hub, p humanlayer.InterruptParams) (humanlayer.InterruptResult, error) {
	s, err := interrupted(ctx, h, p.SessionID, p.Background, p.Reason)
	return humanlayer.InterruptResult{Success: err == nil, SessionID: s.HumanLayerSession, Status: protocol.StatusOf(s.State)}, err
}

func (sessions) update(ctx context.Context, h *hub.Hub, p humanlayer.UpdateSettingsParams) (protocol.Success, error) {
	c := domain.SettingsChanged{
		Title: p.Title, Mode: p.PermissionMode, Model: p.Model, AutoAcceptEdits: p.AutoAcceptEdits,
		SkipPermissions: p.SkipPermissions, Archived: p.Archived, AdditionalDirectories: p.AdditionalDirectories, Options: p.Options,
	}
	c.SkipUntil = skipUntil(h, protocol.Value(p.SkipTimeoutMillis))
	_, err := h.Settings().Update(ctx, p.SessionID, c)
	return protocol.Success{Success: err == nil}, err
}

func (sessions) retitle(ctx context.Context, h *hub.Hub, p humanlayer.UpdateTitleParams) (protocol.Success, error) {
	_, err := h.Settings().Update(ctx, p.SessionID, domain.SettingsChanged{Title: &p.Title})
	return protocol.Success{Success: err == nil}, err
}

func (sessions) archive(ctx context.Context, h *hub.Hub, p humanlayer.ArchiveParams) (protocol.Success, error) {
	_, err := h.Settings().Update(ctx, p.SessionID, archived(p.Archived))
	return protocol.Success{Success: err == nil}, err
}

func (sessions) archiveMany(ctx context.Context, h *hub.Hub, p humanlayer.ArchiveManyParams) (humanlayer.ArchiveManyResult, error) {
	var r humanlayer.ArchiveManyResult
	for _, id := range p.SessionIDs {
		if _, err := h.Settings().Update(ctx, id, archived(p.Archived)); err != nil {
			if hubKind(err) == "" || hubKind(err) == domain.KindUnavailable {
				return humanlayer.ArchiveManyResult{}, err
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

const (
	pathsByDefault = 20
	pathsAtMost    = 1000
)

func (sessions) recentPaths(ctx context.Context, h *hub.Hub, p humanlayer.RecentPathsParams) (humanlayer.RecentPathsResult, error) {
	list, err := h.Query().RecentPaths(ctx, pageSize(p.Limit, pathsByDefault, pathsAtMost))
	r := humanlayer.RecentPathsResult{Paths: []humanlayer.RecentPath{}}
	for _, path := range list {
		r.Paths = append(r.Paths, humanlayer.RecentPath{Path: path.Path, LastUsed: path.LastUsed.UTC(), UsageCount: path.Count})
	}
	return r, err
}
