package sqlite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

const runColumns = `r.id, r.uuid, r.task, r.session_id, r.run_id, r.caller_id, r.thread, r.parent, r.prompt, r.title, r.agent, r.source, r.state, r.priority,
	r.mode, r.tools, r.timeout, r.quiet, r.created, r.started, r.ended, r.active, r.error, r.error_code, r.stop, r.result, r.messages, r.tokens, r.progress, r.metadata,
	r.agent_mode, r.agent_model, r.content, r.sign_in, r.restricted, r.place`

// runRow takes a row of runColumns.
type runRow struct {
	domain.Run
	tools, tokens, content, signIn  string
	progress, metadata              statement.JSON
	timeout                         int64
	created, started, ended, active int64
}

func (r *runRow) fields() []any {
	return []any{
		&r.ID, &r.UUID, &r.Task, &r.SessionID, &r.RunID, &r.CallerID, &r.Thread, &r.Parent, &r.Prompt, &r.Title, &r.Agent, &r.Source, &r.State, &r.Priority,
		&r.Mode, &r.tools, &r.timeout, &r.Quiet, &r.created, &r.started, &r.ended, &r.active, &r.Error, &r.ErrorCode, &r.Stop, &r.Result, &r.Messages,
		&r.tokens, &r.progress, &r.metadata, &r.AgentMode, &r.Model, &r.content, &r.signIn, &r.Restricted, &r.Place,
	}
}

func (r *runRow) run() domain.Run {
	run := r.Run
	run.Tools, run.Tokens = fromJSON[[]string](r.tools), domain.Tokens(fromJSON[rowjson.Tokens](r.tokens))
	run.SignIn = rowjson.AuthMethods(fromJSON[[]rowjson.AuthMethod](r.signIn))
	run.Content = rowjson.Blocks(fromJSON[[]rowjson.Block](r.content))
	run.Progress, run.Metadata = r.progress.Raw(), r.metadata.Raw()
	run.Timeout = time.Duration(r.timeout)
	run.Created, run.Started, run.Ended, run.Active = fromNano(r.created), fromNano(r.started), fromNano(r.ended), fromNano(r.active)
	return run
}

func scanRun(row statement.Scanner) (domain.Run, error) {
	var r runRow
	err := row.Scan(r.fields()...)
	return r.run(), err
}

const (
	sessionColumns = runColumns + ", " + threadColumns + ", coalesce(p.session_id, ''), (SELECT substr(o.prompt, 1, 400) FROM runs o WHERE o.thread = r.thread ORDER BY o.place LIMIT 1)"
	sessionJoins   = "JOIN threads t ON t.id = r.thread LEFT JOIN runs p ON p.id = r.parent "
)

func scanSession(row statement.Scanner) (domain.Session, error) {
	var (
		r runRow
		t threadRow
		s domain.Session
	)
	err := row.Scan(append(append(r.fields(), t.fields()...), &s.ParentSession, &s.FirstWords)...)
	s.Run, s.Thread = r.run(), t.thread()
	return s, err
}

// Run finds a run by its row.
func (q runQueries) Run(ctx context.Context, id int64) (domain.Run, error) {
	return statement.One(ctx, q.s, scanRun, "SELECT "+runColumns+" FROM runs r WHERE r.id = ?", id)
}

// Session finds a run by its row, with its thread.
func (q runQueries) Session(ctx context.Context, id int64) (domain.Session, error) {
	return statement.One(ctx, q.s, scanSession, "SELECT "+sessionColumns+" FROM runs r "+sessionJoins+"WHERE r.id = ?", id)
}

// Find is the run that an id of any kind names: one of the run's own, or one
// of its thread's, which means the thread's last run.
func (q runQueries) Find(ctx context.Context, alias string) (int64, error) {
	id, err := statement.One(ctx, q.s, statement.Value[int64], `SELECT coalesce(nullif(a.run, 0), (SELECT id FROM runs WHERE thread = a.thread ORDER BY place DESC LIMIT 1), 0)
		FROM aliases a WHERE a.alias = ?`, alias)
	if err == nil && id == 0 { // a thread without runs
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) && alias == domain.LastRun {
		id, _, err = lastRun(ctx, q.s)
	}
	return id, err
}

