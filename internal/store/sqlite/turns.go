package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// sessionColumns returns the columns for all[domain.Session].
func sessionColumns() string {
	return columnNames[domain.Turn]("r") + ", " + columnNames[domain.Session]("t") +
		", coalesce(p.humanlayer_session, ''), (SELECT substr(o.prompt, 1, 400) FROM turns o WHERE o.session = r.session ORDER BY o.place " +
		"LIMIT 1)"
}

const sessionJoins = "JOIN sessions t ON t.id = r.session LEFT JOIN turns p ON p.id = r.parent "

func (q queries) Turn(ctx context.Context, id int64) (domain.Turn, error) {
	return first[domain.Turn](ctx, q.s, "SELECT "+columnNames[domain.Turn]("r")+" FROM turns r WHERE r.id = ?", id)
}

func (q queries) TurnInSession(ctx context.Context, id int64) (domain.TurnInSession, error) {
	return first[domain.TurnInSession](ctx, q.s, "SELECT "+sessionColumns()+" FROM turns r "+sessionJoins+"WHERE r.id = ?", id)
}

func (q queries) FindID(ctx context.Context, alias string) (int64, error) {
	id, err := first[int64](ctx, q.s, `SELECT coalesce(nullif(a.turn, 0), (SELECT id FROM turns WHERE session = a.session ORDER BY place DESC LIMIT 1), 0)
		FROM aliases a WHERE a.alias = ?`, alias)
	if err == nil && id == 0 { // a session without turns
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) && alias == domain.LastTurn {
		id, _, err = lastTurn(ctx, q.s)
	}
	return id, err
}

func (q queries) Find(ctx context.Context, alias string) (int64, error) {
	id, err := q.FindID(ctx, alias)
	if !errors.Is(err, store.ErrNotFound) {
		return id, err
	}
	switch session, turn, _ := domain.ParseNumber(alias); {
	case turn != 0:
		return first[int64](ctx, q.s, "SELECT id FROM turns WHERE session = ? AND number = ?", session, turn)
	case session != 0:
		return first[int64](ctx, q.s, "SELECT id FROM turns WHERE session = ? ORDER BY place DESC LIMIT 1", session)
	}
	return 0, err
}

// lastTurn returns the last turn, drafts aside, of the session that was continued last,
// and that session.
func lastTurn(ctx context.Context, s *statements) (turn, session int64, err error) {
	type ids struct {
		Turn    int64 `db:"id"`
		Session int64 `db:"session"`
	}
	last, err := first[ids](ctx, s, `SELECT r.id, r.session FROM turns r
		WHERE r.session = (SELECT session FROM turns WHERE state NOT IN ('draft', 'discarded') ORDER BY id DESC LIMIT 1) AND r.state NOT IN ('draft', 'discarded')
		ORDER BY r.place DESC LIMIT 1`)
	return last.Turn, last.Session, err
}

func (q queries) NamesSession(ctx context.Context, alias string) (bool, error) {
	turn, err := first[int64](ctx, q.s, "SELECT turn FROM aliases WHERE alias = ?", alias)
	if errors.Is(err, store.ErrNotFound) {
		_, turn, is := domain.ParseNumber(alias)
		return is && turn == 0 || alias == domain.LastTurn, nil
	}
	return turn == 0, err
}

func (q queries) FindSessionID(ctx context.Context, alias string) (int64, error) {
	session, err := q.sessionOf(ctx, alias)
	if errors.Is(err, store.ErrNotFound) && alias == domain.LastTurn {
		_, session, err = lastTurn(ctx, q.s)
	}
	return session, err
}

func (q queries) FindSession(ctx context.Context, alias string) (int64, error) {
	id, err := q.FindSessionID(ctx, alias)
	if !errors.Is(err, store.ErrNotFound) {
		return id, err
	}
	switch session, turn, _ := domain.ParseNumber(alias); {
	case turn != 0:
		return first[int64](ctx, q.s, "SELECT session FROM turns WHERE session = ? AND number = ?", session, turn)
	case session != 0:
		return first[int64](ctx, q.s, "SELECT id FROM sessions WHERE id = ?", session)
	}
	return 0, err
}

// sessionOf returns the session of an alias.
func (q queries) sessionOf(ctx context.Context, alias string) (int64, error) {
	return first[int64](ctx, q.s, "SELECT session FROM aliases WHERE alias = ?", alias)
}

func (q queries) FindNative(ctx context.Context, native string) (int64, error) {
	return first[int64](ctx, q.s, "SELECT id FROM sessions WHERE native_session = ? AND native_session != '' ORDER BY id DESC LIMIT 1", native)
}

func (q queries) FindNativeOf(ctx context.Context, agent, native string) (int64, error) {
	return first[int64](ctx, q.s, "SELECT id FROM sessions WHERE native_session = ? AND native_session != '' AND agent = ? ORDER BY id DESC "+
		"LIMIT 1", native, agent)
}

