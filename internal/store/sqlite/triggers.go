package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// This file keeps what triggers have done, and what is remembered of each.

// triggerReader are as of [store.TriggerReader].
type triggerReader struct{ Statements *statement.Cache }

const triggerColumns = "id, name, event_key, event_type, event_source, event, at, status, action, does, run, approval, depth, error"

func scanTrigger(row statement.Scanner) (e domain.TriggerExecution, err error) {
	var (
		at          int64
		event, does statement.JSON
	)
	err = row.Scan(&e.ID, &e.Trigger, &e.Key, &e.EventType, &e.EventSource, &event, &at, &e.Status, &e.Action, &does, &e.Run, &e.Approval, &e.Depth, &e.Error)
	e.Event, e.Does, e.Time = event.Raw(), does.Raw(), statement.Time(at)
	return e, err
}

// TriggerExecutions is as of [store.TriggerReader].
func (q triggerReader) TriggerExecutions(ctx context.Context, trigger string, limit int) ([]domain.TriggerExecution, error) {
	return statement.All(ctx, q.Statements, scanTrigger, "SELECT "+triggerColumns+" FROM trigger_executions WHERE ?1 = '' OR name = ?1 ORDER BY id DESC LIMIT ?2", trigger, limit)
}

// open is the condition of an index; the order of what is in it matters not.
const open = "status IN ('" + domain.TriggerWaiting + "', '" + domain.TriggerSending + "')"

// OpenTriggerExecutions is as of [store.TriggerReader].
func (q triggerReader) OpenTriggerExecutions(ctx context.Context) ([]domain.TriggerExecution, error) {
	return statement.All(ctx, q.Statements, scanTrigger, "SELECT "+triggerColumns+" FROM trigger_executions WHERE "+open+" ORDER BY id")
}

// HasTriggerExecution is as of [store.TriggerReader].
func (q triggerReader) HasTriggerExecution(ctx context.Context, trigger, key string) (bool, error) {
	n, err := statement.One(ctx, q.Statements, statement.Value[int], "SELECT count(*) FROM trigger_executions WHERE name = ? AND event_key = ?", trigger, key)
	return n > 0, err
}

// TriggerState is as of [store.TriggerReader].
func (q triggerReader) TriggerState(ctx context.Context, trigger string) (domain.TriggerState, error) {
	s, err := statement.One(ctx, q.Statements, scanState, "SELECT name, enabled, fired, looked, window, count, limited FROM trigger_states WHERE name = ?", trigger)
	if errors.Is(err, store.ErrNotFound) {
		return domain.TriggerState{Trigger: trigger}, nil
	}
	return s, err
}

func scanState(row statement.Scanner) (s domain.TriggerState, err error) {
	var (
		enabled               *bool
		fired, looked, window int64
	)
	err = row.Scan(&s.Trigger, &enabled, &fired, &looked, &window, &s.Count, &s.Limited)
	s.Enabled, s.Fired, s.Looked, s.Window = enabled, statement.Time(fired), statement.Time(looked), statement.Time(window)
	return s, err
}

// A triggerrowTriggerWriter is as of [store.TriggerWriter].
type triggerrowTriggerWriter struct {
	// Exec runs a statement that changes something, in the transaction under way.
	Exec func(query string, args ...any) (sql.Result, error)
}

// InsertTriggerExecution is as of [store.TriggerWriter].
func (w triggerrowTriggerWriter) InsertTriggerExecution(e *domain.TriggerExecution) error {
	result, err := w.Exec("INSERT INTO trigger_executions (name, event_key, event_type, event_source, event, at, status, action, does, run, approval, depth, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		e.Trigger, e.Key, e.EventType, e.EventSource, string(e.Event), statement.Nano(e.Time), e.Status, e.Action, string(e.Does), e.Run, e.Approval, e.Depth, e.Error)
	if err != nil {
		return err
	}
	if e.ID, err = result.LastInsertId(); err != nil {
		return err
	}
	_, err = w.Exec("DELETE FROM trigger_executions WHERE id <= ? AND NOT "+open, e.ID-store.MostTriggerExecutions)
	return err
}

// UpdateTriggerExecution is as of [store.TriggerWriter].
func (w triggerrowTriggerWriter) UpdateTriggerExecution(e domain.TriggerExecution) error {
	_, err := w.Exec("UPDATE trigger_executions SET status = ?, run = ?, approval = ?, error = ? WHERE id = ?", e.Status, e.Run, e.Approval, e.Error, e.ID)
	return err
}

// PutTriggerState is as of [store.TriggerWriter].
func (w triggerrowTriggerWriter) PutTriggerState(s domain.TriggerState) error {
	_, err := w.Exec("INSERT OR REPLACE INTO trigger_states (name, enabled, fired, looked, window, count, limited) VALUES (?, ?, ?, ?, ?, ?, ?)",
		s.Trigger, s.Enabled, statement.Nano(s.Fired), statement.Nano(s.Looked), statement.Nano(s.Window), s.Count, s.Limited)
	return err
}
