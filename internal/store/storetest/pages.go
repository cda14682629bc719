package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func testPageMessagesAreLimited(t *testing.T, k kind) {
	s := k.openNew(t)
	session := NewSession(t, s, "")
	turn := AddTurn(t, s, session.ID, domain.Completed)
	said := func(m domain.PageMessage) domain.PageMessage {
		m.Count, m.Time = 1, time.Unix(5, 7).UTC()
		Write(t, s, func(tx store.Tx) error { return tx.PutPageMessage(&m) })
		return m
	}
	whole := said(domain.PageMessage{
		Kind: domain.PageError, Text: "t", URL: "u", Line: 1, Column: 2, Stack: "s", Session: session.ID, Turn: turn.ID,
	})
	assert.NotZero(t, whole.ID)
	whole.HumanLayerSession = turn.HumanLayerSession
	warned := said(domain.PageMessage{Kind: domain.PageConsole, Level: "warn", Text: "careful"})
	logged := said(domain.PageMessage{Kind: domain.PageConsole, Level: "log", Text: "hello"})
	list := func(f domain.PageFilter) []domain.PageMessage {
		f.Limit = 2
		list, err := s.PageMessages(ctx, f)
		require.NoError(t, err)
		return list
	}
	assert.Equal(t, []domain.PageMessage{warned, logged}, list(domain.PageFilter{}), "the last two, the oldest first")
	assert.Equal(t, []domain.PageMessage{whole, warned}, list(domain.PageFilter{Problems: true}))
	assert.Equal(t, []domain.PageMessage{logged}, list(domain.PageFilter{After: warned.ID}))
	assert.Equal(t, []domain.PageMessage{whole}, list(domain.PageFilter{Session: session.ID}))
	assert.Equal(t, []domain.PageMessage{whole}, list(domain.PageFilter{Turn: turn.ID}))
	assert.Empty(t, list(domain.PageFilter{Turn: turn.ID + 1}))

	logged.Count, logged.Time = 7, time.Unix(9, 0).UTC()
	Write(t, s, func(tx store.Tx) error { return tx.PutPageMessage(&logged) })
	assert.Equal(t, []domain.PageMessage{logged}, list(domain.PageFilter{After: warned.ID}))

	Write(t, s, func(tx store.Tx) error { return tx.DeleteTurns(session.ID, 0) })
	assert.Equal(t, []domain.PageMessage{warned, logged}, list(domain.PageFilter{}), "the session's have gone with it")
	Write(t, s, func(tx store.Tx) error {
		for i := range store.MostPageMessages {
			if err := tx.PutPageMessage(&domain.PageMessage{Kind: domain.PageConsole, Level: "log", Text: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return nil
	})
	all, err := s.PageMessages(ctx, domain.PageFilter{Limit: 10_000})
	require.NoError(t, err)
	assert.Len(t, all, store.MostPageMessages)
	assert.Equal(t, "0", all[0].Text)
}
