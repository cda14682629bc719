package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/eventrow"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// A loggedRow is a row of the log whose payload is still to be made of its
// columns.
type loggedRow struct {
	event   domain.Event
	columns eventrow.Columns
	damaged bool
}

func scanLogged(row statement.Scanner) (r loggedRow, err error) {
	var at int64
	var data *statement.JSON
	e, c := &r.event, &r.columns
	if err := row.Scan(&e.Seq, &at, &c.Type, &e.Thread, &e.Run, &c.Key, &c.Text, &data); err != nil {
		return r, err
	}
	e.Time = fromNano(at)
	r.damaged = data != nil && *data == statement.DamagedJSON // it was noted when it was scanned
	c.Data = (*string)(data)
	return r, nil
}

// log lists events that a query chooses. Payloads are made when all rows have been
// read: while they are, SQLite cannot begin its write-ahead log anew
// (https://sqlite.org/wal.html#avoiding_excessively_large_wal_files). What cannot
// be what was written is unreadable.
func (q eventQueries) log(ctx context.Context, query string, args ...any) ([]domain.Event, error) {
	rows, err := statement.All(ctx, q.s, scanLogged, "SELECT "+eventColumns+" FROM events"+query, args...)
	if len(rows) == 0 {
		return nil, err
	}
	events := make([]domain.Event, len(rows))
	for i := range rows {
		r := &rows[i]
		e := r.event
		if r.damaged {
			e.Payload = domain.Unreadable{}
		} else if ref, payload, err := eventrow.Decode(r.columns); err == nil {
			e.Ref, e.Payload = ref, payload
		} else {
			q.s.Report(&statement.DamagedError{Err: err})
			e.Payload = domain.Unreadable{}
		}
		events[i] = e
	}
	return events, err
}

const eventColumns = "seq, at, type, thread, run, key, text, data"

