package sqlite

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

const threadColumns = `t.id, t.uuid, t.title, t.cwd, t.agent, t.native_session, t.mode, t.model, t.settings, t.parent, t.fork_run, t.archived, t.created, t.active`

// threadRow takes a row of threadColumns.
type threadRow struct {
	domain.Thread
	settings        string
	created, active int64
}

func (r *threadRow) fields() []any {
	return []any{
		&r.ID, &r.UUID, &r.Title, &r.CWD, &r.Agent, &r.NativeSession, &r.Mode, &r.Model, &r.settings,
		&r.Parent, &r.ForkRun, &r.Archived, &r.created, &r.active,
	}
}

func (r *threadRow) thread() domain.Thread {
	t := r.Thread
	t.Settings = fromJSON[rowjson.Settings](r.settings).Value()
	t.Created, t.Active = fromNano(r.created), fromNano(r.active)
	return t
}

func scanThread(row statement.Scanner) (domain.Thread, error) {
	var r threadRow
	err := row.Scan(r.fields()...)
	return r.thread(), err
}

// Thread finds a thread by its row.
func (q threadQueries) Thread(ctx context.Context, id int64) (domain.Thread, error) {
	return statement.One(ctx, q.s, scanThread, "SELECT "+threadColumns+" FROM threads t WHERE t.id = ?", id)
}

// RecentPaths are the directories of threads, the last used first, with how
// often each was used.
func (q threadQueries) RecentPaths(ctx context.Context, limit int) ([]domain.RecentPath, error) {
	return statement.All(ctx, q.s, func(row statement.Scanner) (p domain.RecentPath, err error) {
		var used int64
		err = row.Scan(&p.Path, &used, &p.Count)
		p.LastUsed = fromNano(used)
		return p, err
	}, "SELECT cwd, max(active) AS used, count(*) FROM threads GROUP BY cwd ORDER BY used DESC LIMIT ?", limit)
}

// InsertThread adds a thread and sets its ID.
func (t *Tx) InsertThread(th *domain.Thread) error {
	result, err := t.exec(`INSERT INTO threads (uuid, title, cwd, agent, native_session, mode, model, settings, parent, fork_run, archived, created, active)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		th.UUID, th.Title, th.CWD, th.Agent, th.NativeSession, th.Mode, th.Model, asJSON(rowjson.SettingsOf(th.Settings), false), th.Parent, th.ForkRun,
		th.Archived, nano(th.Created), nano(th.Active))
	if err != nil {
		return err
	}
	th.ID, err = result.LastInsertId()
	return err
}

// UpdateThread writes everything of a thread that can change.
func (t *Tx) UpdateThread(th domain.Thread) error {
	return t.changeOne("a thread", `UPDATE threads SET title = ?, agent = ?, native_session = ?, mode = ?, model = ?, settings = ?, archived = ?, active = ? WHERE id = ?`,
		th.Title, th.Agent, th.NativeSession, th.Mode, th.Model, asJSON(rowjson.SettingsOf(th.Settings), false), th.Archived, nano(th.Active), th.ID)
}

// PutAgentSession is as of [store.ConversationWriter].
func (t *Tx) PutAgentSession(s domain.AgentSessionSeen) error {
	put, arguments, err := putAgentSession(s)
	if err == nil {
		_, err = t.exec(put, arguments...)
	}
	return err
}

// MoveDirectories changes the directories of threads, and the files that runs
// have changed, that are from, or below it, as after a move of the project.
func (t *Tx) MoveDirectories(from, to string) error {
	sep := string(filepath.Separator)
	from, to = strings.TrimSuffix(from, sep), strings.TrimSuffix(to, sep)
	// Not LIKE: a path may have what is special there.
	_, err := t.exec("UPDATE threads SET cwd = ?1 || substr(cwd, length(?2) + 1) WHERE cwd = ?2 OR substr(cwd, 1, length(?2) + 1) = ?2 || ?3", to, from, sep)
	if err != nil {
		return err
	}
	// A run that goes on after a move may have changed a file in both places.
	_, err = t.exec("UPDATE OR IGNORE changes SET path = ?1 || substr(path, length(?2) + 1) WHERE substr(path, 1, length(?2) + 1) = ?2 || ?3", to, from, sep)
	return err
}
