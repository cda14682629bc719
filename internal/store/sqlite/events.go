package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An eventRow is a row of the log. type is the kind of the payload, and data the payload as JSON,
// with the turn. A delta has its own columns instead, key and text; its data, which is rare, is a
// deltaData.
type eventRow struct {
	Seq     int64           `db:"seq"`
	At      time.Time       `db:"at"`
	Type    string          `db:"type"`
	Session int64           `db:"session"`
	Turn    int64           `db:"turn"`
	Key     *string         `db:"key"`
	Text    *string         `db:"text"`
	Data    json.RawMessage `db:"data"`
}

// eventData is the content of the column data.
type eventData[P domain.Payload] struct {
	Turn    domain.TurnRef `json:"turn,omitzero"`
	Payload P              `json:"payload"`
}

type deltaData struct {
	ParentID string          `json:"parent,omitempty"`
	Meta     json.RawMessage `json:"_meta,omitempty"`
}

// payloads decode the data of the stored kinds, apart from deltas.
var payloads = map[domain.EventKind]func([]byte) (domain.TurnRef, domain.Payload, error){
	domain.EventTurnState:         payload[domain.TurnStateChanged],
	domain.EventMessage:           payload[domain.MessageAdded],
	domain.EventToolCall:          payload[domain.ToolCallChanged],
	domain.EventApprovalRequested: payload[domain.ApprovalRequested],
	domain.EventApprovalResolved:  payload[domain.ApprovalResolved],
	domain.EventSettings:          payload[domain.SettingsChanged],
	domain.EventNativeSession:     payload[domain.NativeSessionChanged],
	domain.EventAgentMode:         payload[domain.AgentModeChanged],
	domain.EventAgentSession:      payload[domain.AgentSessionChanged],
	domain.EventPlan:              payload[domain.PlanChanged],
	domain.EventUsage:             payload[domain.UsageReported],
	domain.EventFileChange:        payload[domain.FileChanged],
	domain.EventChangeDecided:     payload[domain.ChangeDecided],
	domain.EventQueue:             payload[domain.QueueChanged],
	domain.EventProgress:          payload[domain.ProgressReported],
	domain.EventAgentError:        payload[domain.AgentErrorReported],
	domain.EventAgentUpdate:       payload[domain.AgentUpdated],
	domain.EventAgentSilent:       payload[domain.AgentSilent],
	domain.EventTrigger:           payload[domain.TriggerExecuted],
	domain.EventBuild:             payload[domain.BuildProgressed],
	domain.EventIteration:         payload[domain.IterationStarted],
	domain.EventGateStart:         payload[domain.GateStarted],
	domain.EventGate:              payload[domain.GateChecked],
	domain.EventLoopEnded:         payload[domain.LoopEnded],
	domain.EventSessionDeleted:    payload[domain.SessionDeleted],
	domain.EventErased:            payload[domain.Erased],
	domain.EventTerminalExit:      payload[domain.TerminalExited],
}

func payload[P domain.Payload](data []byte) (domain.TurnRef, domain.Payload, error) {
	var d eventData[P]
	err := json.Unmarshal(data, &d)
	return d.Turn, d.Payload, err
}

// rowOfEvent fails for payloads that the log does not store.
func rowOfEvent(e domain.Event) (eventRow, error) {
	r := eventRow{Seq: e.Seq, At: e.Time, Type: string(e.Payload.Kind()), Session: e.Session, Turn: e.Turn}
	var data any
	if d, ok := e.Payload.(domain.MessageDelta); ok {
		r.Key = &d.Key
		if d.Text != "" {
			r.Text = &d.Text
		}
		if d.ParentID == "" && d.Meta == nil {
			return r, nil
		}
		data = deltaData{d.ParentID, d.Meta}
	} else if payloads[e.Payload.Kind()] != nil {
		data = eventData[domain.Payload]{e.Ref, e.Payload}
	} else {
		return r, fmt.Errorf("%T is not kept in the log", e.Payload)
	}
	text, err := encode(data)
	r.Data = json.RawMessage(text)
	return r, err
}

