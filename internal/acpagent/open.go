package acpagent

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// newSession makes a session. The hub creates its own with the first prompt, so that an
// editor which makes a session at each start leaves no empty ones.
func (a *agent) newSession(ctx context.Context, p acp.NewSessionRequest) (acp.OpenedSession, error) {
	if err := checkPlace(p.CWD); err != nil {
		return acp.OpenedSession{}, err
	}
	if s := p.SystemPrompt; s != nil && s.Mode != acp.SystemPromptAppend {
		return acp.OpenedSession{}, invalidValue("systemPrompt.mode", acp.SystemPromptAppend, s.Mode)
	}
	s := a.sessionOf(server.ConnFrom(ctx), uuid.Must(uuid.NewV7()).String(), &beginning{workspace: p.Workspace, agent: a.opts.Agent})
	return a.opened(ctx, s, true)
}

// checkPlace returns an error for a directory in which no agent can work.
func checkPlace(dir string) error {
	wrong := server.ParamError{Param: "cwd", Expected: "the absolute path of a directory that there is", Received: strconv.Quote(dir)}
	if !filepath.IsAbs(dir) {
		return server.InvalidParam(wrong)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return server.InvalidParam(wrong)
	}
	return nil
}

// fork makes a session that continues a copy of another one.
func (a *agent) fork(ctx context.Context, p acp.OpenSessionRequest) (acp.OpenedSession, error) {
	from, _, err := hubclient.Turn(ctx, a.hub, p.SessionID)
	switch {
	case err != nil:
		return acp.OpenedSession{}, refusedFor(p.SessionID, err)
	case !from.State.Ended():
		return acp.OpenedSession{}, server.NewError(jsonrpc2.CodeInvalidRequest, "the session is running a turn; fork it when the turn has ended",
			nil)
	}
	s := a.sessionOf(server.ConnFrom(ctx), uuid.Must(uuid.NewV7()).String(),
		&beginning{workspace: p.Workspace, from: from.ID, agent: cmp.Or(from.RequestedAgent, from.Agent)})
	return a.opened(ctx, s, true)
}

// opened registers a session for the client, and returns its settings. All updates follow the
// response: clients do not know the session before it.
func (a *agent) opened(ctx context.Context, s *session, withID bool) (acp.OpenedSession, error) {
	v, err := s.look(ctx)
	if err != nil {
		s.leave()
		return acp.OpenedSession{}, refused(err)
	}
	s.settings = v
	a.keep(s)
	r := acp.OpenedSession{Modes: v.modes, ConfigOptions: v.options, Commands: v.commands}
	if withID {
		r.SessionID = s.id
	}
	if s.hasStates {
		return r, nil
	}
	server.AfterReply(ctx, func() {
		s.conn.Go(func(context.Context) {
			s.order.Lock()
			defer s.order.Unlock()
			s.send(s.settings.commandsUpdate())
		})
	})
	return r, nil
}

// load sends a whole session to the client, and then its new events.
func (a *agent) load(ctx context.Context, p acp.OpenSessionRequest) (acp.OpenedSession, error) {
	return a.take(ctx, p, true)
}

// resume sends the new events of a session to the client, and the whole session first if the
// client asks for it.
func (a *agent) resume(ctx context.Context, p acp.OpenSessionRequest) (acp.OpenedSession, error) {
	from := a.client.is().Replays(p)
	if from != nil && from.Type != acp.ReplayFromStart {
		return acp.OpenedSession{}, invalidValue("replayFrom.type", acp.ReplayFromStart, from.Type)
	}
	return a.take(ctx, p, from != nil)
}

