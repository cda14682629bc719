package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/dbfile"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/schema"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// A Foreign is a database that may be anybody's, open for reading. Its schema
// is ours, object by object; what is in its rows may be anything.
type Foreign struct {
	queries
	Version int // of its format

	db    *sql.DB
	files *atRest
}

// OpenForeign opens the database at path, which must be a file, not a link or a
// pipe, for reading. Neither it nor what lies beside it is changed. Errors are *OpenError:
// where the schema is not ours nothing is read.
func OpenForeign(ctx context.Context, path string) (*Foreign, error) {
	if info, err := os.Lstat(path); err != nil {
		return nil, &OpenError{path, "unreadable", err}
	} else if !info.Mode().IsRegular() {
		return nil, &OpenError{path, "unreadable", errors.New("it is no regular file")}
	}
	if err := checkHeader(path); err != nil {
		return nil, err
	}
	f := &Foreign{}
	if err := f.open(ctx, path); err != nil {
		err = cmp.Or(f.changed(), err)
		f.Close()
		return nil, &OpenError{path, statement.Reason(err), err}
	}
	return f, nil
}

func (f *Foreign) open(ctx context.Context, path string) (err error) {
	if f.files, err = openAtRest(path); err != nil {
		return err
	}
	f.db, err = f.files.open("_pragma=query_only(1)&_pragma=cell_size_check(1)")
	if err != nil {
		return err
	}
	f.db.SetMaxOpenConns(1)
	if err = f.limit(ctx); err != nil {
		return err
	}
	f.queries = newQueries(statement.New(f.db, nil, nil))
	f.queries.s.Explain(f.changed)
	if err = f.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&f.Version); err != nil {
		return err
	}
	if f.Version < 1 || f.Version > schema.Latest() {
		return fmt.Errorf("its format is %d, this program knows 1 to %d", f.Version, schema.Latest())
	}
	return schema.Check(ctx, f.db, f.Version)
}

// changed is an error if another process has changed the database.
func (f *Foreign) changed() error {
	if f.files != nil && f.files.Changed() {
		return dbfile.ErrChanged
	}
	return nil
}

