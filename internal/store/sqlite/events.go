package sqlite

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func scanEvent(row scanner) (domain.Event, error) {
	var (
		e         domain.Event
		at        int64
		key, text *string
		data      *jsonText
	)
	err := row.Scan(&e.Seq, &at, &e.Type, &e.Thread, &e.Run, &key, &text, &data)
	e.Time = fromNano(at)
	if key != nil {
		e.Key = *key
	}
	if text != nil {
		e.Text = *text
	}
	if data != nil {
		e.Data = data.raw()
	}
	return e, err
}

const eventColumns = "seq, at, type, thread, run, key, text, data"

// Events lists the log from after seq on, at most limit entries. With an error
// it returns those before what could not be read.
func (q eventQueries) Events(ctx context.Context, after int64, limit int) ([]domain.Event, error) {
	return all(ctx, q.s, scanEvent, "SELECT "+eventColumns+" FROM events WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)
}

// LastSeq is the number of the last event, or 0.
func (q eventQueries) LastSeq(ctx context.Context) (int64, error) {
	return one(ctx, q.s, scanValue[int64], "SELECT coalesce(max(seq), 0) FROM events")
}

// Append adds an event to the log and returns its number.
func (t *Tx) Append(e domain.Event) (int64, error) {
	e.Seq = t.seq + 1
	e.Time = t.now
	var key, text, data any // NULL unless there is something: most events have only one of them
	if e.Key != "" {
		key = e.Key
	}
	if e.Text != "" {
		text = e.Text
	}
	if e.Data != nil {
		data = string(e.Data)
	}
	if _, err := t.exec("INSERT INTO events ("+eventColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		e.Seq, nano(e.Time), e.Type, e.Thread, e.Run, key, text, data); err != nil {
		return 0, err
	}
	t.seq = e.Seq
	t.events = append(t.events, e)
	return e.Seq, nil
}

// Seq is the number of the last event of the log, this transaction's
// included.
func (t *Tx) Seq() int64 { return t.seq }