func (a *agent) take(ctx context.Context, p acp.OpenSessionRequest, replay bool) (acp.OpenedSession, error) {
	since, err := hubclient.LastSeq(ctx, a.hub) // before the state, so that no later change is missed
	if err != nil {
		return acp.OpenedSession{}, refused(err)
	}
	state, _, err := hubclient.Turn(ctx, a.hub, p.SessionID)
	if err != nil {
		return acp.OpenedSession{}, refusedFor(p.SessionID, err)
	}
	if old := a.lookup(p.SessionID); old != nil { // it is opened again
		a.forget(old)
	}
	s := a.sessionOf(server.ConnFrom(ctx), p.SessionID, nil)
	s.workspace = &p.Workspace
	s.translator.Since = since
	if !state.State.Ended() {
		s.running = state.ID
	}
	if s.hasStates {
		s.work.background = state.Background
		if s.work.turns, err = a.turnsOf(ctx, state); err != nil {
			s.leave()
			return acp.OpenedSession{}, refused(err)
		}
	}
	if replay {
		err = hubclient.Items(ctx, a.hub, state.ID, func(i *protocol.SessionItem) error {
			s.sendItem(i)
			return ctx.Err()
		})
		if err != nil {
			s.leave()
			return acp.OpenedSession{}, refused(err)
		}
		if used, size := protocol.Value(state.ContextTokens), protocol.Value(state.ContextSize); used > 0 && size > 0 {
			s.send(usageUpdate(used, size, protocol.Value(state.CostUSD)))
		}
	} else {
		s.translator.BeginsInside()
	}
	r, err := a.opened(ctx, s, false)
	if err != nil {
		return r, err
	}
	if s.hasStates {
		s.order.Lock()
		if replay && s.settings.title != "" {
			s.send(acp.InfoUpdate{Kind: acp.KindInfo, Title: s.settings.title})
		}
		s.sendState(true)
		s.order.Unlock()
	}
	server.AfterReply(ctx, func() {
		s.conn.Go(func(context.Context) {
			if err := s.follow(s.ctx, since); err != nil && s.ctx.Err() == nil {
				s.remark(acp.SeverityError, "Duet cannot follow this session: "+message(err), "Open the session again to see it",
					"Duet cannot follow this session: %s. Open it again to see it", message(err))
			}
		})
	})
	return r, nil
}

// sendItem sends an item of the session. A client with states gets no prompts of queued turns.
func (s *session) sendItem(i *protocol.SessionItem) {
	updates := s.translator.Item(i)
	if !s.hasStates {
		s.send(updates...)
		return
	}
	if i.Type == protocol.ItemMessage && i.Role == "user" {
		s.mu.Lock()
		isActive := s.work.find(i.TurnUUID) != nil
		s.mu.Unlock()
		if isActive && s.hold(i.TurnUUID, updates) {
			return
		}
	}
	s.send(acp.Replayed(updates)...)
}

// list lists the sessions.
func (a *agent) list(ctx context.Context, p acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	params := protocol.SessionListParams{Filter: "normal", Limit: new(uint(100)), Before: protocol.Ref(protocol.Value(p.Cursor))}
	page, _, err := hubclient.Call[struct {
		Sessions []protocol.Turn
		Next     string `json:"next_before"`
	}](ctx, a.hub, "session.list", params)
	if err != nil {
		return acp.ListSessionsResponse{}, refused(err)
	}
	r := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}, NextCursor: page.Next}
	for _, s := range page.Sessions {
		if p.CWD != nil && *p.CWD != "" && filepath.Clean(*p.CWD) != s.WorkingDir {
			continue
		}
		r.Sessions = append(r.Sessions, acp.SessionInfo{
			SessionID: s.SessionUUID, CWD: s.WorkingDir, AdditionalDirectories: s.AdditionalDirectories, Title: s.SessionTitle,
			UpdatedAt: s.ActiveAt.Format(time.RFC3339Nano),
		})
	}
	return r, nil
}

// closeSession ends the client's turns in a session, and leaves it. For a client with states it first
// ends every turn and the background work of the session, and it succeeds for a session that is not
// open.
func (a *agent) closeSession(ctx context.Context, p acp.SessionParams) (acp.Empty, error) {
	s := a.lookup(p.SessionID)
	switch {
	case s == nil && a.client.is().HasStates():
		return acp.Empty{}, nil
	case s == nil:
		return acp.Empty{}, notFound(p.SessionID)
	case s.hasStates:
		s.endWork(ctx)
	default:
		s.interruptOwn()
	}
	a.forget(s)
	return acp.Empty{}, nil
}

// deleteSession deletes a session permanently.
func (a *agent) deleteSession(ctx context.Context, p acp.SessionParams) (acp.Empty, error) {
	s := a.lookup(p.SessionID)
	if s == nil || s.beginning() == nil { // else the hub does not know it
		if err := a.hub.Call(ctx, "session.delete", protocol.SessionRefParams{Session: protocol.Ref(p.SessionID)}, nil); err != nil {
			return acp.Empty{}, refusedFor(p.SessionID, err)
		}
	}
	if s != nil {
		a.forget(s)
	}
	return acp.Empty{}, nil
}