// lastRun is the last run of the conversation that was gone on with last, and its thread.
func lastRun(ctx context.Context, s *statement.Cache) (run, thread int64, err error) {
	last, err := statement.One(ctx, s, func(row statement.Scanner) (ids [2]int64, err error) {
		return ids, row.Scan(&ids[0], &ids[1])
	}, `SELECT r.id, r.thread FROM runs r
		WHERE r.thread = (SELECT thread FROM runs WHERE state NOT IN ('draft', 'discarded') ORDER BY id DESC LIMIT 1) AND r.state NOT IN ('draft', 'discarded')
		ORDER BY r.place DESC LIMIT 1`)
	return last[0], last[1], err
}

// NamesThread reports whether an id names a conversation, rather than one of
// its runs.
func (q threadQueries) NamesThread(ctx context.Context, alias string) (bool, error) {
	run, err := statement.One(ctx, q.s, statement.Value[int64], "SELECT run FROM aliases WHERE alias = ?", alias)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return run == 0, err
}

// FindThread is the thread that an id of any kind names.
func (q threadQueries) FindThread(ctx context.Context, alias string) (int64, error) {
	thread, err := statement.One(ctx, q.s, statement.Value[int64], "SELECT thread FROM aliases WHERE alias = ?", alias)
	if errors.Is(err, store.ErrNotFound) && alias == domain.LastRun {
		_, thread, err = lastRun(ctx, q.s)
	}
	return thread, err
}

// FindNative is the thread that has an agent's own session.
func (q threadQueries) FindNative(ctx context.Context, native string) (int64, error) {
	return statement.One(ctx, q.s, statement.Value[int64], "SELECT id FROM threads WHERE native_session = ? AND native_session != '' ORDER BY id DESC LIMIT 1", native)
}

// FindNativeOf is the thread that has a session of this agent's own.
func (q threadQueries) FindNativeOf(ctx context.Context, agent, native string) (int64, error) {
	return statement.One(ctx, q.s, statement.Value[int64], "SELECT id FROM threads WHERE native_session = ? AND native_session != '' AND agent = ? ORDER BY id DESC LIMIT 1", native, agent)
}

// Sessions lists runs, the newest first.
func (q runQueries) Sessions(ctx context.Context, f domain.RunFilter) ([]domain.Session, error) {
	if f.Limit <= 0 {
		f.Limit = 1000
	}
	ids, args := chosenRuns(f)
	list, err := statement.All(ctx, q.s, scanSession, "SELECT "+sessionColumns+" FROM ("+ids+") chosen CROSS JOIN runs r ON r.id = chosen.id "+sessionJoins, args...)
	// They come like that, but SQL does not promise it.
	slices.SortFunc(list, func(a, b domain.Session) int { return cmp.Compare(b.Run.ID, a.Run.ID) })
	return list, err
}

// chosenRuns chooses the ids alone, state by state: each of these lists is in order
// in an index, and SQLite merges them until there are enough. So it looks at
// no more runs than it must, however many there are.
func chosenRuns(f domain.RunFilter) (query string, args []any) {
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
		if f.Thread != 0 {
			add("r.thread = ?", f.Thread)
		}
		if f.Archived != nil {
			add("EXISTS (SELECT 1 FROM threads t WHERE t.id = r.thread AND t.archived = ?)", *f.Archived)
		}
		if f.Leaves {
			add("NOT EXISTS (SELECT 1 FROM runs n WHERE n.thread = r.thread AND n.place > r.place)")
		}
		if f.Before > 0 {
			add("r.id < ?", f.Before)
		}
		part := "SELECT r.id AS id FROM runs r"
		if len(where) > 0 {
			part += " WHERE " + strings.Join(where, " AND ")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " UNION ALL ") + " ORDER BY id DESC LIMIT ?", append(args, f.Limit)
}

