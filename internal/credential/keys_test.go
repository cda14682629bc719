package credential

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const secret = "sk-0123456789abcdef"

// world fakes what Keys uses: one turn, and scripted subscribers.
type world struct {
	keys      *Keys
	subscribe func(domain.Event)
	created   time.Time // of the turn
	withdrawn int
	noted     []string
	noteFails error
}

func (w *world) TurnOf(_ context.Context, turn int64) (domain.TurnInSession, error) {
	if turn != 3 {
		return domain.TurnInSession{}, errors.New("no turn")
	}
	return domain.TurnInSession{Turn: domain.Turn{ID: 3, Session: 7, HumanLayerSession: "session", Task: 1, Created: w.created}}, nil
}

func (w *world) Ask(e domain.Event) (heard <-chan struct{}, withdraw func()) {
	reported := make(chan struct{})
	if w.subscribe != nil {
		close(reported)
		w.subscribe(e)
	}
	return reported, func() { w.withdrawn++ }
}

func newWorld(t *testing.T) (w *world, token string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	w = &world{}
	tokens := NewTokens()
	w.keys = NewKeys(Options{
		Tokens: tokens, Turns: w, Events: w,
		Configured: func(domain.Turn) map[string]config.Key {
			return map[string]config.Key{"filed": {File: file}, "unset": {Env: "NOTHING"}}
		},
		Getenv: func(turn int64) func(string) string {
			assert.EqualValues(t, 3, turn)
			return func(name string) string {
				return map[string]string{"ENVIRONMENTAL_API_KEY": secret, "UNSET_API_KEY": "not this one"}[name]
			}
		},
		NoteAccess: func(_ context.Context, turn int64, service, outcome string) error {
			assert.EqualValues(t, 3, turn)
			w.noted = append(w.noted, service+": "+outcome)
			return w.noteFails
		},
	})
	t.Cleanup(w.keys.Close)
	return w, tokens.Issue(committed{}, domain.Turn{ID: 3, Session: 7})
}

// committed is a committed transaction.
type committed struct{}

func (committed) AfterCommit(f func()) { f() }

// kindOf returns the kind of a refusal.
func kindOf(t *testing.T, err error) string {
	t.Helper()
	var e *domain.Error
	require.ErrorAs(t, err, &e)
	return e.Kind
}

func TestATokenIsGoodFromTheCommitOnUntilItIsRevoked(t *testing.T) {
	tokens := NewTokens()
	var commit later
	one := tokens.Issue(&commit, domain.Turn{ID: 1, Session: 7})
	other := tokens.Issue(&commit, domain.Turn{ID: 2, Session: 7})
	assert.Len(t, one, 64)
	assert.NotEqual(t, one, other)
	_, err := tokens.Find(one)
	assert.Equal(t, domain.KindInvalidToken, kindOf(t, err), "nothing was kept yet")
	commit.run()
	found, err := tokens.Find(one)
	require.NoError(t, err)
	assert.Equal(t, Token{Session: 7, Turn: 1}, found)
	tokens.Revoke(1)
	for _, text := range []string{one, "", one + " ", "nonsense"} {
		_, err = tokens.Find(text)
		assert.Equal(t, domain.KindInvalidToken, kindOf(t, err), "%q", text)
	}
	_, err = tokens.Find(other)
	require.NoError(t, err)
}

// later is a transaction that has not committed.
type later []func()

func (l *later) AfterCommit(f func()) { *l = append(*l, f) }

func (l *later) run() {
	for _, f := range *l {
		f()
	}
}

func TestWhereKeysComeFrom(t *testing.T) {
	for name, c := range map[string]struct {
		p     catalog.GetAPIKeyParams
		noted string
	}{
		"a file":                   {catalog.GetAPIKeyParams{Service: "filed"}, "filed: configured"},
		"its variable":             {catalog.GetAPIKeyParams{CredentialKey: "FILED_API_KEY"}, "filed: configured"},
		"the environment":          {catalog.GetAPIKeyParams{Service: "environmental"}, "environmental: environment"},
		"what is configured alone": {catalog.GetAPIKeyParams{Service: "unset"}, "unset: none is configured and no client is there to ask"},
		"nowhere":                  {catalog.GetAPIKeyParams{Service: "other"}, "other: none is configured and no client is there to ask"},
	} {
		t.Run(name, func(t *testing.T) {
			w, token := newWorld(t)
			w.keys.Hold(7)
			c.p.SessionToken = token
			r, err := w.keys.GetAPIKey(t.Context(), c.p)
			assert.Equal(t, []string{c.noted}, w.noted)
			if name == "nowhere" || name == "what is configured alone" {
				assert.Equal(t, domain.KindNoAPIKey, kindOf(t, err))
				assert.ErrorContains(t, err, "no API key for ")
				assert.True(t, w.keys.Of(7).None())
				return
			}
			require.NoError(t, err)
			assert.Equal(t, secret, r.APIKey)
			assert.Equal(t, "[secret]", w.keys.Of(7).Text(secret))
			assert.True(t, w.keys.Of(8).None(), "it is no key of another session's")
		})
	}
	w, token := newWorld(t)
	_, err := w.keys.GetAPIKey(t.Context(), catalog.GetAPIKeyParams{SessionToken: token})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err))
	_, err = w.keys.GetAPIKey(t.Context(), catalog.GetAPIKeyParams{Service: "filed"})
	assert.Equal(t, domain.KindInvalidToken, kindOf(t, err))
	assert.Empty(t, w.noted)
	w.noteFails = errors.New("the disk is full")
	r, err := w.keys.GetAPIKey(t.Context(), catalog.GetAPIKeyParams{SessionToken: token, Service: "filed"})
	require.EqualError(t, err, "the disk is full", "no key is handed out of which nothing is noted")
	assert.Empty(t, r.APIKey)
}

