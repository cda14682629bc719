package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/schema"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
)

func TestASnapshotIsReadAndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "duet.db")
	refusal := errors.New("no hub runs")
	set := func(value string) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.SetMeta("test", value) }
	}
	original, err := Open(t.Context(), path, store.Options{})
	require.NoError(t, err)
	require.NoError(t, original.Write(t.Context(), set("one")))
	// Beside whoever has it open, with what is in its log alone.
	s, err := OpenSnapshot(t.Context(), path, store.Options{}, Refusals{Change: refusal})
	require.NoError(t, err)
	require.NoError(t, original.Write(t.Context(), set("two")))
	value, err := s.Meta(t.Context(), "test")
	require.NoError(t, err)
	assert.Equal(t, "one", value)
	assert.Equal(t, refusal, s.Write(t.Context(), set("three")))
	done := make(chan error, 1)
	s.Enqueue(set("four"), func(err error) { done <- err })
	assert.Equal(t, refusal, <-done)
	_, err = s.Search(t.Context(), "anything", 1, 0)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	left, err := filepath.Glob(filepath.Join(dir, snapshotNames))
	require.NoError(t, err)
	assert.Empty(t, left)
	value, err = original.Meta(t.Context(), "test")
	require.NoError(t, err)
	assert.Equal(t, "two", value)
	require.NoError(t, original.Close())
}

func TestASnapshotThatWasLeftIsRemoved(t *testing.T) {
	dir := t.TempDir()
	old, young := filepath.Join(dir, ".snapshot-1"), filepath.Join(dir, ".snapshot-2")
	require.NoError(t, os.Mkdir(old, 0o700))
	require.NoError(t, os.Mkdir(young, 0o700))
	past := time.Now().Add(-2 * snapshotLeft)
	require.NoError(t, os.Chtimes(old, past, past))
	removeOldSnapshots(dir)
	assert.NoDirExists(t, old)
	assert.DirExists(t, young)

	// The lock of one that has an owner tells whether that was killed.
	owned := filepath.Join(dir, ".snapshot-3")
	require.NoError(t, os.Mkdir(owned, 0o700))
	owner := flock.New(filepath.Join(owned, snapshotOwner))
	_, err := owner.TryLock()
	require.NoError(t, err)
	removeAfter := func(age time.Duration) {
		past := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(owned, past, past))
		openAt(t, filepath.Join(dir, "duet.db"))
	}
	removeAfter(2 * snapshotLeft)
	assert.DirExists(t, owned, "its owner is there")
	require.NoError(t, owner.Close())
	removeAfter(snapshotRest / 2)
	assert.DirExists(t, owned, "its owner may only begin")
	removeAfter(2 * snapshotRest)
	assert.NoDirExists(t, owned)
}

// files lists the files of some directories, with what is in them.
func files(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, dir := range dirs {
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			text, _ := os.ReadFile(path) // of a directory: none
			all[path] = string(text)
			return nil
		}))
	}
	return all
}

// killed copies a database with its log as a kill leaves them.
func killed(t *testing.T, path string) string {
	t.Helper()
	left := filepath.Join(t.TempDir(), "duet.db")
	for _, suffix := range []string{"", "-wal"} {
		text, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(left+suffix, text, 0o600))
	}
	return left
}

func metaOf(t *testing.T, s store.Store) string {
	t.Helper()
	value, err := s.Meta(t.Context(), "test")
	require.NoError(t, err)
	return value
}

func setMeta(t *testing.T, s store.Store, value string) {
	t.Helper()
	require.NoError(t, s.Write(t.Context(), func(tx store.Tx) error { return tx.SetMeta("test", value) }))
}

