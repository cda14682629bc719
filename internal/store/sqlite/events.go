package sqlite

import (
	"context"

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
