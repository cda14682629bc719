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

type nativeListParams struct {
	Agent      string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	WorkingDir string `json:"working_dir,omitempty" doc:"Only sessions that work in this directory; ~ is expanded; absent: all."`
	Cursor     string `json:"cursor,omitempty" doc:"As next_cursor, to go on."`
	Limit      *uint  `json:"limit,omitempty" doc:"How many; 50 unless told, 1000 at most."`
}

type nativeSession struct {
	ID         string `json:"native_session_id" doc:"The agent's own id of it."`
	Title      string `json:"title,omitempty" doc:"In the agent's words."`
	UpdatedAt  string `json:"updated_at,omitempty" doc:"When something happened in it last."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The directory in which it works."`
	SessionID  string `json:"session_id,omitempty" doc:"The last session of the conversation here that has it."`
	TaskID     string `json:"task_id,omitempty" doc:"The same under its name as a task."`
}

type nativeList struct {
	Agent      string          `json:"agent" doc:"Its name in the configuration."`
	Sessions   []nativeSession `json:"sessions"`
	NextCursor string          `json:"next_cursor,omitempty" doc:"There may be more: pass this as cursor."`
}

func (m nativeSessions) list(ctx context.Context, h *hub.Hub, p nativeListParams) (nativeList, error) {
	l, err := m.asked(ctx, p.Agent)
	if err != nil {
		return nativeList{}, err
	}
	q := agentlink.Query{Cursor: p.Cursor, Limit: max(1, pageSize(p.Limit, nativeByDefault, nativeAtMost))}
	if p.WorkingDir != "" {
		if q.Dir, err = h.Adoption().Directory(p.WorkingDir); err != nil {
			return nativeList{}, err
		}
	}
	page, err := agentlink.ListSessions(ctx, l, q, m.Logger)
	if err != nil {
		return nativeList{}, nativeError(ctx, err)
	}
	r := nativeList{Agent: l.Name, Sessions: make([]nativeSession, 0, len(page.Sessions)), NextCursor: page.Next}
	for _, s := range page.Sessions {
		one := nativeSession{ID: s.ID, Title: s.Title, WorkingDir: s.Dir}
		if !s.Updated.IsZero() {
			one.UpdatedAt = s.Updated.UTC().Format(time.RFC3339)
		}
		found, ok, err := h.Adoption().Find(ctx, l.Name, s.ID)
		if err != nil {
			return nativeList{}, err
		}
		if ok {
			one.SessionID, one.TaskID = found.SessionID, domain.TaskName(found.Task)
		}
		r.Sessions = append(r.Sessions, one)
	}
	return r, nil
}

type adoptParams struct {
	Agent      string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	ID         string `json:"native_session_id" doc:"The agent's own id of the session, as agent.sessions lists it."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The directory in which it is to go on; ~ is expanded; absent: as the agent says, or else the project's root."`
	Title      string `json:"title,omitempty" doc:"What to call the session; absent: as the agent does."`
}

func (p adoptParams) check() error { return need("native_session_id", p.ID) }

type adoptResult struct {
	launchResult
	NativeSession string `json:"native_session_id"`
	Adopted       bool   `json:"adopted" doc:"False: it had a conversation here already, which was left as it is."`
	History       bool   `json:"history" doc:"Whether its agent has told what was said and done in it. Of one that was here already: true."`
	Note          string `json:"note,omitempty" doc:"What is to be known about that, in words."`
}

func (m nativeSessions) adopt(ctx context.Context, h *hub.Hub, p adoptParams) (adoptResult, error) {
	l, err := m.asked(ctx, p.Agent)
	if err != nil {
		return adoptResult{}, err
	}
	into := h.Adoption()
	here, ok, err := into.Find(ctx, l.Name, p.ID)
	if err != nil {
		return adoptResult{}, err
	}
	if ok {
		return alreadyHere(here, p.ID), nil
	}
	want := agentlink.Wanted{ID: p.ID}
	if want.Else, err = into.Directory(""); err != nil {
		return adoptResult{}, err
	}
	if p.WorkingDir != "" {
		if want.Dir, err = into.Directory(p.WorkingDir); err != nil {
			return adoptResult{}, err
		}
	}
	replayed, err := agentlink.LoadSession(ctx, l, want, m.Logger)
	if err != nil {
		return adoptResult{}, nativeError(ctx, err)
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
		return adoptResult{}, err
	case !fresh: // somebody else was quicker
		return alreadyHere(s, p.ID), nil
	}
	r := adoptResult{launchResult: launched(s), NativeSession: p.ID, Adopted: true, History: replayed.HasHistory, Note: replayed.Note}
	switch {
	case !replayed.HasHistory:
		r.Note = l.Name + " cannot tell what was said in it, but goes on with it"
	case replayed.LeftOut > 0:
		r.Note = fmt.Sprintf("it is longer than what is kept: its first %d parts are left out", replayed.LeftOut)
	}
	return r, nil
}

func alreadyHere(s domain.Session, native string) adoptResult {
	return adoptResult{
		launchResult: launched(s), NativeSession: native, History: true,
		Note: "it has a conversation here already, which was left as it is: " + domain.TaskName(s.Task),
	}
}

type nativeDeleteParams struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	ID    string `json:"native_session_id" doc:"The agent's own id of the session."`
}

func (p nativeDeleteParams) check() error { return need("native_session_id", p.ID) }

func (m nativeSessions) remove(ctx context.Context, h *hub.Hub, p nativeDeleteParams) (success, error) {
	l, err := m.asked(ctx, p.Agent)
	if err != nil {
		return success{}, err
	}
	run, busy, err := h.Adoption().Unfinished(ctx, l.Name, p.ID)
	if err != nil {
		return success{}, err
	}
	if busy {
		task := domain.TaskName(run.Task)
		return success{}, domain.Errorf(domain.KindBadState, "%s works in this session, and is %s: wait for its end, or end it with `duet-rpc session interrupt %s`", task, protocol.StatusOf(run.State), task)
	}
	if err := agentlink.Delete(ctx, l, p.ID, m.Logger); err != nil {
		return success{}, nativeError(ctx, err)
	}
	return success{true}, nil
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
