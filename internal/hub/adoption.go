package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Adoption returns the adopter, which imports sessions that started outside Duet.
func (h *Hub) Adoption() Adopter { return Adopter{h} }

// This file imports sessions that an agent held without Duet.

// Adopter imports sessions. Its methods may be called from any goroutine.
type Adopter struct{ hub *Hub }

// Session is a session that an agent stores itself.
type Session struct {
	Agent  string // configured name
	Native string // the agent's session id
	Title  string
	Dir    string // working directory
	// Parts are the messages and tool calls of the session. HasHistory reports whether the agent
	// has replayed its history. LeftOut counts the parts that are missing at the beginning.
	Parts      []catalog.ReplayedPart
	HasHistory bool
	LeftOut    int
	Secrets    *redact.Secrets // redacted from all parts; may be nil
}

// Directory returns the absolute path of the directory that a caller names; "" is the project root.
// Its error is safe to show to users.
func (a Adopter) Directory(path string) (string, error) { return a.hub.directory(path) }

// Find returns the last turn of the session that uses an agent's own session. ok reports whether
// one exists.
func (a Adopter) Find(ctx context.Context, agent, native string) (s domain.TurnInSession, ok bool, err error) {
	session, err := a.hub.store.FindNativeOf(ctx, agent, native)
	if errors.Is(err, store.ErrNotFound) {
		return s, false, nil
	}
	if err == nil {
		var last domain.Turn
		if last, err = a.hub.store.LastTurn(ctx, session); err == nil {
			s, err = a.hub.query.ByTurn(ctx, last.ID)
		}
	}
	return s, err == nil, a.hub.noteWrite(err)
}

// Unfinished returns an active or queued turn that uses an agent's session. ok reports whether one
// exists.
func (a Adopter) Unfinished(ctx context.Context, agent, native string) (domain.Turn, bool, error) {
	session, err := a.hub.store.FindNativeOf(ctx, agent, native)
	if errors.Is(err, store.ErrNotFound) {
		return domain.Turn{}, false, nil
	}
	if err != nil {
		return domain.Turn{}, false, a.hub.noteWrite(err)
	}
	turns, err := a.hub.store.UnfinishedTurns(ctx, session)
	for _, r := range turns {
		if r.State != domain.Draft {
			return r, true, nil
		}
	}
	return domain.Turn{}, false, a.hub.noteWrite(err)
}

// Adopt makes a session from an agent's own one: one completed turn holds the whole history.
// If an earlier call has made that session, Adopt returns it unchanged and fresh is false.
func (a Adopter) Adopt(ctx context.Context, s Session) (adopted domain.TurnInSession, fresh bool, err error) {
	parts := a.hub.intake.ReadHistory(s.Parts, s.Secrets)
	title := s.Secrets.Text(s.Title)
	var id int64
	err = a.hub.write(ctx, func(t store.Tx) error {
		fresh = false
		session, err := t.FindNativeOf(ctx, s.Agent, s.Native)
		switch {
		case err == nil:
			last, err := t.LastTurn(ctx, session)
			id = last.ID
			return err
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		fresh = true
		id, err = a.adopt(ctx, t, s, title, parts)
		return err
	})
	if err != nil {
		return domain.TurnInSession{}, false, err
	}
	adopted, err = a.hub.query.ByTurn(ctx, id)
	return adopted, fresh, err
}

func (a Adopter) adopt(ctx context.Context, t store.Tx, s Session, title string, parts *intake.History) (int64, error) {
	session := domain.Session{
		UUID: uuid.Must(uuid.NewV7()).String(), Title: title, CWD: s.Dir, Agent: s.Agent, NativeSession: s.Native,
		Mode: catalog.ModeDefault, Created: t.Now(), Active: t.Now(),
	}
	if err := a.hub.addSession(t, &session, ""); err != nil {
		return 0, err
	}
	turn := domain.Turn{
		UUID: uuid.Must(uuid.NewV7()).String(), HumanLayerSession: uuid.NewString(), HumanLayerRun: uuid.NewString(),
		Session: session.ID, Prompt: parts.Prompt(), Title: title, Agent: s.Agent, Source: domain.SourceAdopted,
		Mode:    session.Mode,
		Created: t.Now(), Active: t.Now(), Started: t.Now(),
	}
	if turn.Prompt == "" {
		turn.Prompt = title
	}
	clientenv.Carry(ctx, &turn)
	if err := t.InsertTurn(&turn); err != nil {
		return 0, err
	}
	if note := s.note(); note != "" {
		if err := a.hub.transcript.Adopted(t, turn, note); err != nil {
			return 0, err
		}
	}
	if err := a.hub.intake.RecordHistory(t, turn.ID, parts); err != nil {
		return 0, err
	}
	turn, err := t.Turn(ctx, turn.ID)
	if err != nil {
		return 0, err
	}
	if _, err := t.Append(turn.Event(domain.NativeSessionChanged{NativeSession: s.Native})); err != nil {
		return 0, err
	}
	return turn.ID, a.hub.transition(t, &turn, domain.Completed, outcome{reason: "adopted"})
}

// note describes the missing part of the history.
func (s Session) note() string {
	switch {
	case !s.HasHistory:
		return "This session began elsewhere. Its agent cannot send the history, but knows it and can continue."
	case s.LeftOut > 0:
		return fmt.Sprintf("This session began elsewhere, and is too long to keep: its first %d parts are left out.", s.LeftOut)
	}
	return ""
}