// value returns the event of a row. The error means that the row is damaged.
func (r eventRow) value() (domain.Event, error) {
	e := domain.Event{Seq: r.Seq, Time: r.At, Session: r.Session, Turn: r.Turn}
	var err error
	switch kind := domain.EventKind(r.Type); {
	case kind == domain.EventDelta, kind == domain.EventThoughtDelta:
		var data deltaData
		if r.Data != nil {
			data = fromJSON[deltaData](r.Data) // damaged data counts as absent
		}
		e.Payload = domain.MessageDelta{
			Key: deref(r.Key), ParentID: data.ParentID, Text: deref(r.Text), Thought: kind == domain.EventThoughtDelta, Meta: data.Meta,
		}
	case payloads[kind] != nil:
		e.Ref, e.Payload, err = payloads[kind](r.Data)
	default:
		err = fmt.Errorf("the log has an entry of the unknown kind %q", r.Type)
	}
	if err != nil {
		return domain.Event{Seq: r.Seq, Time: r.At, Session: r.Session, Turn: r.Turn, Payload: domain.Unreadable{}}, err
	}
	return e, nil
}

// deref returns the text that p points to, or the empty text.
func deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// log lists the events of a query. It decodes payloads after all rows have been read, because an
// open read keeps SQLite from restarting its write-ahead log
// (https://sqlite.org/wal.html#avoiding_excessively_large_wal_files). A damaged payload becomes
// domain.Unreadable.
func (q queries) log(ctx context.Context, which string, args ...any) ([]domain.Event, error) {
	rows, err := all[eventRow](ctx, q.s, "SELECT "+columnNames[eventRow]("events")+" FROM events"+which, args...)
	if len(rows) == 0 {
		return nil, err
	}
	events := make([]domain.Event, len(rows))
	for i, r := range rows {
		if string(r.Data) == damagedJSON { // reported when it was scanned
			events[i] = domain.Event{Seq: r.Seq, Time: r.At, Session: r.Session, Turn: r.Turn, Payload: domain.Unreadable{}}
			continue
		}
		var err error
		if events[i], err = r.value(); err != nil {
			q.s.damaged(&damagedValueError{err})
		}
	}
	return events, err
}

