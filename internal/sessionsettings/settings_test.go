package sessionsettings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// world fakes everything that Settings uses, and the executor of every session.
type world struct {
	*Settings
	catalog.Lease
	store store.Store

	mu           sync.Mutex // guards the fields below
	works        bool       // an agent is active
	setting      func()     // if not nil, called with each SetSession
	result       catalog.SetSessionResult
	err          error
	set          []catalog.SetSessionParams
	reconsidered []int64
	events       []domain.Event
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{result: catalog.SetSessionResult{Status: catalog.SessionSet}}
	var err error
	w.store, err = sqlite.Opener(filepath.Join(t.TempDir(), "duet.db"))(t.Context(), store.Options{Committed: func(events []domain.Event, _ store.Reader) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, events...)
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	w.Settings = New(ctx, Options{Store: w.store, Query: query.New(ctx, w.store), Turns: w, Agents: w, Questions: w, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		cancel()
		require.NoError(t, w.Close(context.Background()))
		require.NoError(t, w.store.Close())
	})
	return w
}

func (w *world) Write(ctx context.Context, change func(store.Tx) error) error {
	return w.store.Write(ctx, change)
}

func (w *world) LeaseOf(int64) catalog.Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.works {
		return nil
	}
	return w
}

func (w *world) SetSession(_ context.Context, p catalog.SetSessionParams) (catalog.SetSessionResult, error) {
	w.mu.Lock()
	setting := w.setting
	w.set, w.setting = append(w.set, p), nil
	w.mu.Unlock()
	if setting != nil {
		setting()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.result, w.err
}

func (w *world) Agent(name string) (config.Agent, error) {
	if name == "none" {
		return config.Agent{}, errors.New("no such agent")
	}
	return w.Known(name), nil
}

func (w *world) Known(string) config.Agent {
	return config.Agent{Name: "fake", Driver: config.DriverACP}
}

func (w *world) Reconsider(_ store.Tx, session int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reconsidered = append(w.reconsidered, session)
	return nil
}

// session adds a session with a turn in each of the states.
func (w *world) session(t *testing.T, states ...domain.State) (turns []domain.Turn) {
	t.Helper()
	session := domain.Session{UUID: uuid.NewString(), CWD: "/p", Agent: "fake", Mode: catalog.ModeDefault, Created: time.Now(), Active: time.Now()}
	require.NoError(t, w.store.Write(t.Context(), func(tx store.Tx) error {
		if err := tx.InsertSession(&session); err != nil {
			return err
		}
		for _, state := range states {
			r := domain.Turn{
				UUID: uuid.NewString(), HumanLayerSession: uuid.NewString(), HumanLayerRun: uuid.NewString(), Session: session.ID, State: state, Agent: "fake",
				Mode: catalog.ModeDefault, AgentMode: "its own", Created: time.Now(), Active: time.Now(),
			}
			if err := tx.InsertTurn(&r); err != nil {
				return err
			}
			turns = append(turns, r)
		}
		return tx.PutAgentSession(domain.AgentSessionSeen{Session: session.ID, Agent: "fake", Seen: time.Now(), AgentSession: domain.AgentSession{
			Models: &domain.Selection{Choices: []domain.Choice{{ID: "small"}, {ID: "large"}}},
		}})
	}))
	return turns
}

func (w *world) turn(t *testing.T, id int64) domain.Turn {
	t.Helper()
	r, err := w.store.Turn(t.Context(), id)
	require.NoError(t, err)
	return r
}

// A mode applies to the session and its active turns. Queued turns do not begin in the agent's
// earlier mode.
func TestModeOfTurns(t *testing.T) {
	w := newWorld(t)
	turns := w.session(t, domain.Completed, domain.Running, domain.Queued)
	s, err := w.Update(t.Context(), turns[1].UUID, domain.SettingsChanged{Mode: new(catalog.ModePlan)})
	require.NoError(t, err)
	assert.Equal(t, catalog.ModePlan, s.Session.Mode)
	assert.Equal(t, turns[2].ID, s.Session.Settings.ModeTurn)
	for i, want := range []domain.Turn{{Mode: catalog.ModeDefault, AgentMode: "its own"}, {Mode: catalog.ModePlan, AgentMode: "its own"}, {Mode: catalog.ModePlan}} {
		got := w.turn(t, turns[i].ID)
		assert.Equal(t, want, domain.Turn{Mode: got.Mode, AgentMode: got.AgentMode}, "turn %d", i)
	}
	assert.Equal(t, []int64{turns[0].Session}, w.reconsidered)
}

// An option set to "" is removed, and unnamed ones stay.
func TestOptionsAndDeadline(t *testing.T) {
	w := newWorld(t)
	id := w.session(t, domain.Completed)[0].UUID
	var s domain.TurnInSession
	for _, c := range []domain.SettingsChanged{
		{Options: map[string]string{"a": "1", "b": "2"}, Title: new("title"), AdditionalDirectories: &[]string{"/q"}},
		{Options: map[string]string{"a": "", "c": "3"}, SkipPermissions: new(true), SkipUntil: time.Now().Add(time.Hour)},
	} {
		var err error
		s, err = w.Update(t.Context(), id, c)
		require.NoError(t, err)
	}
	assert.Equal(t, map[string]string{"b": "2", "c": "3"}, s.Session.Settings.Options)
	assert.Equal(t, "title", s.Session.Title)
	assert.Equal(t, []string{"/q"}, s.Session.Settings.AdditionalDirectories)
	require.NotNil(t, s.Session.Settings.SkipPermissionsUntil)
	assert.WithinDuration(t, time.Now().Add(time.Hour), *s.Session.Settings.SkipPermissionsUntil, 10*time.Minute)
	for _, c := range []domain.SettingsChanged{{SkipPermissions: new(true)}, {SkipPermissions: new(false), SkipUntil: time.Now().Add(time.Hour)}} {
		s, err := w.Update(t.Context(), id, c)
		require.NoError(t, err)
		assert.Nil(t, s.Session.Settings.SkipPermissionsUntil)
	}
}

// An invalid change is refused before the agent gets it, and nothing changes.
func TestRefusedChanges(t *testing.T) {
	w := newWorld(t)
	w.works = true
	turn := w.session(t, domain.Running)[0]
	for text, c := range map[string]domain.SettingsChanged{
		"permission_mode: expected a permission mode, received an empty string": {Mode: new("")},
		`model: expected a model of the agent fake, received "huge"`:            {Model: new("huge"), Title: new("x")},
	} {
		_, err := w.Update(t.Context(), turn.UUID, c)
		assert.EqualError(t, err, text)
		_, _, err = w.SetAgent(t.Context(), turn.UUID, c)
		assert.EqualError(t, err, text)
	}
	_, err := w.Update(t.Context(), "nothing", domain.SettingsChanged{Title: new("x")})
	var refused *domain.Error
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, domain.KindTurnNotFound, refused.Kind)
	_, err = w.OfAgent(t.Context(), "none")
	assert.EqualError(t, err, "no such agent")
	assert.Empty(t, w.set)
	assert.Empty(t, w.events)
}