func (q queries) TurnsInSessions(ctx context.Context, f domain.TurnFilter) ([]domain.TurnInSession, error) {
	if f.Limit <= 0 {
		f.Limit = 1000
	}
	ids, args := chosenTurns(f)
	list, err := all[domain.TurnInSession](
		ctx, q.s, "SELECT "+sessionColumns()+" FROM ("+ids+") chosen CROSS JOIN turns r ON r.id = chosen.id "+sessionJoins, args...,
	)
	// The rows come in this order, but SQL does not guarantee it.
	slices.SortFunc(list, func(a, b domain.TurnInSession) int { return cmp.Compare(b.Turn.ID, a.Turn.ID) })
	return list, err
}

// chosenTurns selects the ids alone, state by state: each list is in the order of an index, and
// SQLite merges them until there are enough. So it scans no more turns than necessary, however
// many exist.
func chosenTurns(f domain.TurnFilter) (query string, args []any) {
	states := f.States
	if len(states) == 0 {
		states = []domain.State{""}
	}
	var parts []string
	for _, state := range states {
		var where []string
		add := func(condition string, values ...any) {
			where = append(where, condition)
			args = append(args, values...)
		}
		if state != "" {
			add("r.state = ?", string(state))
		}
		if f.Agent != "" {
			add("r.agent = ?", f.Agent)
		}
		if f.Source != "" {
			add("r.source = ?", f.Source)
		}
		if f.Session != 0 {
			add("r.session = ?", f.Session)
		}
		if f.Archived != nil {
			add("EXISTS (SELECT 1 FROM sessions t WHERE t.id = r.session AND t.archived = ?)", *f.Archived)
		}
		if f.Leaves {
			add("NOT EXISTS (SELECT 1 FROM turns n WHERE n.session = r.session AND n.place > r.place)")
		}
		if f.Before > 0 {
			add("r.id < ?", f.Before)
		}
		part := "SELECT r.id AS id FROM turns r"
		if len(where) > 0 {
			part += " WHERE " + strings.Join(where, " AND ")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " UNION ALL ") + " ORDER BY id DESC LIMIT ?", append(args, f.Limit)
}

// upToTurn selects turns up to the place of one, or all if that is 0.
const upToTurn = "(? = 0 OR r.place <= (SELECT place FROM turns WHERE id = ?))"

func (q queries) TurnsOfSession(ctx context.Context, session, upTo int64) ([]domain.Turn, error) {
	return all[domain.Turn](
		ctx, q.s, "SELECT "+columnNames[domain.Turn]("r")+" FROM turns r WHERE r.session = ? AND "+upToTurn+" ORDER BY r.place", session, upTo,
		upTo,
	)
}

func (q queries) TurnHeads(ctx context.Context, session, upTo int64) ([]domain.TurnHead, error) {
	return all[domain.TurnHead](
		ctx, q.s, "SELECT "+columnNames[domain.TurnHead]("r")+" FROM turns r WHERE r.session = ? AND "+upToTurn+" ORDER BY r.place", session,
		upTo, upTo,
	)
}

func (q queries) LastTurn(ctx context.Context, session int64) (domain.Turn, error) {
	return first[domain.Turn](
		ctx, q.s,
		"SELECT "+columnNames[domain.Turn]("r")+" FROM turns r WHERE r.session = ? AND r.state NOT IN ('draft', 'discarded') ORDER BY r.place "+
			"DESC LIMIT 1",
		session,
	)
}

func (q queries) TurnsIn(ctx context.Context, states ...domain.State) ([]domain.Turn, error) {
	var list []domain.Turn
	for _, s := range states {
		some, err := all[domain.Turn](ctx, q.s, "SELECT "+columnNames[domain.Turn]("r")+" FROM turns r WHERE r.state = ? ORDER BY r.id",
			string(s))
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

func (q queries) TurnsFailedWith(ctx context.Context, code string, first int64) ([]domain.Turn, error) {
	return all[domain.Turn](ctx, q.s, "SELECT "+columnNames[domain.Turn]("r")+" FROM turns r INDEXED BY turns_listed WHERE r.state = "+
		"'failed' AND r.id >= ? AND r.error_code = ? ORDER BY r.id", first, code)
}

// unfinished is the condition of the partial index runs_unfinished. A query that contains it
// literally scans no ended turns, however many a session has.
// https://sqlite.org/partialindex.html#queries_using_partial_indexes
const unfinished = "state IN ('draft', 'queued', 'starting', 'running', 'waiting_input', 'interrupting')"

func (q queries) Startable(ctx context.Context, limit int) ([]domain.TurnInSession, error) {
	return all[domain.TurnInSession](ctx, q.s, "SELECT "+sessionColumns()+" FROM turns r "+sessionJoins+`WHERE r.state = 'queued'
		AND NOT EXISTS (SELECT 1 FROM turns o WHERE o.session = r.session AND o.id != r.id AND o.`+unfinished+`
			AND (o.state IN ('starting', 'running', 'waiting_input', 'interrupting') OR o.state = 'queued' AND (o.priority > r.priority OR o.priority = r.priority AND o.place < r.place)))
		AND NOT EXISTS (SELECT 1 FROM gate_loops g WHERE g.session = r.session AND g.state = 'checking')
		ORDER BY r.priority DESC, r.id LIMIT ?`, limit)
}

func (q queries) UnfinishedTurns(ctx context.Context, session int64) ([]domain.Turn, error) {
	return all[domain.Turn](
		ctx, q.s,
		"SELECT "+columnNames[domain.Turn]("r")+" FROM turns r INDEXED BY turns_unfinished WHERE r.session = ? AND "+
			"r."+unfinished+" ORDER BY r.place",
		session,
	)
}

func (q queries) HasUnfinished(ctx context.Context, session, except int64) (bool, error) {
	return first[bool](
		ctx, q.s, "SELECT EXISTS (SELECT 1 FROM turns r WHERE r.session = ? AND r.id != ? AND r."+unfinished+" AND r.state != 'draft')", session,
		except,
	)
}

func (q queries) Counts(ctx context.Context) (domain.Counts, error) {
	type count struct {
		State domain.State `db:"state"`
		N     int          `db:"n"`
	}
	list, err := all[count](ctx, q.s, "SELECT state, count(*) FROM turns GROUP BY state")
	counts := domain.Counts{}
	for _, c := range list {
		counts[c.State] = c.N
	}
	return counts, err
}

func (q queries) Load(ctx context.Context) (domain.Counts, error) {
	counts := domain.Counts{}
	for _, state := range []domain.State{domain.Queued, domain.Starting, domain.Running, domain.Interrupting} {
		n, err := first[int](ctx, q.s, "SELECT count(*) FROM turns WHERE state = ?", string(state))
		if err != nil {
			return nil, err
		}
		counts[state] = n
	}
	return counts, nil
}

func (t *Tx) InsertTurn(r *domain.Turn) error {
	number, err := first[int64](background, t.s, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'turns'")
	if err != nil {
		return err
	}
	for taken := true; taken; {
		number++
		if taken, err = t.IsTaken(domain.TaskName(number)); err != nil {
			return err
		}
	}
	r.ID, r.Task, r.Place = number, number, number
	r.Number, err = first[int64](background, t.s, "UPDATE sessions SET turns = turns + 1 WHERE id = ? RETURNING turns", r.Session)
	if err != nil {
		return fmt.Errorf("numbering a turn: %w", err)
	}
	if _, err := insert(t, "turns", r, ""); err != nil {
		return err
	}
	for _, alias := range []string{r.UUID, r.HumanLayerSession, r.HumanLayerRun, domain.TaskName(r.Task), r.CallerID} {
		if alias == "" {
			continue
		}
		if err := t.SetAlias(alias, r.ID, r.Session); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) IsTaken(alias string) (bool, error) {
	_, err := t.sessionOf(background, alias)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (t *Tx) SetAlias(alias string, turn, session int64) error {
	_, err := t.exec("INSERT INTO aliases (alias, turn, session) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET turn = excluded.turn, session = "+
		"excluded.session", alias, turn, session)
	return err
}

func (t *Tx) SetPrompt(turn int64, prompt string, content []domain.Block) error {
	text, err := encode(content)
	if err != nil {
		return err
	}
	if len(content) == 0 {
		text = ""
	}
	return t.changeOne("a turn", "UPDATE turns SET prompt = ?, content = ? WHERE id = ?", prompt, text, turn)
}

func (t *Tx) SetPlace(r domain.Turn) error {
	return t.changeOne("a turn", "UPDATE turns SET place = ?, priority = ?, parent = ? WHERE id = ?", r.Place, r.Priority, r.Parent, r.ID)
}

func (t *Tx) UpdateTurn(r domain.Turn) error { return update(t, "a turn", "turns", &r) }

func (q queries) Processes(ctx context.Context) ([]domain.Process, error) {
	return all[domain.Process](ctx, q.s, "SELECT "+columnNames[domain.Process]("p")+" FROM processes p")
}

func (t *Tx) PutProcess(p domain.Process) error {
	_, err := insert(t, "processes", &p, " ON CONFLICT DO UPDATE SET pid = excluded.pid, turn = excluded.turn")
	return err
}

func (t *Tx) DropProcess(mark string) error {
	_, err := t.exec("DELETE FROM processes WHERE mark = ?", mark)
	return err
}

func (t *Tx) NoteKeyAccess(turn int64, service, outcome string) error {
	_, err := insert(t, "key_access", &domain.KeyAccess{At: t.now, Turn: turn, Service: service, Outcome: outcome}, "")
	return err
}

func (q queries) KeyAccesses(ctx context.Context, limit int) ([]domain.KeyAccess, error) {
	return all[domain.KeyAccess](ctx, q.s, "SELECT "+columnNames[domain.KeyAccess]("k")+", coalesce(r.humanlayer_session, '') FROM "+
		"key_access k LEFT JOIN turns r ON r.id = k.turn ORDER BY k.id DESC LIMIT ?", limit)
}
