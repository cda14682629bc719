package sqlite

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// database makes a file with a few rows and returns its bytes.
func database(t *testing.T) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "duet.db")
	s := openAt(t, path)
	storetest.AddTurn(t, s, storetest.NewSession(t, s, "").ID, domain.Queued)
	require.NoError(t, s.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return path, content
}

func TestFailedOpenChangesNothing(t *testing.T) {
	_, good := database(t)
	newer := append([]byte{}, good...)
	binary.BigEndian.PutUint32(newer[60:], uint32(format+1))
	noTables := append([]byte{}, good...)
	for i := 100; i < 4096; i++ { // the schema's page
		noTables[i] = 0xff
	}
	for name, c := range map[string]struct {
		content []byte
		reason  string
		says    []string
	}{
		"newer":       {newer, "newer", []string{"newer duet-rpc", "use that version", fmt.Sprint(format + 1)}},
		"foreign":     {[]byte("this is a text that somebody keeps here, and it is rather longer than the hundred bytes that the header of a database has"), "corrupt", []string{"not an SQLite database", "move it away"}},
		"short":       {good[:50], "corrupt", []string{"too short", ".recover"}},
		"one byte":    {[]byte("x"), "corrupt", []string{"too short"}},
		"99 bytes":    {good[:99], "corrupt", []string{"too short"}},
		"header only": {good[:100], "corrupt", []string{"damaged"}},
		"cut":         {good[:len(good)/2], "corrupt", []string{"cut off", fmt.Sprint(len(good)), ".recover"}},
		"cut a bit":   {good[:len(good)-1], "corrupt", []string{"cut off"}},
		"garbage":     {noTables, "corrupt", []string{"damaged", "backup"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "duet.db")
			require.NoError(t, os.WriteFile(path, c.content, 0o600))
			_, err := Open(ctx, path, store.Options{})
			var failed *OpenError
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, c.reason, failed.Reason, err)
			assert.Equal(t, path, failed.Path)
			for _, text := range append(c.says, path) {
				assert.Contains(t, err.Error(), text)
			}
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, c.content, now, "byte for byte")
		})
	}
}

func TestOpenEmptyFileAndKnownVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "duet.db")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	s := openAt(t, path)
	storetest.Write(t, s, storetest.AppendEvent("a"))
	require.NoError(t, s.Close())
	s = openAt(t, path)
	storetest.RequireGapless(t, storetest.AllEvents(t, s), 1)
	info, err := os.Stat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	assert.Equal(t, format, userVersion(t, path))
}

func userVersion(t *testing.T, path string) (v int) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, ""))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.QueryRow("PRAGMA user_version").Scan(&v))
	return v
}

// A killed process leaves a log; the file alone is incomplete.
func TestDatabaseWithLogIsNotTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "duet.db")
	s := openAt(t, path)
	for range 50 {
		storetest.Write(t, s, storetest.AppendEvent("e"))
	}
	storetest.RequireGapless(t, storetest.AllEvents(t, openAt(t, copyOf(t, path)))[:50], 50)
}

// copyOf copies a database as it is after a kill.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+".copy"+suffix, content, 0o600))
	}
	return path + ".copy"
}

// A power cut loses events that clients have received. No other event gets their numbers: a client
// that continues after such a number misses nothing.
func TestNumbersOfLostEventsAreNotGivenAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "duet.db")
	var announced int64
	s := openAt(t, path, func(events []domain.Event, now store.Reader) {
		announced = events[len(events)-1].Seq
		text, err := now.Meta(ctx, metaReserved)
		assert.NoError(t, err)
		reserved, err := strconv.ParseInt(text, 10, 64)
		assert.NoError(t, err)
		assert.GreaterOrEqual(t, reserved, announced, "numbers are reserved before clients see them")
	})
	storetest.Write(t, s, storetest.AppendEvent("durable"))
	disk := copyOf(t, path)
	for range reservedMost + 10 {
		require.NoError(t, s.Apply(ctx, storetest.AppendEvent("only in the memory of the kernel")))
		if announced == 5 {
			after := openAt(t, disk)
			last, err := after.LastSeq(ctx)
			require.NoError(t, err)
			assert.EqualValues(t, 1, last, "no client gets the erased ones")
			storetest.Write(t, after, storetest.AppendEvent("after the power cut"))
			list := storetest.AllEvents(t, after)
			storetest.RequireGapless(t, list, reservedMost+2)
			for _, e := range list[1 : len(list)-1] {
				assert.Equal(t, domain.EventErased, e.Payload.Kind(), "lost")
				assert.Equal(t, list[0].Time, e.Time)
			}
			assert.Equal(t, domain.EventErased, list[announced-1].Payload.Kind(), "the number of a lost event is not given again")
		}
	}
	require.NoError(t, s.Close())
	again := openAt(t, path)
	storetest.Write(t, again, storetest.AppendEvent("after a stop"))
	storetest.RequireGapless(t, storetest.AllEvents(t, again), reservedMost+12)
}

func TestOldDatabaseIsRefused(t *testing.T) {
	path, _ := database(t)
	execute(t, path, "PRAGMA user_version = 25")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = Open(ctx, path, store.Options{})
	var failed *OpenError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "older", failed.Reason)
	assert.Contains(t, err.Error(), "move the file away")
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, content, now, "byte for byte")
}

func TestMissingDirectoryIsAnOpenError(t *testing.T) {
	_, err := Open(ctx, filepath.Join(t.TempDir(), "no", "duet.db"), store.Options{})
	var failed *OpenError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "unreadable", failed.Reason)
	_, err = Open(ctx, t.TempDir(), store.Options{})
	require.ErrorAs(t, err, &failed, "a directory")
}