// A database may have gigabytes: it is read where it is.
func TestASnapshotMakesNoFile(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	s := openAt(t, filepath.Join(t.TempDir(), "duet.db"))
	setMeta(t, s, "one")
	for name, path := range map[string]string{"the hub was killed": killed(t, s.Path()), "the hub has ended": s.Path()} {
		t.Run(name, func(t *testing.T) {
			if path == s.Path() {
				require.NoError(t, s.Close())
			}
			before := files(t, filepath.Dir(path), temporary)
			read, err := OpenSnapshot(t.Context(), path, store.Options{}, Refusals{})
			require.NoError(t, err)
			assert.Equal(t, "one", metaOf(t, read))
			assert.Equal(t, before, files(t, filepath.Dir(path), temporary))
			require.NoError(t, read.Close())
			assert.Equal(t, before, files(t, filepath.Dir(path), temporary))
		})
	}
}

// What a log has is read as SQLite reads it, wherever it was cut off or damaged.
func TestALogIsReadAsSQLiteReadsIt(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "duet.db"))
	for i := range 5 {
		setMeta(t, s, strings.Repeat("long ", 1000*i)+strconv.Itoa(i))
	}
	path := killed(t, s.Path())
	require.NoError(t, s.Close())
	log, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	read := func(query string, open func() (*sql.DB, func())) string {
		db, closeAll := open()
		defer closeAll()
		var value string
		if err := db.QueryRow(query).Scan(&value); err != nil {
			return "none"
		}
		return value
	}
	const query = "SELECT value FROM meta WHERE key = 'test'"
	seen := make(map[string]bool)
	for at := 0; at <= len(log); at += 4007 {
		cut := append([]byte{}, log[:at]...)
		damaged := append([]byte{}, log...)
		if at < len(damaged) {
			damaged[at] ^= 1
		}
		for _, content := range [][]byte{cut, damaged} {
			require.NoError(t, os.WriteFile(path+"-wal", content, 0o600))
			ours := read(query, func() (*sql.DB, func()) {
				files, err := openAtRest(path)
				require.NoError(t, err)
				db, err := files.open("")
				require.NoError(t, err)
				return db, func() { db.Close(); assert.NoError(t, files.Close()) }
			})
			theirs := read(query, func() (*sql.DB, func()) {
				copied := killed(t, path)
				db, err := sql.Open("sqlite", "file:"+copied)
				require.NoError(t, err)
				return db, func() { db.Close() }
			})
			require.Equal(t, theirs, ours, at)
			seen[ours] = true
		}
	}
	assert.Greater(t, len(seen), 4, "the log was cut off between all changes")
}

// A hub that begins meanwhile is not waited for, and what it writes is not mixed with what
// was there before.
func TestAChangedDatabaseIsReadNoMore(t *testing.T) {
	for _, mode := range []string{"FULL", "RESTART", "TRUNCATE"} {
		t.Run(mode, func(t *testing.T) {
			s := openAt(t, filepath.Join(t.TempDir(), "duet.db"))
			defer s.Close()
			setMeta(t, s, "one")
			changed := errors.New("a hub has begun")
			read, err := OpenSnapshot(t.Context(), s.Path(), store.Options{Damaged: func(err error) { t.Error(err) }}, Refusals{Changed: changed})
			require.NoError(t, err)
			defer read.Close()
			assert.Equal(t, "one", metaOf(t, read))
			setMeta(t, s, "two") // is added to the log
			assert.Equal(t, "one", metaOf(t, read))
			execute(t, s.Path(), "PRAGMA wal_checkpoint("+mode+")")
			setMeta(t, s, "three")
			value, err := read.Meta(t.Context(), "test")
			if err == nil {
				assert.Equal(t, "one", value, "it was in memory")
			}
			_, err = read.Search(t.Context(), "walnuts", 1, 0)
			assert.Equal(t, changed, err)
		})
	}
}

