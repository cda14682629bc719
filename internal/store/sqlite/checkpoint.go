package sqlite

import (
	"context"
	"database/sql"
	"time"
)

const (
	// checkpointAfter is the number of changed rows after which the checkpointer runs.
	checkpointAfter = 1000
	// checkpointPause is the interval between its passes, each of which syncs the disk twice.
	checkpointPause = 3 * time.Second
	// pageSize is SQLite's page size, in bytes (https://sqlite.org/pragma.html#pragma_page_size).
	pageSize = 4096
	// walMost is the length of the write-ahead log, in pages, from which the writer itself makes
	// a pass. walAgain is the pause before a retry if readers were active.
	walMost  = 4 << 10
	walAgain = 100 * time.Millisecond
	// restAfter is the pause after which the memory of the work is freed.
	restAfter = time.Second
)

// A checkpointer copies commits from SQLite's write-ahead log into the database, concurrently
// with the writer. SQLite would do it in a commit, which would take ten times as long while every
// client waits. Only the writer can restart the log, after all of it is in the database and no
// reader uses it. The checkpointer requests that each time the log has grown to walMost
// (https://sqlite.org/wal.html#avoiding_excessively_large_wal_files).
type checkpointer struct {
	db      *sql.DB
	readers *sql.DB // which rest with it
	writer  *writer
}

func newCheckpointer(path string, w *writer, readers *sql.DB) (*checkpointer, error) {
	db, err := sql.Open("sqlite", dsn(path, "_pragma=busy_timeout(5000)&_pragma=synchronous(1)&_pragma=cache_size(-200)"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &checkpointer{db: db, writer: w, readers: readers}, nil
}

// loop works until the writer has ended.
func (c *checkpointer) loop() {
	defer c.db.Close()
	due := c.writer.checkpointDue
	var pause, rest <-chan time.Time
	var commits int64  // at the beginning of the pause
	var last time.Time // the last time the log was too long
	for {
		select {
		case <-due:
			due, pause = nil, time.After(c.bring())
		case <-c.writer.logTooLong:
			if pause == nil || time.Since(last) >= walAgain {
				due, pause = nil, time.After(c.bring())
				last = time.Now()
			}
		case <-pause:
			due, pause = c.writer.checkpointDue, nil
			continue
		case <-rest:
			if c.writer.commits.Load() == commits {
				c.writer.requestPragma(truncate + shrink)
				c.db.ExecContext(context.Background(), shrink)
				c.readers.ExecContext(context.Background(), shrink)
				rest = nil
				continue
			}
		case <-c.writer.ended:
			return
		}
		commits = c.writer.commits.Load()
		rest = time.After(restAfter)
	}
}

// bring copies pending commits into the database, and returns the minimum time to the next call.
func (c *checkpointer) bring() time.Duration {
	if c.pass() <= walMost {
		return checkpointPause
	}
	c.pass() // so that little is left for the writer
	c.writer.requestPragma(restart)
	return walAgain
}

// pass copies as much as possible into the database without waiting, and returns the length of
// the log. The rest is left to a later pass, or to the next opening.
func (c *checkpointer) pass() (frames int) {
	var busy, done int
	if err := c.db.QueryRowContext(context.Background(), passive).Scan(&busy, &frames, &done); err != nil {
		return 0
	}
	return frames
}

const (
	passive = "PRAGMA wal_checkpoint(PASSIVE)"
	// The writer waits for readers, but not noticeably long.
	restart  = "PRAGMA busy_timeout = 100; PRAGMA wal_checkpoint(RESTART); PRAGMA busy_timeout = 5000;"
	truncate = "PRAGMA busy_timeout = 100; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = 5000;"
	shrink   = "PRAGMA shrink_memory"
)