func (q queries) Events(ctx context.Context, after int64, limit int) ([]domain.Event, error) {
	return q.log(ctx, " WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)
}

func (q queries) LastSeq(ctx context.Context) (int64, error) {
	return first[int64](ctx, q.s,
		"SELECT coalesce((SELECT seq FROM events WHERE type != '"+string(domain.EventErased)+"' ORDER BY seq DESC LIMIT 1), 0)")
}

func (t *Tx) Append(e domain.Event) (int64, error) {
	e.Seq = t.seq + 1
	e.Time = t.now
	row, err := rowOfEvent(e)
	if err != nil {
		return 0, err
	}
	if _, err := insert(t, "events", &row, ""); err != nil {
		return 0, err
	}
	t.seq = e.Seq
	t.events = append(t.events, e)
	return e.Seq, nil
}

func (t *Tx) Seq() int64 { return t.seq }

func (q queries) Changes(ctx context.Context, turn int64) ([]domain.Change, error) {
	return all[domain.Change](ctx, q.s, "SELECT "+columnNames[domain.Change]("c")+" FROM changes c WHERE c.turn = ? ORDER BY path", turn)
}

func (t *Tx) PutChange(c domain.Change) error {
	_, err := insert(t, "changes", &c, " ON CONFLICT DO UPDATE SET after = excluded.after, binary = binary OR excluded.binary, seq = "+
		"excluded.seq, updated = excluded.updated, "+
		"old_mode = CASE old_mode WHEN 0 THEN excluded.old_mode ELSE old_mode END, new_mode = CASE excluded.new_mode WHEN 0 THEN new_mode ELSE "+
		"excluded.new_mode END")
	return err
}

// A usageRow has the columns of sums.
type usageRow struct {
	Turns      int     `db:"turns"`
	Input      int64   `db:"input"`
	Output     int64   `db:"output"`
	CacheRead  int64   `db:"cache_read"`
	CacheWrite int64   `db:"cache_write"`
	CostUSD    float64 `db:"cost_usd"`
	Time       int64   `db:"time"`
}

func (r usageRow) value() domain.Usage {
	return domain.Usage{
		Turns: r.Turns, Time: time.Duration(r.Time),
		Tokens: domain.Tokens{Input: r.Input, Output: r.Output, CacheRead: r.CacheRead, CacheWrite: r.CacheWrite, CostUSD: r.CostUSD},
	}
}

// sums are the columns of a usageRow. The duration of a turn excludes waiting for users, and the time by
// which the clock was set. Cached tokens are counted separately, as
// agents report them.
const sums = `count(*),
	coalesce(sum(used ->> '$.input'), 0), coalesce(sum(used ->> '$.output'), 0),
	coalesce(sum(used ->> '$.cache_read'), 0), coalesce(sum(used ->> '$.cache_write'), 0),
	coalesce(sum(used ->> '$.cost_usd'), 0.0),
	coalesce(sum(max(0, CASE WHEN r.started = 0 THEN 0 WHEN r.ended = 0 THEN ? - r.started ELSE r.ended - r.started END - r.clock_off
		- coalesce((SELECT sum(max(0, (CASE WHEN a.decided = 0 THEN ? ELSE a.decided END) - a.created)) FROM approvals a WHERE a.turn = r.id), 0))), 0)`

const turns = ` FROM (SELECT *, CASE WHEN json_valid(tokens) THEN tokens ELSE '{}' END AS used FROM turns) r JOIN sessions t ON t.id = r.session
	WHERE r.state NOT IN ('draft', 'discarded')`

// chosen returns the FROM clause for the turns of a filter, and the arguments of [sums] and of the
// clause.
func chosen(f domain.UsageFilter, now time.Time) (from string, arguments []any) {
	from, arguments = turns, []any{now.UnixNano(), now.UnixNano()}
	only := func(condition string, value int64) {
		from, arguments = from+" AND "+condition, append(arguments, value)
	}
	if f.Session != 0 {
		only("r.session = ?", f.Session)
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

func (q queries) Usage(ctx context.Context, f domain.UsageFilter, now time.Time) (domain.Usage, error) {
	from, arguments := chosen(f, now)
	u, err := first[usageRow](ctx, q.s, "SELECT "+sums+from, arguments...)
	return u.value(), err
}

func (q queries) UsageBy(ctx context.Context, f domain.UsageFilter, by domain.UsageBy, now time.Time) ([]domain.UsageRow, error) {
	key, title, order := "", "''", "1"
	switch by {
	case domain.UsageByDay:
		key, order = "date(r.created / 1000000000, 'unixepoch', 'localtime')", "9 DESC"
	case domain.UsageByAgent:
		key, order = "r.agent", "6 DESC, 9"
	case domain.UsageByModel:
		key, order = "r.agent_model", "6 DESC, 9"
	case domain.UsageBySession:
		key, title, order = "CAST(t.id AS TEXT)", "t.title", "6 DESC, max(r.id) DESC"
	default:
		return nil, fmt.Errorf("usage cannot be grouped by %q", by)
	}
	from, arguments := chosen(f, now)
	type keyed struct {
		usageRow
		Title string `db:"title,read"`
		Key   string `db:"key,read"`
	}
	rows, err := all[keyed](ctx, q.s, "SELECT "+sums+", "+title+", "+key+from+" GROUP BY "+key+" ORDER BY "+order, arguments...)
	list := make([]domain.UsageRow, len(rows))
	for i, r := range rows {
		list[i] = domain.UsageRow{Key: r.Key, Title: r.Title, Usage: r.value()}
	}
	return list, err
}

func (q queries) LastWith(ctx context.Context, session int64, code string) (id int64, err error) {
	return first[int64](ctx, q.s, "SELECT coalesce(max(id), 0) FROM turns WHERE session = ? AND error_code = ?", session, code)
}
