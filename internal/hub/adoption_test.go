package hub

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

var session = Session{Agent: "fake", Native: "n", Title: "title", Dir: "/p", HasHistory: true, Secrets: new(redact.Secrets), Parts: []catalog.ReplayedPart{{Role: "user", Text: "hello"}}}

// A session becomes one completed turn with its history. A second adoption finds that turn.
func TestAdoptOnce(t *testing.T) {
	h := openHub(t, database(t), nil)
	_, ok, err := h.Adoption().Find(t.Context(), "fake", "n")
	require.NoError(t, err)
	assert.False(t, ok)
	first, fresh, err := h.Adoption().Adopt(t.Context(), session)
	require.NoError(t, err)
	assert.True(t, fresh)
	assert.Equal(t, []any{domain.Completed, "hello", "title", "n", "/p"}, []any{first.State, first.Prompt, first.Turn.Title, first.Session.NativeSession, first.Session.CWD})
	again, fresh, err := h.Adoption().Adopt(t.Context(), session)
	require.NoError(t, err)
	assert.False(t, fresh)
	assert.Equal(t, first.Turn.ID, again.Turn.ID)
	found, ok, err := h.Adoption().Find(t.Context(), "fake", "n")
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, first.Turn.ID, found.Turn.ID)
	other := session
	other.Agent = "other"
	_, fresh, err = h.Adoption().Adopt(t.Context(), other)
	require.NoError(t, err)
	assert.True(t, fresh, "another agent's ids are its own")
}

// The session notes the missing history, and the title replaces a prompt that the agent does
// not report.
func TestAdoptWithoutHistory(t *testing.T) {
	h := openHub(t, database(t), nil)
	for native, c := range map[string]struct {
		session Session
		note    string
	}{
		"none": {Session{}, "knows it and can continue"},
		"long": {Session{HasHistory: true, LeftOut: 7}, "its first 7 parts are left out"},
	} {
		c.session.Agent, c.session.Native, c.session.Title, c.session.Dir = "fake", native, "title", "/p"
		s, _, err := h.Adoption().Adopt(t.Context(), c.session)
		require.NoError(t, err)
		assert.Equal(t, "title", s.Prompt)
		items, err := h.query.ItemsOfTurn(t.Context(), s.Turn.ID)
		require.NoError(t, err)
		require.Len(t, items, 1)
		assert.Contains(t, items[0].Content, c.note)
	}
}

// endless is a store in which no turn can be changed while refuses is set.
type endless struct {
	store.Store
	refuses error
}

func (s *endless) Write(ctx context.Context, change func(store.Tx) error) error {
	return s.Store.Write(ctx, func(t store.Tx) error { return change(endlessTx{t, s.refuses}) })
}

type endlessTx struct {
	store.Tx
	refuses error
}

func (t endlessTx) UpdateTurn(r domain.Turn) error {
	if t.refuses != nil {
		return t.refuses
	}
	return t.Tx.UpdateTurn(r)
}

// A failed adoption stores nothing, so it can be retried.
func TestAdoptWholeOrNotAtAll(t *testing.T) {
	var s endless
	h := openHub(t, database(t), nil, func(o *Options) {
		open := fakeOf(o).openStore
		fakeOf(o).openStore = func(ctx context.Context, opts store.Options) (_ store.Store, err error) {
			s.Store, err = open(ctx, opts)
			return &s, err
		}
	})
	s.refuses = errors.New("it cannot end")
	_, fresh, err := h.Adoption().Adopt(t.Context(), session)
	assert.ErrorContains(t, err, "it cannot end")
	assert.False(t, fresh)
	_, ok, err := h.Adoption().Find(t.Context(), "fake", "n")
	require.NoError(t, err)
	assert.False(t, ok)
	s.refuses = nil
	_, fresh, err = h.Adoption().Adopt(t.Context(), session)
	require.NoError(t, err)
	assert.True(t, fresh)
}

// A draft does not use an agent's session; a queued turn does.
func TestUnfinished(t *testing.T) {
	h := openHub(t, database(t), nil)
	s, _, err := h.Adoption().Adopt(t.Context(), session)
	require.NoError(t, err)
	for _, c := range []struct {
		state domain.State
		uses  bool
	}{{domain.Completed, false}, {domain.Draft, false}, {domain.Queued, true}, {domain.Running, true}} {
		s.Turn.State = c.state
		require.NoError(t, h.store.Write(t.Context(), func(tx store.Tx) error { return tx.UpdateTurn(s.Turn) }))
		_, uses, err := h.Adoption().Unfinished(t.Context(), "fake", "n")
		require.NoError(t, err)
		assert.Equal(t, c.uses, uses, c.state)
	}
	_, uses, err := h.Adoption().Unfinished(t.Context(), "fake", "nothing")
	require.NoError(t, err)
	assert.False(t, uses)
}