// Events lists the log from after seq on, at most limit entries. With an error
// it returns those before what could not be read.
func (q eventQueries) Events(ctx context.Context, after int64, limit int) ([]domain.Event, error) {
	return q.log(ctx, " WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)
}

// LastSeq is the number of the last event, or 0.
func (q eventQueries) LastSeq(ctx context.Context) (int64, error) {
	return statement.One(ctx, q.s, statement.Value[int64], "SELECT coalesce(max(seq), 0) FROM events")
}

// Append adds an event to the log and returns its number.
func (t *Tx) Append(e domain.Event) (int64, error) {
	e.Seq = t.seq + 1
	e.Time = t.now
	row, err := eventrow.Encode(e)
	if err != nil {
		return 0, err
	}
	if _, err := t.exec("INSERT INTO events ("+eventColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		e.Seq, nano(e.Time), row.Type, e.Thread, e.Run, row.Key, row.Text, row.Data); err != nil {
		return 0, err
	}
	t.seq = e.Seq
	t.events = append(t.events, e)
	return e.Seq, nil
}

// Seq is the number of the last event of the log, this transaction's
// included.
func (t *Tx) Seq() int64 { return t.seq }

func scanChange(row statement.Scanner) (c domain.Change, err error) {
	var updated int64
	err = row.Scan(&c.Run, &c.Path, &c.Before, &c.After, &c.Binary, &c.Seq, &updated)
	c.Updated = fromNano(updated)
	return c, err
}

// Changes lists the files that a run changed, by path.
func (q itemQueries) Changes(ctx context.Context, run int64) ([]domain.Change, error) {
	return statement.All(ctx, q.s, scanChange, "SELECT run, path, before, after, binary, seq, updated FROM changes WHERE run = ? ORDER BY path", run)
}

// PutChange keeps how a run changed a file. What the file was before is kept
// from the first time.
func (t *Tx) PutChange(c domain.Change) error {
	_, err := t.exec(`INSERT INTO changes (run, path, before, after, binary, seq, updated) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET after = excluded.after, binary = binary OR excluded.binary, seq = excluded.seq, updated = excluded.updated`,
		c.Run, c.Path, c.Before, c.After, c.Binary, c.Seq, nano(c.Updated))
	return err
}

// What follows sums up what runs have used.

// usagerowUsageQueries sum up the rows of runs.
type usagerowUsageQueries struct{ Statements *statement.Cache }

// What a run waited for people is taken from its time. Tokens that were read from a
// cache, or written to it, are told beside the others, as agents tell them.
const sums = `count(*),
	coalesce(sum(used ->> '$.input'), 0), coalesce(sum(used ->> '$.output'), 0),
	coalesce(sum(used ->> '$.cache_read'), 0), coalesce(sum(used ->> '$.cache_write'), 0),
	coalesce(sum(used ->> '$.cost_usd'), 0.0),
	coalesce(sum(max(0, CASE WHEN r.started = 0 THEN 0 WHEN r.ended = 0 THEN ? - r.started ELSE r.ended - r.started END
		- coalesce((SELECT sum((CASE WHEN a.decided = 0 THEN ? ELSE a.decided END) - a.created) FROM approvals a WHERE a.run = r.id), 0))), 0)`

const runs = ` FROM (SELECT *, CASE WHEN json_valid(tokens) THEN tokens ELSE '{}' END AS used FROM runs) r JOIN threads t ON t.id = r.thread
	WHERE r.state NOT IN ('draft', 'discarded')`

// chosen are the runs of a filter, and the arguments of [sums] and of that.
func chosen(f domain.UsageFilter, now time.Time) (from string, arguments []any) {
	from, arguments = runs, []any{now.UnixNano(), now.UnixNano()}
	only := func(condition string, value int64) {
		from, arguments = from+" AND "+condition, append(arguments, value)
	}
	if f.Thread != 0 {
		only("r.thread = ?", f.Thread)
	}
	if f.After != 0 {
		only("r.id > ?", f.After)
	}
	if !f.Since.IsZero() {
		only("r.created >= ?", f.Since.UnixNano())
	}
	if !f.Til.IsZero() {
		only("r.created < ?", f.Til.UnixNano())
	}
	return from, arguments
}

func scanUsage(row statement.Scanner, u *domain.Usage, more ...any) error {
	k := &u.Tokens
	return row.Scan(append([]any{&u.Runs, &k.Input, &k.Output, &k.CacheRead, &k.CacheWrite, &k.CostUSD, (*int64)(&u.Time)}, more...)...)
}

// Usage is as of [store.UsageReader].
func (q usagerowUsageQueries) Usage(ctx context.Context, f domain.UsageFilter, now time.Time) (domain.Usage, error) {
	from, arguments := chosen(f, now)
	return statement.One(ctx, q.Statements, func(row statement.Scanner) (u domain.Usage, err error) {
		err = scanUsage(row, &u)
		return u, err
	}, "SELECT "+sums+from, arguments...)
}

// UsageBy is as of [store.UsageReader].
func (q usagerowUsageQueries) UsageBy(ctx context.Context, f domain.UsageFilter, by domain.UsageBy, now time.Time) ([]domain.UsageRow, error) {
	key, title, order := "", "''", "1"
	switch by {
	case domain.UsageByDay:
		key, order = "date(r.created / 1000000000, 'unixepoch', 'localtime')", "9 DESC"
	case domain.UsageByAgent:
		key, order = "r.agent", "6 DESC, 9"
	case domain.UsageByModel:
		key, order = "r.agent_model", "6 DESC, 9"
	case domain.UsageByThread:
		key, title, order = "t.uuid", "t.title", "6 DESC, max(r.id) DESC"
	default:
		return nil, fmt.Errorf("usage cannot be told by %q", by)
	}
	from, arguments := chosen(f, now)
	return statement.All(ctx, q.Statements, func(row statement.Scanner) (u domain.UsageRow, err error) {
		err = scanUsage(row, &u.Usage, &u.Title, &u.Key)
		return u, err
	}, "SELECT "+sums+", "+title+", "+key+from+" GROUP BY "+key+" ORDER BY "+order, arguments...)
}

// LastWith is as of [store.UsageReader].
func (q usagerowUsageQueries) LastWith(ctx context.Context, thread int64, code string) (id int64, err error) {
	return statement.One(ctx, q.Statements, func(row statement.Scanner) (id int64, err error) {
		err = row.Scan(&id)
		return id, err
	},
		"SELECT coalesce(max(id), 0) FROM runs WHERE thread = ? AND error_code = ?", thread, code)
}
