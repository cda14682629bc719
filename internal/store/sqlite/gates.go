package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func (q queries) GateLoop(ctx context.Context, turn int64) (domain.GateLoop, error) {
	return first[domain.GateLoop](
		ctx, q.s, "SELECT "+columnNames[domain.GateLoop]("l")+" FROM gate_turns r JOIN gate_loops l ON l.id = r.loop WHERE r.turn = ?", turn,
	)
}

func (q queries) GateLoops(ctx context.Context, turns []int64) (map[int64]domain.GateLoop, error) {
	found := make(map[int64]domain.GateLoop)
	if len(turns) == 0 {
		return found, nil
	}
	ids, err := json.Marshal(turns)
	if err != nil {
		return nil, err
	}
	type member struct {
		domain.GateLoop
		Of int64 `db:"of,read"`
	}
	list, err := all[member](
		ctx, q.s,
		"SELECT "+columnNames[domain.GateLoop]("l")+", r.turn FROM json_each(?) j JOIN gate_turns r ON r.turn = j.value JOIN gate_loops l ON "+
			"l.id = r.loop",
		string(ids),
	)
	for _, m := range list {
		found[m.Of] = m.GateLoop
	}
	return found, err
}

func (q queries) CheckedLoops(ctx context.Context) ([]domain.GateLoop, error) {
	return all[domain.GateLoop](ctx, q.s,
		"SELECT "+columnNames[domain.GateLoop]("l")+" FROM gate_loops l WHERE l.state = 'checking' ORDER BY l.id")
}

func (q queries) HasDenied(ctx context.Context, turn int64) (bool, error) {
	return first[bool](
		ctx, q.s, "SELECT EXISTS (SELECT 1 FROM approvals WHERE turn = ? AND status = 'denied' AND decided_by = '"+domain.DecidedByUser+"')",
		turn,
	)
}

func (t *Tx) InsertGateLoop(l *domain.GateLoop) (err error) {
	if l.ID, err = insert(t, "gate_loops", l, ""); err != nil {
		return err
	}
	return t.joinGateLoop(*l)
}

// joinGateLoop adds the loop's turn to the loop.
func (t *Tx) joinGateLoop(l domain.GateLoop) error {
	_, err := t.exec("INSERT INTO gate_turns (turn, loop) VALUES (?1, ?2) ON CONFLICT (turn) DO UPDATE SET loop = ?2", l.Turn, l.ID)
	return err
}

func (t *Tx) UpdateGateLoop(l domain.GateLoop) error {
	if err := update(t, "a loop of gates", "gate_loops", &l); err != nil {
		return err
	}
	return t.joinGateLoop(l)
}

func (q queries) ChangeDecisions(ctx context.Context, turn int64) ([]domain.ChangeDecision, error) {
	return all[domain.ChangeDecision](
		ctx, q.s, "SELECT "+columnNames[domain.ChangeDecision]("d")+" FROM change_decisions d WHERE turn = ? ORDER BY part", turn,
	)
}

func (t *Tx) PutChangeDecision(d domain.ChangeDecision) error {
	if d.State == domain.ChangeOpen {
		_, err := t.exec("DELETE FROM change_decisions WHERE turn = ? AND part = ?", d.Turn, d.Part)
		return err
	}
	_, err := insert(t, "change_decisions", &d, " ON CONFLICT DO UPDATE SET state = excluded.state, mode = excluded.mode")
	return err
}

func (q queries) PageMessages(ctx context.Context, f domain.PageFilter) ([]domain.PageMessage, error) {
	list, err := all[domain.PageMessage](ctx, q.s, "SELECT "+columnNames[domain.PageMessage]("p")+`, coalesce(r.humanlayer_session, '')
		FROM page_messages p LEFT JOIN turns r ON r.id = p.turn
		WHERE p.id > ?1 AND (?2 = 0 OR p.session = ?2) AND (?3 = 0 OR p.turn = ?3) AND (NOT ?4 OR p.kind = 'error' OR p.level IN ('warn', 'error')) ORDER BY p.id DESC LIMIT ?5`,
		f.After, f.Session, f.Turn, f.Problems, f.Limit)
	slices.Reverse(list)
	return list, err
}

func (t *Tx) PutPageMessage(m *domain.PageMessage) (err error) {
	if m.ID != 0 {
		query, args := change("page_messages", m)
		_, err = t.exec(query, args...)
		return err
	}
	if m.ID, err = insert(t, "page_messages", m, ""); err != nil {
		return err
	}
	_, err = t.exec("DELETE FROM page_messages WHERE id <= ?", m.ID-store.MostPageMessages)
	return err
}

func (q queries) TriggerExecutions(ctx context.Context, trigger string, limit int) ([]domain.TriggerExecution, error) {
	return all[domain.TriggerExecution](
		ctx, q.s,
		"SELECT "+columnNames[domain.TriggerExecution]("e")+" FROM trigger_executions e WHERE ?1 = '' OR name = ?1 ORDER BY id DESC LIMIT ?2",
		trigger, limit,
	)
}

// open is the condition of a partial index; the order of the values does not matter.
const open = "status IN ('" + domain.TriggerWaiting + "', '" + domain.TriggerSending + "')"

func (q queries) OpenTriggerExecutions(ctx context.Context) ([]domain.TriggerExecution, error) {
	return all[domain.TriggerExecution](ctx, q.s,
		"SELECT "+columnNames[domain.TriggerExecution]("e")+" FROM trigger_executions e WHERE "+open+" ORDER BY id")
}

func (q queries) HasTriggerExecution(ctx context.Context, trigger, key string) (bool, error) {
	n, err := first[int](ctx, q.s, "SELECT count(*) FROM trigger_executions WHERE name = ? AND event_key = ?", trigger, key)
	return n > 0, err
}

func (q queries) TriggerState(ctx context.Context, trigger string) (domain.TriggerState, error) {
	s, err := first[domain.TriggerState](ctx, q.s, "SELECT "+columnNames[domain.TriggerState]("t")+" FROM trigger_states t WHERE name = ?",
		trigger)
	if errors.Is(err, store.ErrNotFound) {
		return domain.TriggerState{Trigger: trigger}, nil
	}
	return s, err
}

func (t *Tx) InsertTriggerExecution(e *domain.TriggerExecution) (err error) {
	if e.ID, err = insert(t, "trigger_executions", e, ""); err != nil {
		return err
	}
	_, err = t.exec("DELETE FROM trigger_executions WHERE id <= ? AND NOT "+open, e.ID-store.MostTriggerExecutions)
	return err
}

func (t *Tx) UpdateTriggerExecution(e domain.TriggerExecution) error {
	query, args := change("trigger_executions", &e) // old rows may have been deleted
	_, err := t.exec(query, args...)
	return err
}

func (t *Tx) PutTriggerState(s domain.TriggerState) error {
	query, args := insertion("trigger_states", &s)
	_, err := t.exec(strings.Replace(query, "INSERT", "INSERT OR REPLACE", 1), args...)
	return err
}