// SetAgent reports whether an agent is active, and its refusal, which changes nothing.
func TestSetAgent(t *testing.T) {
	w := newWorld(t)
	turn := w.session(t, domain.Running)[0]
	for _, works := range []bool{false, true} {
		w.works = works
		s, live, err := w.SetAgent(t.Context(), turn.UUID, domain.SettingsChanged{Model: new("small"), Options: map[string]string{"a": ""}})
		require.NoError(t, err)
		assert.Equal(t, works, live)
		assert.Equal(t, "small", s.Session.Model)
	}
	_, _, err := w.SetAgent(t.Context(), turn.UUID, domain.SettingsChanged{Title: new("T")})
	require.NoError(t, err)
	assert.Equal(t, []catalog.SetSessionParams{{SessionID: w.set[0].SessionID, Model: "small"}}, w.set, "an option that is not asked for any more and a title are nothing to set")
	w.result = catalog.SetSessionResult{Status: catalog.SessionRefused, Message: "not now"}
	_, _, err = w.SetAgent(t.Context(), turn.UUID, domain.SettingsChanged{Model: new("large"), Title: new("U")})
	assert.EqualError(t, err, "not now")
	w.err = errors.New("it has gone")
	_, _, err = w.SetAgent(t.Context(), turn.UUID, domain.SettingsChanged{Model: new("large")})
	assert.EqualError(t, err, "cannot send the setting to the agent: it has gone")
	assert.ErrorIs(t, err, w.err)
	session, err := w.store.Session(t.Context(), turn.Session)
	require.NoError(t, err)
	assert.Equal(t, []string{"small", "T"}, []string{session.Model, session.Title})
}

