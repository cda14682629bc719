package sqlite

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// roundTrip inserts a row, changes it, and reads it back both times. missing are columns of the
// table that T does not have.
func roundTrip[T any](t *testing.T, table string, updates bool, missing ...string) {
	t.Run(table, func(t *testing.T) {
		s := openNew(t)
		n := 0
		var want T
		testkit.Fill(reflect.ValueOf(&want).Elem(), &n)
		list := layoutOf(reflect.TypeFor[T]()).columns
		for _, c := range list {
			if c.read {
				reflect.ValueOf(&want).Elem().FieldByIndex(c.index).SetZero()
			}
		}
		write := func(f func(t *Tx) error) {
			require.NoError(t, s.Write(ctx, func(tx store.Tx) error { return f(tx.(*Tx)) }))
		}
		read := func() T {
			var got T
			require.NoError(t, s.s.each(ctx, func(r row) error {
				scan := []any{}
				for _, c := range list {
					if !c.read {
						scan = append(scan, c.target(reflect.ValueOf(&got).Elem()))
					}
				}
				return r.Scan(scan...)
			}, "SELECT "+columnNames[T](table)+" FROM "+table))
			return got
		}
		if table == "turns" { // a turn needs a session
			write(func(tx *Tx) error {
				session := domain.Session{UUID: "t"}
				if err := tx.InsertSession(&session); err != nil {
					return err
				}
				reflect.ValueOf(&want).Elem().FieldByName("Session").SetInt(session.ID)
				return nil
			})
		}
		write(func(tx *Tx) error {
			id, err := insert(tx, table, &want, "")
			for _, c := range list {
				if c.auto {
					reflect.ValueOf(&want).Elem().FieldByIndex(c.index).SetInt(id)
				}
			}
			return err
		})
		assert.Equal(t, want, read())

		var known []string
		for _, c := range list {
			if !c.read {
				known = append(known, c.name)
			}
		}
		names, err := all[string](ctx, s.s, "SELECT name FROM pragma_table_info(?)", table)
		require.NoError(t, err)
		assert.ElementsMatch(t, names, append(known, missing...), "columns without a field, or fields without a column")

		if !updates {
			return
		}
		var other T
		testkit.Fill(reflect.ValueOf(&other).Elem(), &n)
		v := reflect.ValueOf(&want).Elem()
		for _, c := range list {
			if !c.read && !c.fixed {
				v.FieldByIndex(c.index).Set(reflect.ValueOf(&other).Elem().FieldByIndex(c.index))
			}
		}
		write(func(tx *Tx) error { return update(tx, table, table, &want) })
		assert.Equal(t, want, read())
	})
}

func TestEveryFieldIsStored(t *testing.T) {
	roundTrip[domain.Session](t, "sessions", true, "turns")
	roundTrip[domain.Turn](t, "turns", true)
	roundTrip[itemRow](t, "items", true)
	roundTrip[domain.Approval](t, "approvals", true, "n")
	roundTrip[domain.Rule](t, "rules", false)
	roundTrip[domain.Change](t, "changes", false)
	roundTrip[domain.ChangeDecision](t, "change_decisions", false)
	roundTrip[domain.AgentSessionSeen](t, "agent_sessions", false)
	roundTrip[domain.Process](t, "processes", false)
	roundTrip[domain.KeyAccess](t, "key_access", false, "id")
	roundTrip[domain.GateLoop](t, "gate_loops", true)
	roundTrip[domain.TriggerExecution](t, "trigger_executions", true)
	roundTrip[domain.TriggerState](t, "trigger_states", false)
	roundTrip[domain.PageMessage](t, "page_messages", true)
	roundTrip[eventRow](t, "events", false)
}

func TestZeroFieldsAreStored(t *testing.T) {
	s := openNew(t)
	turn, session := domain.Turn{}, domain.Session{}
	require.NoError(t, s.Write(ctx, func(tx store.Tx) error {
		if err := tx.InsertSession(&session); err != nil {
			return err
		}
		turn.Session = session.ID
		return tx.InsertTurn(&turn)
	}))
	got, err := s.TurnInSession(ctx, turn.ID)
	require.NoError(t, err)
	assert.Equal(t, domain.TurnInSession{Turn: turn, Session: session}, got)
}

func TestEveryPayloadIsStored(t *testing.T) {
	for kind, read := range payloads {
		t.Run(string(kind), func(t *testing.T) {
			_, zero, err := read([]byte("{}"))
			require.NoError(t, err)
			n := 0
			want := reflect.New(reflect.TypeOf(zero)).Elem()
			testkit.Fill(want, &n)
			event := domain.Event{Seq: 1, Time: time.Unix(0, 7).UTC(), Ref: domain.TurnRef{HumanLayerSession: "s", HumanLayerRun: "r", Task: 3}, Payload: want.Interface().(domain.Payload)}
			r, err := rowOfEvent(event)
			require.NoError(t, err)
			assert.Equal(t, string(kind), r.Type)
			got, err := r.value()
			require.NoError(t, err)
			assert.Equal(t, event, got)
			r, err = rowOfEvent(domain.Event{Payload: zero})
			require.NoError(t, err)
			got, err = r.value()
			require.NoError(t, err)
			assert.Equal(t, zero, got.Payload)
		})
	}
	key, text := "k", "a <b>"
	for _, want := range []domain.MessageDelta{{Key: key, Text: text}, {Key: key, Thought: true}, {Key: key, ParentID: "p", Meta: json.RawMessage(`{"n":1.50}`)}} {
		r, err := rowOfEvent(domain.Event{Payload: want})
		require.NoError(t, err)
		got, err := r.value()
		require.NoError(t, err)
		assert.Equal(t, want, got.Payload)
	}
}