// upToRun chooses runs up to the place of one, or all if that is 0.
const upToRun = "(? = 0 OR r.place <= (SELECT place FROM runs WHERE id = ?))"

// RunsOfThread lists the runs of a thread in the order of the conversation, up to the
// run upTo, or all if that is 0.
func (q runQueries) RunsOfThread(ctx context.Context, thread, upTo int64) ([]domain.Run, error) {
	return statement.All(ctx, q.s, scanRun, "SELECT "+runColumns+" FROM runs r WHERE r.thread = ? AND "+upToRun+" ORDER BY r.place", thread, upTo, upTo)
}

// RunHeads is RunsOfThread without most of it.
func (q runQueries) RunHeads(ctx context.Context, thread, upTo int64) ([]domain.RunHead, error) {
	return statement.All(ctx, q.s, func(row statement.Scanner) (h domain.RunHead, err error) {
		err = row.Scan(&h.ID, &h.SessionID, &h.State, &h.ErrorCode)
		return h, err
	}, "SELECT r.id, r.session_id, r.state, r.error_code FROM runs r WHERE r.thread = ? AND "+upToRun+" ORDER BY r.place", thread, upTo, upTo)
}

// LastRun is the last run of a thread, drafts aside.
func (q runQueries) LastRun(ctx context.Context, thread int64) (domain.Run, error) {
	return statement.One(ctx, q.s, scanRun, "SELECT "+runColumns+" FROM runs r WHERE r.thread = ? AND r.state NOT IN ('draft', 'discarded') ORDER BY r.place DESC LIMIT 1", thread)
}