// A writer may begin the log anew, over what it had, before it writes to the database.
func TestALogThatBeginsAnewIsReadNoMore(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "duet.db"))
	defer s.Close()
	setMeta(t, s, "one")
	execute(t, s.Path(), "PRAGMA wal_checkpoint(FULL)")
	changed := errors.New("a hub has begun")
	read, err := OpenSnapshot(t.Context(), s.Path(), store.Options{}, Refusals{Changed: changed})
	require.NoError(t, err)
	defer read.Close()
	before, err := os.Stat(s.Path())
	require.NoError(t, err)
	setMeta(t, s, "two")
	after, err := os.Stat(s.Path())
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	_, err = read.Search(t.Context(), "walnuts", 1, 0)
	assert.Equal(t, changed, err)
}

// The hub indexes words when it is idle; it may end before that.
func TestASnapshotFindsWhatIsNotIndexed(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "duet.db"))
	add := adder(t, s)
	add("old walnuts")
	_, err := s.Search(t.Context(), "walnuts", 10, 0) // indexes it
	require.NoError(t, err)
	add("new wälnuts one")
	add("new walnuts two")
	add("almonds")
	path := killed(t, s.Path())
	require.NoError(t, s.Close())
	read, err := OpenSnapshot(t.Context(), path, store.Options{}, Refusals{})
	require.NoError(t, err)
	defer read.Close()
	texts := func(words string, limit, offset int) []string {
		hits, err := read.Search(t.Context(), words, limit, offset)
		require.NoError(t, err)
		found := []string{}
		for _, h := range hits {
			found = append(found, h.Item.Content)
		}
		return found
	}
	assert.ElementsMatch(t, []string{"new wälnuts one", "new walnuts two", "old walnuts"}, texts("waln", 10, 0))
	var pages []string
	for offset := range 4 {
		pages = append(pages, texts("walnuts", 1, offset)...)
	}
	assert.ElementsMatch(t, []string{"new wälnuts one", "new walnuts two", "old walnuts"}, pages)
	assert.Equal(t, []string{"almonds"}, texts("almonds", 2, 0))
	assert.Equal(t, []string{"old walnuts"}, texts("old", 2, 0))
}

// adder returns a function that adds a message to a new conversation.
func adder(t *testing.T, s *Store) func(text string) {
	run := storetest.AddRun(t, s, storetest.NewThread(t, s, "").ID, domain.Running)
	return func(text string) {
		storetest.Write(t, s, func(tx store.Tx) error {
			return tx.InsertItem(&domain.Item{Thread: run.Thread, Run: run.ID, Kind: "message", Role: "user", Content: text})
		})
	}
}

// A hub that ends leaves nothing that is not indexed: what it left would come first.
func TestAClosedDatabaseIsIndexed(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "duet.db"))
	add := adder(t, s)
	add("walnuts")
	_, err := s.Search(t.Context(), "walnuts", 1, 0) // indexes it
	require.NoError(t, err)
	add("many words, and walnuts at the end of them")
	require.NoError(t, s.Close())
	read, err := OpenSnapshot(t.Context(), s.Path(), store.Options{}, Refusals{})
	require.NoError(t, err)
	defer read.Close()
	hits, err := read.Search(t.Context(), "walnuts", 2, 0)
	require.NoError(t, err)
	require.Len(t, hits, 2)
	assert.Equal(t, "walnuts", hits[0].Item.Content)
}

// A database of an earlier format is migrated to be read: a copy of it is.
func TestASnapshotOfAnEarlierFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "duet.db")
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), conn, 0, schema.Latest()-1))
	require.NoError(t, conn.Close())
	require.NoError(t, db.Close())
	before := files(t, filepath.Dir(path))
	refusal := errors.New("it is old")
	_, err = OpenSnapshot(t.Context(), path, store.Options{}, Refusals{Old: refusal})
	assert.Equal(t, refusal, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = OpenSnapshot(ended, path, store.Options{}, Refusals{})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, before, files(t, filepath.Dir(path)))
	s, err := OpenSnapshot(t.Context(), path, store.Options{}, Refusals{})
	require.NoError(t, err)
	_, err = s.Search(t.Context(), "walnuts", 1, 0)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	assert.Equal(t, before, files(t, filepath.Dir(path)))
}
