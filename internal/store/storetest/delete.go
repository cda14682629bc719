package storetest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Two sessions share a picture. The first also has one of its own, and a fork that begins
// with its first turn.
func testDeletionKeepsSharedData(t *testing.T, k kind) {
	s := k.openNew(t)
	picture := func(text string) domain.Attachment {
		return domain.Attachment{ID: domain.AttachmentID([]byte(text)), MIMEType: "image/png", Data: []byte(text)}
	}
	shared, own := picture("shared"), picture("own")
	with := func(a ...domain.Attachment) func(*domain.Turn) {
		return func(r *domain.Turn) {
			for _, one := range a {
				r.Content = append(r.Content, domain.Block{Type: "image", MIMEType: one.MIMEType, Attachment: one.ID, Size: int64(len(one.Data))})
			}
		}
	}
	session, other := NewSession(t, s, "mine"), NewSession(t, s, "")
	first := AddTurn(t, s, session.ID, domain.Completed)
	second := AddTurn(t, s, session.ID, domain.Completed, with(shared, own))
	third := AddTurn(t, s, other.ID, domain.Completed, with(shared))
	Write(t, s, func(tx store.Tx) error {
		for _, a := range []domain.Attachment{shared, own} {
			if err := tx.PutAttachment(a); err != nil {
				return err
			}
		}
		for _, turn := range []domain.Turn{first, second, third} {
			if err := tx.InsertItem(&domain.Item{
				Session: turn.Session, Turn: turn.ID, Kind: "message", Role: "user", Content: "walnuts", Created: turn.Created, Updated: turn.Created,
			}); err != nil {
				return err
			}
			if err := tx.InsertApproval(&domain.Approval{
				ID: "asked " + turn.UUID, CallID: turn.UUID, Session: turn.Session, Turn: turn.ID, Type: domain.FunctionCall,
				Status: domain.ApprovalPending,
			}); err != nil {
				return err
			}
			if err := tx.PutChange(domain.Change{Turn: turn.ID, Path: "/p/f"}); err != nil {
				return err
			}
			if err := tx.PutRule(domain.Rule{Session: turn.Session, Effect: "allow", Tool: "T" + turn.UUID}); err != nil {
				return err
			}
			if _, err := tx.Append(turn.Event(domain.MessageDelta{Key: "k", Text: "secret"})); err != nil {
				return err
			}
			if _, err := tx.Append(turn.Event(domain.MessageAdded{Type: "message", Text: "secret"})); err != nil {
				return err
			}
		}
		return nil
	})
	hits := func() int {
		found, err := s.Search(ctx, "walnuts", 10, 0)
		require.NoError(t, err)
		return len(found)
	}
	require.Equal(t, 3, hits())

	// A fork begins with the first turn.
	fork := domain.Session{
		UUID: "fork", CWD: "/p", Agent: "a", Parent: session.ID, ForkTurn: first.ID, Created: session.Created, Active: session.Active,
	}
	Write(t, s, func(tx store.Tx) error { return tx.InsertSession(&fork) })
	upTo, err := s.ForkedUpTo(ctx, session.ID)
	require.NoError(t, err)
	require.Equal(t, first.ID, upTo)
	Write(t, s, func(tx store.Tx) error { return tx.DeleteTurns(session.ID, upTo) })
	assert.Equal(t, 2, hits())
	found, err := s.Find(ctx, "mine")
	require.NoError(t, err)
	assert.Equal(t, first.ID, found)
	for _, id := range []string{second.UUID, second.HumanLayerSession, domain.TaskName(second.Task)} {
		_, err = s.Find(ctx, id)
		assert.ErrorIs(t, err, store.ErrNotFound)
	}
	_, err = s.Attachment(ctx, own.ID)
	assert.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.Attachment(ctx, shared.ID)
	assert.NoError(t, err)

	Write(t, s, func(tx store.Tx) error { return tx.DeleteTurns(session.ID, 0) })
	assert.Equal(t, 1, hits())
	_, err = s.FindSession(ctx, "mine")
	assert.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.Session(ctx, session.ID)
	assert.ErrorIs(t, err, store.ErrNotFound)
	pending, err := s.PendingApprovals(ctx, 0)
	require.NoError(t, err)
	require.Len(t, pending, 1)
	assert.Equal(t, third.ID, pending[0].Turn)
	rules, err := s.AllRules(ctx)
	require.NoError(t, err)
	assert.Len(t, rules, 1)
	for turn, want := range map[int64]int{first.ID: 0, second.ID: 0, third.ID: 1} {
		changes, err := s.Changes(ctx, turn)
		require.NoError(t, err)
		assert.Len(t, changes, want)
	}

	// The log keeps the numbers of deleted events, and nothing else.
	events := AllEvents(t, s)
	require.Len(t, events, 6)
	for i, e := range events {
		assert.Equal(t, int64(i+1), e.Seq)
		assert.Equal(t, i < 4, e.Erased(), "%d", i)
		if e.Erased() {
			assert.Zero(t, e.Turn)
			assert.Zero(t, e.Session)
		}
	}
	// A new turn gets an unused number.
	next := AddTurn(t, s, other.ID, domain.Completed)
	assert.Greater(t, next.Task, third.Task)
}
