package store

import (
	"context"
	"database/sql"
	"time"
)

const (
	// checkpointAfter is after how many changed rows the checkpointer goes to
	// work.
	checkpointAfter = 1000
	// checkpointPause is between its passes, which each wait for the disk twice.
	checkpointPause = 3 * time.Second
	// walMost is the length of SQLite's write-ahead log, in pages, from which
	// on the writer makes a pass itself.
	walMost = 32 << 10
	// restAfter is the silence after which what the work took is given back.
	restAfter = time.Second
)

// A checkpointer brings what was committed from SQLite's write-ahead log into
// the database, beside the writer: SQLite would do it in a commit, which then
// takes ten times as long and everybody waits for. Only the writer can begin
// the log anew, and only once nothing of it is missing in the database, so
// while it writes without a pause the log grows to walMost.
type checkpointer struct {
	db     *sql.DB
	writer *writer
}

func newCheckpointer(path string, w *writer) (*checkpointer, error) {
	db, err := sql.Open("sqlite", dsn(path, "_pragma=busy_timeout(5000)&_pragma=synchronous(1)&_pragma=cache_size(-200)"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &checkpointer{db: db, writer: w}, nil
}

// loop works until the writer has ended.
func (c *checkpointer) loop() {
	defer c.db.Close()
	due := c.writer.due
	var pause, rest <-chan time.Time
	var commits int64 // when rest began
	for {
		select {
		case <-due:
			c.bring()
			due, pause = nil, time.After(checkpointPause)
		case <-pause:
			due, pause = c.writer.due, nil
			continue
		case <-rest:
			if c.writer.commits.Load() == commits {
				c.writer.ask(shrink)
				c.db.ExecContext(context.Background(), shrink)
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

// bring brings what is due into the database.
func (c *checkpointer) bring() {
	if c.pass() > walMost {
		c.pass() // so that little is left for the writer
		c.writer.ask(passive)
	}
}

// pass brings into the database what can be brought without waiting for
// anybody, and returns how long the log is. What fails is done by a later
// pass, or by who opens the database next.
func (c *checkpointer) pass() (frames int) {
	var busy, done int
	if err := c.db.QueryRowContext(context.Background(), passive).Scan(&busy, &frames, &done); err != nil {
		return 0
	}
	return frames
}

const (
	passive = "PRAGMA wal_checkpoint(PASSIVE)"
	shrink  = "PRAGMA shrink_memory"
)