func TestAPersonIsAskedForAKey(t *testing.T) {
	for _, c := range []struct{ answer, noted string }{
		{secret, "other: given by a client"},
		{"", "other: the client that was asked gave none"},
	} {
		w, token := newWorld(t)
		w.subscribe = func(e domain.Event) {
			assert.EqualValues(t, 3, e.Turn)
			assert.Zero(t, e.Seq)
			assert.Equal(t, "session", e.Ref.HumanLayerSession)
			asked := e.Payload.(domain.SecretRequested)
			assert.Equal(t, "other", asked.Service)
			assert.Equal(t, domain.KindInvalid, kindOf(t, w.keys.Provide("another request", "x")))
			require.NoError(t, w.keys.Provide(asked.RequestID, c.answer))
			assert.Equal(t, domain.KindInvalid, kindOf(t, w.keys.Provide(asked.RequestID, "x")), "the first answer counts")
		}
		r, _ := w.keys.GetAPIKey(t.Context(), catalog.GetAPIKeyParams{SessionToken: token, Service: "other"})
		assert.Equal(t, c.answer, r.APIKey)
		assert.Equal(t, []string{c.noted}, w.noted)
		assert.Empty(t, w.keys.requests)
	}
}

func TestAPersonIsNotWaitedForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, token := newWorld(t)
		w.subscribe = func(domain.Event) {}
		began := time.Now()
		_, err := w.keys.GetAPIKey(t.Context(), catalog.GetAPIKeyParams{SessionToken: token, Service: "other"})
		assert.ErrorContains(t, err, "no client gave one in time")
		assert.Equal(t, askFor, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = w.keys.GetAPIKey(ctx, catalog.GetAPIKeyParams{SessionToken: token, Service: "other"})
		assert.ErrorContains(t, err, "cancelled")
		assert.Equal(t, askFor+time.Second, time.Since(began))
		assert.Empty(t, w.keys.requests)
		assert.Equal(t, 2, w.withdrawn)

		w.subscribe = nil
		began = time.Now()
		_, err = w.keys.GetAPIKey(t.Context(), catalog.GetAPIKeyParams{SessionToken: token, Service: "other"})
		assert.ErrorContains(t, err, "no client is there to ask")
		assert.Zero(t, time.Since(began), "a turn that began long ago")
	})
}

// A client that starts a session subscribes a moment later. A key request waits for a client only
// that long.
func TestAKeyWaitsForTheClientThatBeginsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, token := newWorld(t)
		get := func() error {
			_, err := w.keys.GetAPIKey(t.Context(), catalog.GetAPIKeyParams{SessionToken: token, Service: "other"})
			return err
		}
		w.created = time.Now()
		began := time.Now()
		assert.ErrorContains(t, get(), "no client is there to ask")
		assert.Equal(t, comeWithin, time.Since(began))
		assert.ErrorContains(t, get(), "no client is there to ask")
		assert.Equal(t, comeWithin, time.Since(began), "the moment is over")

		w.created = time.Now().Add(-comeWithin / 2)
		began = time.Now()
		assert.ErrorContains(t, get(), "no client is there to ask")
		assert.Equal(t, comeWithin/2, time.Since(began))

		w.created = time.Now().Add(time.Hour)
		began = time.Now()
		assert.ErrorContains(t, get(), "no client is there to ask")
		assert.Equal(t, comeWithin, time.Since(began), "the clock was set back")

		w.subscribe = func(domain.Event) {}
		w.created = time.Time{}
		for range 100 { // a present subscriber is asked, however old the turn is
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := w.keys.GetAPIKey(ctx, catalog.GetAPIKeyParams{SessionToken: token, Service: "other"})
			assert.ErrorContains(t, err, "cancelled")
			cancel()
		}
	})
}

// A key is remembered as long as an agent may have it. Without keys, no timer wakes the process.
func TestKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeys(Options{})
		defer k.Close()
		for session := range int64(5 * mostIdle / 10) {
			s := k.Hold(session)
			switch session % 5 {
			case 0, 1:
				k.add(session, secret)
				assert.Equal(t, "[secret]", s.Text(secret))
				k.Release(session)
			case 2: // active
				k.add(session, secret)
			default: // without keys
				k.Release(session)
			}
		}
		assert.Len(t, k.sessions, 3*mostIdle/10, "those without a key are not kept at all")
		time.Sleep(keepIdle - time.Second)
		assert.False(t, k.Of(5).None())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Len(t, k.sessions, mostIdle/10+1, "those that run, and the one of which something was heard")
		assert.False(t, k.Of(2).None())
		assert.True(t, k.Of(0).None())
		time.Sleep(keepIdle)
		synctest.Wait()
		assert.Len(t, k.sessions, mostIdle/10)
		assert.Nil(t, k.expiry)
	})
}

func TestKeysOfHowManySessionsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeys(Options{})
		defer k.Close()
		for session := range int64(mostIdle + 2) {
			k.Hold(session)
			k.add(session, secret)
			k.Release(session)
			time.Sleep(time.Microsecond)
		}
		assert.Len(t, k.sessions, mostIdle)
		assert.True(t, k.Of(1).None(), "the one that has had nothing to do for the longest goes first")
		assert.False(t, k.Of(2).None())
	})
}