// RunsIn lists the runs that are in one of the states, the oldest first.
func (q runQueries) RunsIn(ctx context.Context, states ...domain.State) ([]domain.Run, error) {
	var list []domain.Run
	for _, s := range states {
		some, err := statement.All(ctx, q.s, scanRun, "SELECT "+runColumns+" FROM runs r WHERE r.state = ? ORDER BY r.id", string(s))
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// RunsFailedWith lists the runs that have failed with an ErrorCode, from the run
// first on, the oldest first.
func (q runQueries) RunsFailedWith(ctx context.Context, code string, first int64) ([]domain.Run, error) {
	return statement.All(ctx, q.s, scanRun, "SELECT "+runColumns+" FROM runs r INDEXED BY runs_listed WHERE r.state = 'failed' AND r.id >= ? AND r.error_code = ? ORDER BY r.id", first, code)
}

// unfinished is the condition of the index runs_unfinished: a query that has it,
// word for word, looks at no run that has ended, however many a thread has.
// https://sqlite.org/partialindex.html#queries_using_partial_indexes
const unfinished = "state IN ('draft', 'queued', 'starting', 'running', 'waiting_input', 'interrupting')"

// Startable lists the queued runs whose thread has no active run and no gates that are
// checked, in the order in which
// they are to start: by priority, then by age.
func (q runQueries) Startable(ctx context.Context, limit int) ([]domain.Session, error) {
	return statement.All(ctx, q.s, scanSession, "SELECT "+sessionColumns+" FROM runs r "+sessionJoins+`WHERE r.state = 'queued'
		AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.thread = r.thread AND o.id != r.id AND o.`+unfinished+`
			AND (o.state IN ('starting', 'running', 'waiting_input', 'interrupting') OR o.state = 'queued' AND (o.priority > r.priority OR o.priority = r.priority AND o.place < r.place)))
		AND NOT EXISTS (SELECT 1 FROM gate_loops g WHERE g.thread = r.thread AND g.state = 'checking')
		ORDER BY r.priority DESC, r.id LIMIT ?`, limit)
}

// UnfinishedRuns lists the runs of a thread that have not ended, drafts
// included, in the order of the conversation.
func (q runQueries) UnfinishedRuns(ctx context.Context, thread int64) ([]domain.Run, error) {
	return statement.All(ctx, q.s, scanRun, "SELECT "+runColumns+" FROM runs r INDEXED BY runs_unfinished WHERE r.thread = ? AND r."+unfinished+" ORDER BY r.place", thread)
}

// HasUnfinished reports whether a thread has a run, other than except, that has not
// ended and is no draft.
func (q runQueries) HasUnfinished(ctx context.Context, thread, except int64) (bool, error) {
	return statement.One(ctx, q.s, statement.Value[bool], "SELECT EXISTS (SELECT 1 FROM runs r WHERE r.thread = ? AND r.id != ? AND r."+unfinished+" AND r.state != 'draft')", thread, except)
}

// Counts tells how many runs are in which state.
func (q runQueries) Counts(ctx context.Context) (domain.Counts, error) {
	type count struct {
		state domain.State
		n     int
	}
	list, err := statement.All(ctx, q.s, func(row statement.Scanner) (c count, err error) {
		return c, row.Scan(&c.state, &c.n)
	}, "SELECT state, count(*) FROM runs GROUP BY state")
	counts := domain.Counts{}
	for _, c := range list {
		counts[c.state] = c.n
	}
	return counts, err
}

// Load is Counts for the states that scheduling looks at.
func (q runQueries) Load(ctx context.Context) (domain.Counts, error) {
	counts := domain.Counts{}
	for _, state := range []domain.State{domain.Queued, domain.Starting, domain.Running, domain.Interrupting} {
		n, err := statement.One(ctx, q.s, statement.Value[int], "SELECT count(*) FROM runs WHERE state = ?", string(state))
		if err != nil {
			return nil, err
		}
		counts[state] = n
	}
	return counts, nil
}

// InsertRun adds a run, numbers it, sets its ID and Task, and makes it found
// by its ids. A number whose name is somebody's id already is left out.
func (t *Tx) InsertRun(r *domain.Run) error {
	for taken := true; taken; {
		if err := t.insertRun(r); err != nil {
			return err
		}
		var err error
		if taken, err = t.IsTaken(domain.TaskName(r.Task)); err != nil {
			return err
		}
		if taken {
			if _, err := t.exec("DELETE FROM runs WHERE id = ?", r.ID); err != nil {
				return err
			}
		}
	}
	for _, alias := range []string{r.UUID, r.SessionID, r.RunID, domain.TaskName(r.Task), r.CallerID} {
		if alias == "" {
			continue
		}
		if err := t.SetAlias(alias, r.ID, r.Thread); err != nil {
			return err
		}
	}
	return nil
}

// IsTaken reports whether an id names something.
func (t *Tx) IsTaken(alias string) (bool, error) {
	_, err := t.FindThread(background, alias)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (t *Tx) insertRun(r *domain.Run) error {
	result, err := t.exec(`INSERT INTO runs (uuid, task, session_id, run_id, caller_id, thread, parent, prompt, content, title, agent, source, state, priority,
			mode, tools, timeout, quiet, created, started, ended, active, error, error_code, stop, result, messages, tokens, progress, metadata, agent_mode, agent_model, sign_in, restricted, place)
		VALUES (?, (SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'runs'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
			(SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'runs'))`,
		append([]any{r.UUID, r.SessionID, r.RunID, r.CallerID, r.Thread, r.Parent, r.Prompt, contentText(r.Content)}, mutable(*r)...)...)
	if err != nil {
		return err
	}
	if r.ID, err = result.LastInsertId(); err != nil {
		return err
	}
	r.Task, r.Place = r.ID, r.ID
	return nil
}

// SetAlias makes a run, or a thread where run is 0, found by an id.
func (t *Tx) SetAlias(alias string, run, thread int64) error {
	_, err := t.exec("INSERT INTO aliases (alias, run, thread) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET run = excluded.run, thread = excluded.thread", alias, run, thread)
	return err
}

// DropAlias makes an id name nothing.
func (t *Tx) DropAlias(alias string) error {
	_, err := t.exec("DELETE FROM aliases WHERE alias = ?", alias)
	return err
}

// mutable is everything of a run that UpdateRun writes.
func mutable(r domain.Run) []any {
	return []any{
		r.Title, r.Agent, r.Source, string(r.State), r.Priority, r.Mode, asJSON(r.Tools, len(r.Tools) == 0), int64(r.Timeout), r.Quiet,
		nano(r.Created), nano(r.Started), nano(r.Ended), nano(r.Active), r.Error, r.ErrorCode, r.Stop, r.Result, r.Messages,
		asJSON(rowjson.Tokens(r.Tokens), r.Tokens == domain.Tokens{}), string(r.Progress), string(r.Metadata),
		r.AgentMode, r.Model, asJSON(rowjson.AuthMethodsOf(r.SignIn), len(r.SignIn) == 0), r.Restricted,
	}
}

// SetPrompt is as of [store.ConversationWriter].
func (t *Tx) SetPrompt(run int64, prompt string, content []domain.Block) error {
	return t.changeOne("a run", "UPDATE runs SET prompt = ?, content = ? WHERE id = ?", prompt, contentText(content), run)
}

// SetPlace is as of [store.ConversationWriter].
func (t *Tx) SetPlace(r domain.Run) error {
	return t.changeOne("a run", "UPDATE runs SET place = ?, priority = ?, parent = ? WHERE id = ?", r.Place, r.Priority, r.Parent, r.ID)
}

// contentText is the blocks of a prompt as a column.
func contentText(blocks []domain.Block) string {
	return asJSON(rowjson.BlocksOf(blocks), len(blocks) == 0)
}

// UpdateRun writes everything of a run that can change.
func (t *Tx) UpdateRun(r domain.Run) error {
	return t.changeOne("a run", `UPDATE runs SET title = ?, agent = ?, source = ?, state = ?, priority = ?, mode = ?, tools = ?, timeout = ?, quiet = ?,
		created = ?, started = ?, ended = ?, active = ?, error = ?, error_code = ?, stop = ?, result = ?, messages = ?, tokens = ?, progress = ?, metadata = ?, agent_mode = ?, agent_model = ?, sign_in = ?, restricted = ?
		WHERE id = ?`, append(mutable(r), r.ID)...)
}

// Processes lists the agents that may still be alive.
func (q executorQueries) Processes(ctx context.Context) ([]domain.Process, error) {
	return statement.All(ctx, q.s, func(row statement.Scanner) (p domain.Process, err error) {
		return p, row.Scan(&p.PID, &p.Mark, &p.Run)
	}, "SELECT pid, mark, run FROM processes")
}

// PutProcess notes that an agent was started.
func (t *Tx) PutProcess(p domain.Process) error {
	_, err := t.exec("INSERT INTO processes (mark, pid, run) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET pid = excluded.pid, run = excluded.run", p.Mark, p.PID, p.Run)
	return err
}

// DropProcess notes that an agent has ended.
func (t *Tx) DropProcess(mark string) error {
	_, err := t.exec("DELETE FROM processes WHERE mark = ?", mark)
	return err
}

// NoteKeyAccess is as of [store.Tx].
func (t *Tx) NoteKeyAccess(run int64, service, outcome string) error {
	_, err := t.exec("INSERT INTO key_access (at, run, service, outcome) VALUES (?, ?, ?, ?)", nano(t.now), run, service, outcome)
	return err
}

// KeyAccesses is as of [store.Reader].
func (q executorQueries) KeyAccesses(ctx context.Context, limit int) ([]domain.KeyAccess, error) {
	return statement.All(ctx, q.s, func(row statement.Scanner) (a domain.KeyAccess, err error) {
		var at int64
		err = row.Scan(&at, &a.Run, &a.SessionID, &a.Service, &a.Outcome)
		a.At = fromNano(at)
		return a, err
	}, "SELECT k.at, k.run, coalesce(r.session_id, ''), k.service, k.outcome FROM key_access k LEFT JOIN runs r ON r.id = k.run ORDER BY k.id DESC LIMIT ?", limit)
}
