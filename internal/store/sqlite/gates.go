package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
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
