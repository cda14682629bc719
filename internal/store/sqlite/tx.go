package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// A Tx is a transaction under way. It belongs to the change that it was given
// to, and sees what that changed.
type Tx struct {
	queries
	triggerWriter
	gateWriter
	pageWriter
	reviewWriter
	now      time.Time // of this change
	places   *places
	seq      int64
	events   []domain.Event
	after    []func()
	indexDue bool // items were written whose words are to be indexed
	changed  int  // statements since the checkpointer was woken
}

// Now is the time of the change.
func (t *Tx) Now() time.Time { return t.now }

// AfterCommit is as of [store.Tx].
func (t *Tx) AfterCommit(f func()) { t.after = append(t.after, f) }

// queries are what can be asked, by what it is about. Each has the same statements.
type queries struct {
	threadQueries
	runQueries
	eventQueries
	itemQueries
	approvalQueries
	executorQueries
	usageQueries
	agentSessionQueries
	triggerQueries
	gateQueries
	pageQueries
	reviewQueries

	s *statement.Cache
}

type (
	threadQueries   struct{ s *statement.Cache }
	runQueries      struct{ s *statement.Cache }
	eventQueries    struct{ s *statement.Cache }
	itemQueries     struct{ s *statement.Cache }
	approvalQueries struct{ s *statement.Cache }
	executorQueries struct{ s *statement.Cache }

	usageQueries        = usagerowUsageQueries
	triggerQueries      = triggerReader
	triggerWriter       = triggerrowTriggerWriter
	gateQueries         = gateReader
	gateWriter          = gaterowGateWriter
	agentSessionQueries = agentsessionrowAgentSessionQueries
	pageQueries         = pageReader
	pageWriter          = pagerowPageWriter
	reviewQueries       = reviewReader
	reviewWriter        = reviewrowReviewWriter
)

func newQueries(s *statement.Cache) queries {
	return queries{
		threadQueries: threadQueries{s}, runQueries: runQueries{s}, eventQueries: eventQueries{s}, itemQueries: itemQueries{s},
		approvalQueries: approvalQueries{s}, executorQueries: executorQueries{s}, usageQueries: usageQueries{Statements: s}, agentSessionQueries: agentSessionQueries{Statements: s}, triggerQueries: triggerQueries{Statements: s}, gateQueries: gateQueries{Statements: s}, pageQueries: pageQueries{Statements: s}, reviewQueries: reviewQueries{Statements: s}, s: s,
	}
}

var background = context.Background()

// exec runs a statement that changes something.
func (t *Tx) exec(query string, args ...any) (sql.Result, error) {
	t.changed++
	return t.s.Exec(background, query, args...)
}

// changeOne runs a statement that must change one row.
func (t *Tx) changeOne(what, query string, args ...any) error {
	result, err := t.exec(query, args...)
	if err != nil {
		return fmt.Errorf("changing %s: %w", what, err)
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("changing %s: %w", what, store.ErrNotFound)
	}
	return nil
}

var nano, fromNano = statement.Nano, statement.Time

// asJSON is a value as it is kept in a text column; the zero value of T is "".
func asJSON[T any](v T, empty bool) string {
	if empty {
		return ""
	}
	text, err := rowjson.Encode(v)
	if err != nil {
		panic(fmt.Sprintf("store: %T has no JSON: %v", v, err))
	}
	return text
}

func fromJSON[T any](text string) (v T) {
	if text != "" {
		_ = json.Unmarshal([]byte(text), &v) // what we wrote ourselves
	}
	return v
}

// Meta is a named value, or "" if it was never set.
func (q executorQueries) Meta(ctx context.Context, key string) (string, error) {
	v, err := statement.One(ctx, q.s, statement.Value[string], "SELECT value FROM meta WHERE key = ?", key)
	if err == store.ErrNotFound {
		return "", nil
	}
	return v, err
}

// SetMeta sets a named value.
func (t *Tx) SetMeta(key, value string) error {
	_, err := t.exec("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", key, value)
	return err
}
