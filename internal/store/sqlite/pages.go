package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// This file keeps what pages of a preview have said.

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
