package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// This file keeps work that goes on until its gates pass.

// gateReader are as of [store.GateReader].
type gateReader struct{ Statements *statement.Cache }

const gateColumns = "l.id, l.thread, l.run, l.gates, l.max_iterations, l.iteration, l.state, l.reason, l.results"

func scanGate(row statement.Scanner) (l domain.GateLoop, err error) {
	return l, scanInto(row, &l)
}

func scanInto(row statement.Scanner, l *domain.GateLoop, more ...any) error {
	var gates, results statement.JSON
	err := row.Scan(append(more, &l.ID, &l.Thread, &l.Run, &gates, &l.MaxIterations, &l.Iteration, &l.State, &l.Reason, &results)...)
	if err != nil {
		return err
	}
	var list []gateRowOf
	_ = json.Unmarshal(gates.Intact(), &list) // what is damaged was reported
	for _, g := range list {
		l.Gates = append(l.Gates, domain.Gate(g))
	}
	l.Results = rowjson.GateResults(results.Intact())
	return nil
}

type gateRowOf struct {
	Name       string `json:"name"`
	Configured bool   `json:"configured,omitempty"`
}

// GateLoop is as of [store.GateReader].
func (q gateReader) GateLoop(ctx context.Context, run int64) (domain.GateLoop, error) {
	return statement.One(ctx, q.Statements, scanGate, "SELECT "+gateColumns+" FROM gate_runs r JOIN gate_loops l ON l.id = r.loop WHERE r.run = ?", run)
}

// GateLoops is as of [store.GateReader].
func (q gateReader) GateLoops(ctx context.Context, runs []int64) (map[int64]domain.GateLoop, error) {
	found := make(map[int64]domain.GateLoop)
	if len(runs) == 0 {
		return found, nil
	}
	ids, err := json.Marshal(runs)
	if err != nil {
		return nil, err
	}
	type member struct {
		run int64
		domain.GateLoop
	}
	list, err := statement.All(ctx, q.Statements, func(row statement.Scanner) (m member, err error) {
		return m, scanInto(row, &m.GateLoop, &m.run)
	}, "SELECT r.run, "+gateColumns+" FROM json_each(?) j JOIN gate_runs r ON r.run = j.value JOIN gate_loops l ON l.id = r.loop", string(ids))
	for _, m := range list {
		found[m.run] = m.GateLoop
	}
	return found, err
}

// CheckedLoops is as of [store.GateReader].
func (q gateReader) CheckedLoops(ctx context.Context) ([]domain.GateLoop, error) {
	return statement.All(ctx, q.Statements, scanGate, "SELECT "+gateColumns+" FROM gate_loops l WHERE l.state = 'checking' ORDER BY l.id")
}

// HasDenied is as of [store.GateReader].
func (q gateReader) HasDenied(ctx context.Context, run int64) (bool, error) {
	return statement.One(ctx, q.Statements, statement.Value[bool], "SELECT EXISTS (SELECT 1 FROM approvals WHERE run = ? AND status = 'denied' AND decided_by = '"+domain.DecidedByUser+"')", run)
}

// A gaterowGateWriter is as of [store.GateWriter].
type gaterowGateWriter struct {
	// Exec runs a statement that changes something, in the transaction under way.
	Exec func(query string, args ...any) (sql.Result, error)
}

// InsertGateLoop is as of [store.GateWriter].
func (w gaterowGateWriter) InsertGateLoop(l *domain.GateLoop) error {
	rows := make([]gateRowOf, 0, len(l.Gates))
	for _, g := range l.Gates {
		rows = append(rows, gateRowOf(g))
	}
	gates, err := rowjson.Encode(rows)
	if err != nil {
		return err
	}
	result, err := w.Exec("INSERT INTO gate_loops (thread, run, gates, max_iterations, iteration, state, reason, results) VALUES (?, ?, ?, ?, ?, ?, '', '')",
		l.Thread, l.Run, gates, l.MaxIterations, l.Iteration, l.State)
	if err != nil {
		return err
	}
	if l.ID, err = result.LastInsertId(); err != nil {
		return err
	}
	return w.join(*l)
}

// join makes the run of a loop one of it.
func (w gaterowGateWriter) join(l domain.GateLoop) error {
	_, err := w.Exec("INSERT INTO gate_runs (run, loop) VALUES (?1, ?2) ON CONFLICT (run) DO UPDATE SET loop = ?2", l.Run, l.ID)
	return err
}

