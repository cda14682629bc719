package sqlite

import (
	"context"
	"database/sql"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// This file keeps what people have decided about changes of files.

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
