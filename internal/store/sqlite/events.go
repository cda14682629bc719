package sqlite

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/eventrow"
)

// scanEvent reads a row of the log. Where it cannot be what was written, its
// payload is unreadable.
func (q eventQueries) scanEvent(row scanner) (domain.Event, error) {
	var (
		e    domain.Event
		at   int64
		c    eventrow.Columns
		data *jsonText
	)
	if err := row.Scan(&e.Seq, &at, &c.Type, &e.Thread, &e.Run, &c.Key, &c.Text, &data); err != nil {
		return e, err
	}
	e.Time = fromNano(at)
	if data != nil && *data == damagedJSON { // it was noted when it was scanned
		e.Payload = domain.Unreadable{}
		return e, nil
	}
	c.Data = (*string)(data)
	var err error
	if e.Ref, e.Payload, err = eventrow.Decode(c); err != nil {
		q.s.damaged(&DamagedError{err})
		e.Ref, e.Payload = domain.RunRef{}, domain.Unreadable{}
	}
	return e, nil
}

const eventColumns = "seq, at, type, thread, run, key, text, data"

// Events lists the log from after seq on, at most limit entries. With an error
// it returns those before what could not be read.
func (q eventQueries) Events(ctx context.Context, after int64, limit int) ([]domain.Event, error) {
	return all(ctx, q.s, q.scanEvent, "SELECT "+eventColumns+" FROM events WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)
}

// LastSeq is the number of the last event, or 0.
func (q eventQueries) LastSeq(ctx context.Context) (int64, error) {
	return one(ctx, q.s, scanValue[int64], "SELECT coalesce(max(seq), 0) FROM events")
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
