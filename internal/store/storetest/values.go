package storetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// named returns an event that nameOf can identify.
func named(name string) domain.Event {
	return domain.Event{Payload: domain.MessageAdded{Type: "system", Key: name}}
}

func nameOf(e domain.Event) string {
	m, _ := e.Payload.(domain.MessageAdded)
	return m.Key
}

// AppendEvent returns a change that appends an event with that name.
func AppendEvent(name string) func(store.Tx) error {
	return func(tx store.Tx) error {
		_, err := tx.Append(named(name))
		return err
	}
}

// RequireGapless requires a number of events, numbered from 1 without gaps.
func RequireGapless(t *testing.T, events []domain.Event, want int) {
	t.Helper()
	require.Len(t, events, want)
	for i, e := range events {
		require.Equal(t, int64(i+1), e.Seq)
	}
}

func testStoreSurvivesReopening(t *testing.T, k kind) {
	path := filepath.Join(t.TempDir(), "with space & ünïcode?")
	require.NoError(t, os.Mkdir(path, 0o700))
	s := k.openAt(t, path)
	assert.Equal(t, path, filepath.Dir(s.Path()))
	session := NewSession(t, s, "")
	until := time.Unix(500, 0).UTC()
	session.Settings = domain.Settings{SkipPermissions: true, SkipPermissionsUntil: &until, AllowedTools: []string{"Bash(git:*)"}, MCPServers: []domain.MCPServer{
		{Name: "a <b>", Command: "c", Args: []string{"-x", ""}, Env: map[string]string{"K": "v"}},
		{Name: "b", Type: "http", URL: "http://localhost", Headers: map[string]string{"H": "v"}},
	}}
	session.Title, session.NativeSession, session.Archived = "Ti\"tle", "native-1", true
	Write(t, s, func(tx store.Tx) error { return tx.UpdateSession(session) })
	r := AddTurn(t, s, session.ID, domain.Queued, func(r *domain.Turn) {
		r.Tools, r.Timeout, r.Quiet, r.Tokens = []string{"Read"}, time.Minute, true, domain.Tokens{Input: 3, CostUSD: 0.5}
		r.SignIn = []domain.AuthMethod{{ID: "i", Name: "n <b>", Description: "d", Type: "agent"}, {}}
		r.Progress, r.Metadata = []byte(`{"percent":1}`), []byte(`{"a":[1]}`)
		r.Restricted = true
	})
	require.NoError(t, s.Close())

	s = k.openAt(t, path)
	got, err := s.TurnInSession(ctx, r.ID)
	require.NoError(t, err)
	assert.Equal(t, r, withTimes(got.Turn, r))
	assert.Equal(t, session.Settings, got.Session.Settings)
	assert.Equal(t, session.Title, got.Session.Title)
	assert.True(t, got.Session.Archived)
	id, err := s.FindNative(ctx, "native-1")
	require.NoError(t, err)
	assert.Equal(t, session.ID, id)
	_, err = s.FindNative(ctx, "")
	assert.ErrorIs(t, err, store.ErrNotFound, "no native session without a turn")
}

func withTimes(a, b domain.Turn) domain.Turn {
	for _, p := range []struct{ a, b *time.Time }{
		{&a.Created, &b.Created}, {&a.Started, &b.Started}, {&a.Ended, &b.Ended}, {&a.Active, &b.Active},
	} {
		if p.a.Equal(*p.b) {
			*p.a = *p.b
		}
	}
	return a
}

func testMeta(t *testing.T, k kind) {
	s := k.openNew(t)
	v, err := s.Meta(ctx, "k")
	require.NoError(t, err)
	assert.Empty(t, v)
	for i := range 2 {
		Write(t, s, func(tx store.Tx) error { return tx.SetMeta("k", fmt.Sprint(i)) })
	}
	v, err = s.Meta(ctx, "k")
	require.NoError(t, err)
	assert.Equal(t, "1", v)
}
