package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerNativeSessions registers what is asked about the sessions that agents keep
// themselves.
func registerNativeSessions(reg *server.Registry, d Domain) {
	m := nativeSessions{signIn{d}}
	handle(reg, d, sessionFamily, "agent.sessions", m.list, server.LongRunning(),
		server.Doc("Lists the sessions that an agent keeps itself, however they were begun, in the agent's order, mostly the newest first. The agent is started for that, and ended. One that does not offer it is refused (`not_offered`)."))
	handle(reg, d, sessionFamily, "agent.adopt", m.adopt, server.LongRunning(),
		server.Doc("Makes a session of one that an agent keeps itself: a conversation with all that was said and done in it, which has completed. continueSession goes on with the agent's own session. One that has a conversation here already is left as it is, which `adopted` tells. An agent that can go on with its session and not tell its history is adopted without (`history`); one that can do neither is refused (`not_offered`)."))
	handle(reg, d, sessionFamily, "agent.deleteSession", m.remove, server.LongRunning(),
		server.Doc("Has an agent delete a session that it keeps itself, for good. While a conversation here works in it that is refused (`bad_state`), as it is where the agent does not offer it (`not_offered`). A conversation here stays; to continue it begins another session of the agent's, which is told what was said."))
}

type nativeSessions struct{ signIn }

const (
	nativeByDefault = 50
	nativeAtMost    = 1000
)

func (m nativeSessions) list(ctx context.Context, h *hub.Hub, p protocol.NativeSessionListParams) (protocol.NativeSessionList, error) {
	l, err := m.asked(ctx, p.Agent)
	if err != nil {
		return protocol.NativeSessionList{}, err
	}
	q := agentlink.Query{Cursor: p.Cursor, Limit: max(1, pageSize(p.Limit, nativeByDefault, nativeAtMost))}
	if p.WorkingDir != "" {
		if q.Dir, err = h.Adoption().Directory(p.WorkingDir); err != nil {
			return protocol.NativeSessionList{}, err
		}
	}
	page, err := agentlink.ListSessions(ctx, l, q, m.Logger)
	if err != nil {
		return protocol.NativeSessionList{}, nativeError(ctx, err)
	}
	r := protocol.NativeSessionList{Agent: l.Name, Sessions: make([]protocol.NativeSession, 0, len(page.Sessions)), NextCursor: page.Next}
	for _, s := range page.Sessions {
		one := protocol.NativeSession{ID: s.ID, Title: s.Title, WorkingDir: s.Dir}
		if !s.Updated.IsZero() {
			one.UpdatedAt = s.Updated.UTC().Format(time.RFC3339)
		}
		found, ok, err := h.Adoption().Find(ctx, l.Name, s.ID)
		if err != nil {
			return protocol.NativeSessionList{}, err
		}
		if ok {
			one.SessionID, one.TaskID = found.SessionID, domain.TaskName(found.Task)
		}
		r.Sessions = append(r.Sessions, one)
	}
	return r, nil
}

func (m nativeSessions) adopt(ctx context.Context, h *hub.Hub, p protocol.AdoptParams) (protocol.AdoptResult, error) {
	l, err := m.asked(ctx, p.Agent)
	if err != nil {
		return protocol.AdoptResult{}, err
	}
	into := h.Adoption()
	here, ok, err := into.Find(ctx, l.Name, p.ID)
	if err != nil {
		return protocol.AdoptResult{}, err
	}
	if ok {
		return alreadyHere(here, p.ID), nil
	}
	want := agentlink.Wanted{ID: p.ID}
	if want.Else, err = into.Directory(""); err != nil {
		return protocol.AdoptResult{}, err
	}
	if p.WorkingDir != "" {
		if want.Dir, err = into.Directory(p.WorkingDir); err != nil {
			return protocol.AdoptResult{}, err
		}
	}
	replayed, err := agentlink.LoadSession(ctx, l, want, m.Logger)
	if err != nil {
		return protocol.AdoptResult{}, nativeError(ctx, err)
	}
	secrets := &redact.Secrets{}
	for _, key := range l.Keys {
		secrets.Add(key)
	}
	title := replayed.Title
	set(&title, p.Title)
	s, fresh, err := into.Adopt(ctx, hub.Session{
		Agent: l.Name, Native: p.ID, Title: title, Dir: replayed.Dir, Parts: replayed.Parts, HasHistory: replayed.HasHistory, LeftOut: replayed.LeftOut, Secrets: secrets,
	})
	switch {
	case err != nil:
		return protocol.AdoptResult{}, err
	case !fresh: // somebody else was quicker
		return alreadyHere(s, p.ID), nil
	}
	r := protocol.AdoptResult{LaunchResult: launched(s), NativeSession: p.ID, Adopted: true, History: replayed.HasHistory, Note: replayed.Note}
	switch {
	case !replayed.HasHistory:
		r.Note = l.Name + " cannot tell what was said in it, but goes on with it"
	case replayed.LeftOut > 0:
		r.Note = fmt.Sprintf("it is longer than what is kept: its first %d parts are left out", replayed.LeftOut)
	}
	return r, nil
}

func alreadyHere(s domain.Session, native string) protocol.AdoptResult {
	return protocol.AdoptResult{
		LaunchResult: launched(s), NativeSession: native, History: true,
		Note: "it has a conversation here already, which was left as it is: " + domain.TaskName(s.Task),
	}
}

func (m nativeSessions) remove(ctx context.Context, h *hub.Hub, p protocol.NativeSessionDeleteParams) (protocol.Success, error) {
	l, err := m.asked(ctx, p.Agent)
	if err != nil {
		return protocol.Success{}, err
	}
	run, busy, err := h.Adoption().Unfinished(ctx, l.Name, p.ID)
	if err != nil {
		return protocol.Success{}, err
	}
	if busy {
		task := domain.TaskName(run.Task)
		return protocol.Success{}, domain.Errorf(domain.KindBadState, "%s works in this session, and is %s: wait for its end, or end it with `duet-rpc session interrupt %s`", task, protocol.StatusOf(run.State), task)
	}
	if err := agentlink.Delete(ctx, l, p.ID, m.Logger); err != nil {
		return protocol.Success{}, nativeError(ctx, err)
	}
	return protocol.Success{Success: true}, nil
}

// asked is how an agent is started to be asked.
func (m nativeSessions) asked(ctx context.Context, name string) (agentlink.Launch, error) {
	l, _, err := m.launch(ctx, name)
	return l, err
}

// nativeError is what an agent said, or why it could not be asked, as clients are told
// it.
func nativeError(ctx context.Context, err error) error {
	var gone *agentlink.DirectoryError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, agentlink.ErrCursor):
		return domain.Invalid("cursor", "the next_cursor of another page, or none", "something else")
	case errors.As(err, &gone):
		return &domain.Error{Kind: domain.KindInvalid, Param: "working_dir", Expected: "the directory in which the session is to go on (in the shell --dir)", Received: fmt.Sprintf("none, and the agent says %q, which is not there any more", gone.Dir), Message: err.Error()}
	case errors.As(err, new(*agentlink.CannotError)):
		return &domain.Error{Kind: domain.KindNotOffered, Message: err.Error(), Err: err}
	}
	return &domain.Error{Kind: domain.KindExecutor, Message: err.Error(), Err: err}
}