// Update stores the change; a refusal becomes an error of the turn.
func TestRefusalIsToldToTheTurn(t *testing.T) {
	w := newWorld(t)
	w.works, w.result = true, catalog.SetSessionResult{Status: catalog.SessionRefused, Message: "not now"}
	s, err := w.Update(t.Context(), w.session(t, domain.Running)[0].UUID, domain.SettingsChanged{Model: new("large")})
	require.NoError(t, err)
	assert.Equal(t, "large", s.Session.Model)
	require.NoError(t, w.Close(t.Context()))
	last := w.events[len(w.events)-1].Payload
	require.IsType(t, domain.AgentErrorReported{}, last)
	assert.JSONEq(t, `{"code":"SETTING_REFUSED","message":"not now"}`, string(last.(domain.AgentErrorReported).Report))
}

// If Update changes a setting that is just being sent, the agent ends with the stored value.
func TestAgentEndsWithWhatIsKept(t *testing.T) {
	for name, meanwhile := range map[string][]string{"one change": {"large"}, "one there and back": {"large", ""}, "none": nil} {
		w := newWorld(t)
		w.works = true
		turn := w.session(t, domain.Running)[0]
		w.setting = func() {
			for _, model := range meanwhile {
				_, err := w.Update(t.Context(), turn.UUID, domain.SettingsChanged{Model: &model, Options: map[string]string{"a": model}})
				assert.NoError(t, err)
			}
		}
		_, live, err := w.SetAgent(t.Context(), turn.UUID, domain.SettingsChanged{Model: new("small"), Options: map[string]string{"a": "1"}})
		require.NoError(t, err)
		assert.True(t, live)
		require.NoError(t, w.Close(t.Context()))
		session, err := w.store.Session(t.Context(), turn.Session)
		require.NoError(t, err)
		last := w.set[len(w.set)-1]
		assert.Equal(t, []string{session.Model, session.Settings.Options["a"]}, []string{last.Model, last.Options["a"]}, name)
		if meanwhile == nil {
			assert.Len(t, w.set, 1, "it is sent once")
		}
	}
}

// An agent gets changes in the order of their commits, so it ends with the stored values.
func TestAgentIsToldInOrder(t *testing.T) {
	w := newWorld(t)
	w.works = true
	id := w.session(t, domain.Running)[0].UUID
	var want, got []string
	for i := range 60 {
		want = append(want, fmt.Sprint(i))
		_, err := w.Update(t.Context(), id, domain.SettingsChanged{Options: map[string]string{"n": want[i]}})
		require.NoError(t, err)
	}
	require.NoError(t, w.Close(t.Context()))
	for _, p := range w.set {
		got = append(got, p.Options["n"])
	}
	assert.Equal(t, want, got)
}

func (w *world) AgentFor(_ bool, name string) (config.Agent, error) { return w.Agent(name) }

func (w *world) CloseStale(store.Tx, int64) error { return nil }
