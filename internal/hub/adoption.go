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

// Adoption returns the adopter, which imports conversations that started outside Duet.
func (h *Hub) Adoption() Adopter { return Adopter{h} }

// This file imports conversations that an agent held without Duet.

// Adopter imports conversations. Its methods may be called from any goroutine.
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

// Find returns the last run of the conversation that uses an agent's session. ok reports whether
// one exists.
func (a Adopter) Find(ctx context.Context, agent, native string) (s domain.Session, ok bool, err error) {
	thread, err := a.hub.store.FindNativeOf(ctx, agent, native)
	if errors.Is(err, store.ErrNotFound) {
		return s, false, nil
	}
	if err == nil {
		var last domain.Run
		if last, err = a.hub.store.LastRun(ctx, thread); err == nil {
			s, err = a.hub.query.ByRun(ctx, last.ID)
		}
	}
	return s, err == nil, a.hub.noteWrite(err)
}

// Unfinished returns an active or queued run that uses an agent's session. ok reports whether one
// exists.
func (a Adopter) Unfinished(ctx context.Context, agent, native string) (domain.Run, bool, error) {
	thread, err := a.hub.store.FindNativeOf(ctx, agent, native)
	if errors.Is(err, store.ErrNotFound) {
		return domain.Run{}, false, nil
	}
	if err != nil {
		return domain.Run{}, false, a.hub.noteWrite(err)
	}
	runs, err := a.hub.store.UnfinishedRuns(ctx, thread)
	for _, r := range runs {
		if r.State != domain.Draft {
			return r, true, nil
		}
	}
	return domain.Run{}, false, a.hub.noteWrite(err)
}

// Adopt makes a conversation of an agent's session: one completed run that holds the whole history.
// If the session already has a conversation, Adopt returns it unchanged and fresh is false.
func (a Adopter) Adopt(ctx context.Context, s Session) (adopted domain.Session, fresh bool, err error) {
	parts := a.hub.intake.ReadHistory(s.Parts, s.Secrets)
	title := s.Secrets.Text(s.Title)
	var id int64
	err = a.hub.write(ctx, func(t store.Tx) error {
		fresh = false
		thread, err := t.FindNativeOf(ctx, s.Agent, s.Native)
		switch {
		case err == nil:
			last, err := t.LastRun(ctx, thread)
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
		return domain.Session{}, false, err
	}
	adopted, err = a.hub.query.ByRun(ctx, id)
	return adopted, fresh, err
}

func (a Adopter) adopt(ctx context.Context, t store.Tx, s Session, title string, parts *intake.History) (int64, error) {
	thread := domain.Thread{
		UUID: uuid.Must(uuid.NewV7()).String(), Title: title, CWD: s.Dir, Agent: s.Agent, NativeSession: s.Native, Mode: catalog.ModeDefault,
		Created: t.Now(), Active: t.Now(),
	}
	if err := a.hub.addThread(t, &thread, ""); err != nil {
		return 0, err
	}
	run := domain.Run{
		UUID: uuid.Must(uuid.NewV7()).String(), SessionID: uuid.NewString(), RunID: uuid.NewString(), Thread: thread.ID,
		Prompt: parts.Prompt(), Title: title, Agent: s.Agent, Source: domain.SourceAdopted, Mode: thread.Mode, Created: t.Now(), Active: t.Now(), Started: t.Now(),
	}
	if run.Prompt == "" {
		run.Prompt = title
	}
	clientenv.Carry(ctx, &run)
	if err := t.InsertRun(&run); err != nil {
		return 0, err
	}
	if note := s.note(); note != "" {
		if err := a.hub.conversation.Adopted(t, run, note); err != nil {
			return 0, err
		}
	}
	if err := a.hub.intake.RecordHistory(t, run.ID, parts); err != nil {
		return 0, err
	}
	run, err := t.Run(ctx, run.ID)
	if err != nil {
		return 0, err
	}
	if _, err := t.Append(run.Event(domain.NativeSessionChanged{NativeSession: s.Native})); err != nil {
		return 0, err
	}
	return run.ID, a.hub.transition(t, &run, domain.Completed, outcome{reason: "adopted"})
}

// note describes the missing part of the history.
func (s Session) note() string {
	switch {
	case !s.HasHistory:
		return "This conversation began elsewhere. Its agent cannot send the history, but knows it and can continue."
	case s.LeftOut > 0:
		return fmt.Sprintf("This conversation began elsewhere, and is too long to keep: its first %d parts are left out.", s.LeftOut)
	}
	return ""
}
