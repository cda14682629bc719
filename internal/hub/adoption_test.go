package hub

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// adoptionWorld is an Adopter with a store and a fake of the run functions.
type adoptionWorld struct {
	*Adopter
	store    store.Store
	query    *query.Queries
	complete error // error of completing a run
}

func newAdoptionWorld(t *testing.T) *adoptionWorld {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := must(sqlite.Opener(filepath.Join(t.TempDir(), "duet.db"))(ctx, store.Options{}))(t)
	w := &adoptionWorld{store: s, query: query.New(ctx, s)}
	c := conversation.New(ctx, w.query.Known)
	in := intake.New(ctx, intake.Options{
		Store: s, Conversation: c, Keys: func(int64) *redact.Secrets { return nil }, Root: func(string) string { return "/p" }, Logger: slog.New(slog.DiscardHandler),
	})
	w.Adopter = newAdopter(adoptOptions{
		Store: s, Query: w.query, Conversation: c, Intake: in, Root: "/p", Write: s.Write, Note: func(err error) error { return err },
		Directory: func(path string) (string, error) { return path, nil },
		Begin:     func(t store.Tx, thread *domain.Thread) error { return t.InsertThread(thread) },
		Complete: func(t store.Tx, run *domain.Run) error {
			run.State = domain.Completed
			return errors.Join(t.UpdateRun(*run), w.complete)
		},
	})
	t.Cleanup(func() { cancel(); require.NoError(t, s.Close()) })
	return w
}

var session = Session{Agent: "fake", Native: "n", Title: "title", Dir: "/p", HasHistory: true, Secrets: new(redact.Secrets), Parts: []catalog.ReplayedPart{{Role: "user", Text: "hello"}}}

// A session becomes one completed run with its history. A second adoption finds that run.
func TestAdoptOnce(t *testing.T) {
	w := newAdoptionWorld(t)
	_, ok, err := w.Find(t.Context(), "fake", "n")
	require.NoError(t, err)
	assert.False(t, ok)
	first, fresh, err := w.Adopt(t.Context(), session)
	require.NoError(t, err)
	assert.True(t, fresh)
	assert.Equal(t, []any{domain.Completed, "hello", "title", "n", "/p"}, []any{first.State, first.Prompt, first.Run.Title, first.Thread.NativeSession, first.Thread.CWD})
	again, fresh, err := w.Adopt(t.Context(), session)
	require.NoError(t, err)
	assert.False(t, fresh)
	assert.Equal(t, first.Run.ID, again.Run.ID)
	found, ok, err := w.Find(t.Context(), "fake", "n")
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, first.Run.ID, found.Run.ID)
	other := session
	other.Agent = "other"
	_, fresh, err = w.Adopt(t.Context(), other)
	require.NoError(t, err)
	assert.True(t, fresh, "another agent's ids are its own")
}

// The conversation notes the missing history, and the title replaces a prompt that the agent does
// not report.
func TestAdoptWithoutHistory(t *testing.T) {
	w := newAdoptionWorld(t)
	for native, c := range map[string]struct {
		session Session
		note    string
	}{
		"none": {Session{}, "knows it and can continue"},
		"long": {Session{HasHistory: true, LeftOut: 7}, "its first 7 parts are left out"},
	} {
		c.session.Agent, c.session.Native, c.session.Title, c.session.Dir = "fake", native, "title", "/p"
		s, _, err := w.Adopt(t.Context(), c.session)
		require.NoError(t, err)
		assert.Equal(t, "title", s.Prompt)
		items := must(w.query.Items(t.Context(), s.Run.ID))(t)
		require.Len(t, items, 1)
		assert.Contains(t, items[0].Content, c.note)
	}
}

// A failed adoption stores nothing, so it can be retried.
func TestAdoptWholeOrNotAtAll(t *testing.T) {
	w := newAdoptionWorld(t)
	w.complete = errors.New("it cannot end")
	_, fresh, err := w.Adopt(t.Context(), session)
	assert.ErrorIs(t, err, w.complete)
	assert.False(t, fresh)
	_, ok, err := w.Find(t.Context(), "fake", "n")
	require.NoError(t, err)
	assert.False(t, ok)
}

// A draft does not use an agent's session; a queued run does.
func TestUnfinished(t *testing.T) {
	w := newAdoptionWorld(t)
	s, _, err := w.Adopt(t.Context(), session)
	require.NoError(t, err)
	for _, c := range []struct {
		state domain.State
		uses  bool
	}{{domain.Completed, false}, {domain.Draft, false}, {domain.Queued, true}, {domain.Running, true}} {
		s.Run.State = c.state
		require.NoError(t, w.store.Write(t.Context(), func(tx store.Tx) error { return tx.UpdateRun(s.Run) }))
		_, uses, err := w.Unfinished(t.Context(), "fake", "n")
		require.NoError(t, err)
		assert.Equal(t, c.uses, uses, c.state)
	}
	_, uses, err := w.Unfinished(t.Context(), "fake", "nothing")
	require.NoError(t, err)
	assert.False(t, uses)
}