// limit bounds what a row or a statement of it can cost.
// https://sqlite.org/c3ref/limit.html
func (f *Foreign) limit(ctx context.Context) error {
	conn, err := f.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for id, most := range map[int]int{
		sqlite3.SQLITE_LIMIT_LENGTH: 128 << 20, sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
	} {
		if _, err := driver.Limit(conn, id, most); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the database.
func (f *Foreign) Close() (err error) {
	if f.s != nil {
		f.s.Close()
	}
	if f.db != nil {
		err = f.db.Close()
	}
	if f.files != nil {
		err = errors.Join(err, f.files.Close())
	}
	return err
}

// Threads lists threads from after the one with the id after on, by their ids.
func (f *Foreign) Threads(ctx context.Context, after int64, limit int) ([]domain.Thread, error) {
	return statement.All(ctx, f.s, scanThread, "SELECT "+threadColumns+" FROM threads t WHERE t.id > ? ORDER BY t.id LIMIT ?", after, limit)
}

// RunsOfThread lists the runs of a thread in the order of the conversation, up to the run
// upTo, or all if that is 0.
func (f *Foreign) RunsOfThread(ctx context.Context, thread, upTo int64) ([]domain.Run, error) {
	columns, chosen := runColumns, upToRun+" ORDER BY r.place"
	if f.Version < placeFormat {
		before := strings.NewReplacer("r.place", "r.id", "SELECT place", "SELECT id")
		columns, chosen = before.Replace(columns), before.Replace(chosen)
	}
	if f.Version < restrictedFormat {
		columns = strings.Replace(columns, "r.restricted", restrictedBefore, 1)
	}
	if f.Version < signInFormat {
		columns = strings.Replace(columns, "r.sign_in", "''", 1)
	}
	if f.Version < contentFormat {
		columns = strings.Replace(columns, "r.content", "''", 1)
	}
	if f.Version < agentSettingsFormat {
		columns = strings.Replace(columns, "r.agent_mode, r.agent_model", "'', ''", 1)
	}
	return statement.All(ctx, f.s, scanRun, "SELECT "+columns+" FROM runs r WHERE r.thread = ? AND "+chosen, thread, upTo, upTo)
}

// agentSettingsFormat is the first format whose runs have the columns agent_mode and
// agent_model.
const agentSettingsFormat = 12

// contentFormat is the first format whose runs have the column content, and that
// has attachments.
const contentFormat = 14

// placeFormat is the first format whose runs have the column place.
const placeFormat = 26

// restrictedFormat is the first format whose runs have the column restricted. In earlier
// ones a member of the metadata says so.
const (
	restrictedFormat = 25
	restrictedBefore = "CASE WHEN json_valid(r.metadata) THEN json_type(r.metadata, '$.workspace_trusted') IS 'false' ELSE 0 END"
)

// signInFormat is the first format whose runs have the column sign_in.
const signInFormat = 16

// AttachmentPart is as of [store.ItemReader]; databases of earlier formats have none.
func (f *Foreign) AttachmentPart(ctx context.Context, id string, offset int64, limit int) (domain.AttachmentInfo, []byte, error) {
	if f.Version < contentFormat {
		return domain.AttachmentInfo{}, nil, store.ErrNotFound
	}
	return f.itemQueries.AttachmentPart(ctx, id, offset, limit)
}

// NewestThreads lists the threads in which something happened last.
func (f *Foreign) NewestThreads(ctx context.Context, limit int) ([]domain.Thread, error) {
	return statement.All(ctx, f.s, scanThread, "SELECT "+threadColumns+" FROM threads t ORDER BY t.active DESC LIMIT ?", limit)
}

// LongestThread is how many items the thread has that has the most.
func (f *Foreign) LongestThread(ctx context.Context) (items int, err error) {
	return statement.One(ctx, f.s, statement.Value[int], "SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM items JOIN runs ON runs.id = items.run GROUP BY runs.thread)")
}

// Tally counts.
func (f *Foreign) Tally(ctx context.Context) (t domain.Tally, err error) {
	const (
		ended   = "('completed', 'failed', 'timed_out', 'cancelled', 'interrupted', 'discarded')"
		waiting = "('queued', 'draft')"
		servers = `settings LIKE '%"mcp_servers":%'`
	)
	for _, c := range []struct {
		into *int
		from string
	}{
		{&t.Threads, "threads"},
		{&t.Runs, "runs"},
		{&t.Items, "items"},
		{&t.Changes, "changes"},
		{&t.Waiting, "runs WHERE state IN " + waiting},
		{&t.Unfinished, "runs WHERE state NOT IN " + waiting + " AND state NOT IN " + ended},
		{&t.Rules, "rules"},
		{&t.Questions, "approvals WHERE status = 'pending'"},
		{&t.Carried, "approvals WHERE carried = 1"},
		{&t.Settings, "threads WHERE settings NOT IN ('', '{}')"},
		{&t.MCPServers, "threads WHERE " + servers},
		{&t.NativeSessions, "threads WHERE native_session != ''"},
		{&t.Agents, "processes"},
	} {
		if *c.into, err = statement.One(ctx, f.s, statement.Value[int], "SELECT count(*) FROM "+c.from); err != nil {
			return t, err
		}
	}
	for _, from := range []string{"threads WHERE mode NOT IN ('', 'default')", "runs WHERE mode NOT IN ('', 'default')"} {
		n, err := statement.One(ctx, f.s, statement.Value[int], "SELECT count(*) FROM "+from)
		if err != nil {
			return t, err
		}
		t.Modes += n
	}
	return t, nil
}

// metaID is the key under which a database holds its id.
const metaID = "database_id"

// ID is the id that the database was made with, or "".
func (f *Foreign) ID(ctx context.Context) (string, error) { return f.Meta(ctx, metaID) }

// Create makes a database with an id at path, where there must be none, has
// fill add to it, if that is not nil, and closes it.
func Create(ctx context.Context, path, id string, fill func(*Store) error) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return &OpenError{path, "unreadable", err}
	}
	f.Close()
	s, err := Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := s.Write(ctx, func(t store.Tx) error { return t.SetMeta(metaID, id) }); err != nil || fill == nil {
		return err
	}
	return fill(s)
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