// UpdateGateLoop is as of [store.GateWriter].
func (w gaterowGateWriter) UpdateGateLoop(l domain.GateLoop) error {
	results, err := rowjson.GateResultsText(l.Results)
	if err != nil {
		return err
	}
	_, err = w.Exec("UPDATE gate_loops SET run = ?, iteration = ?, state = ?, reason = ?, results = ? WHERE id = ?", l.Run, l.Iteration, l.State, l.Reason, results, l.ID)
	if err != nil {
		return err
	}
	return w.join(l)
}

// What follows keeps what people have decided about changes of files.

// reviewReader is as of [store.ReviewReader].
type reviewReader struct{ Statements *statement.Cache }

func scanReview(row statement.Scanner) (d domain.ChangeDecision, err error) {
	return d, row.Scan(&d.Run, &d.Part, &d.State, &d.Mode)
}

// ChangeDecisions is as of [store.ReviewReader].
func (q reviewReader) ChangeDecisions(ctx context.Context, run int64) ([]domain.ChangeDecision, error) {
	return statement.All(ctx, q.Statements, scanReview, "SELECT run, part, state, mode FROM change_decisions WHERE run = ? ORDER BY part", run)
}

// A reviewrowReviewWriter is as of [store.ReviewWriter].
type reviewrowReviewWriter struct {
	// Exec runs a statement that changes something, in the transaction under way.
	Exec func(query string, args ...any) (sql.Result, error)
}

// PutChangeDecision is as of [store.ReviewWriter].
func (w reviewrowReviewWriter) PutChangeDecision(d domain.ChangeDecision) error {
	if d.State == domain.ChangeOpen {
		_, err := w.Exec("DELETE FROM change_decisions WHERE run = ? AND part = ?", d.Run, d.Part)
		return err
	}
	_, err := w.Exec(`INSERT INTO change_decisions (run, part, state, mode) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET state = excluded.state, mode = excluded.mode`, d.Run, d.Part, d.State, d.Mode)
	return err
}

// What follows keeps what pages of a preview have said.

// pageReader is as of [store.PageReader].
type pageReader struct{ Statements *statement.Cache }

func scanPage(row statement.Scanner) (m domain.PageMessage, err error) {
	var at int64
	err = row.Scan(&m.ID, &m.Kind, &m.Level, &m.Text, &m.URL, &m.Line, &m.Column, &m.Stack, &m.Thread, &m.Run, &m.Count, &at, &m.Session)
	m.Time = statement.Time(at)
	return m, err
}

// PageMessages is as of [store.PageReader].
func (q pageReader) PageMessages(ctx context.Context, f domain.PageFilter) ([]domain.PageMessage, error) {
	list, err := statement.All(ctx, q.Statements, scanPage, `SELECT p.id, p.kind, p.level, p.text, p.url, p.line, p.col, p.stack, p.thread, p.run, p.count, p.at, coalesce(r.session_id, '')
		FROM page_messages p LEFT JOIN runs r ON r.id = p.run
		WHERE p.id > ?1 AND (?2 = 0 OR p.thread = ?2) AND (?3 = 0 OR p.run = ?3) AND (NOT ?4 OR p.kind = 'error' OR p.level IN ('warn', 'error')) ORDER BY p.id DESC LIMIT ?5`,
		f.After, f.Thread, f.Run, f.Problems, f.Limit)
	slices.Reverse(list)
	return list, err
}

// A pagerowPageWriter is as of [store.PageWriter].
type pagerowPageWriter struct {
	// Exec runs a statement that changes something, in the transaction under way.
	Exec func(query string, args ...any) (sql.Result, error)
}

// PutPageMessage is as of [store.PageWriter].
func (w pagerowPageWriter) PutPageMessage(m *domain.PageMessage) error {
	if m.ID != 0 {
		_, err := w.Exec("UPDATE page_messages SET count = ?, at = ? WHERE id = ?", m.Count, statement.Nano(m.Time), m.ID)
		return err
	}
	result, err := w.Exec("INSERT INTO page_messages (kind, level, text, url, line, col, stack, thread, run, count, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		m.Kind, m.Level, m.Text, m.URL, m.Line, m.Column, m.Stack, m.Thread, m.Run, m.Count, statement.Nano(m.Time))
	if err != nil {
		return err
	}
	if m.ID, err = result.LastInsertId(); err != nil {
		return err
	}
	_, err = w.Exec("DELETE FROM page_messages WHERE id <= ?", m.ID-store.MostPageMessages)
	return err
}

// What follows keeps what triggers have done, and what is remembered of each.

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
