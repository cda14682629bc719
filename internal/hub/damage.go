package hub

import (
	"log/slog"
	"sync"
)

// damagedIssue is what users are told of a database that is damaged.
const damagedIssue = "the database is damaged, and a part of it cannot be read; run `duet-rpc doctor`"

// damage is whether something in the database could not be read. It is told by
// whoever reads, whatever locks they hold.
type damage struct {
	log *slog.Logger

	mu    sync.Mutex // guards first
	first error
}

// note notes damage, and logs the first that is met.
func (d *damage) note(err error) {
	d.mu.Lock()
	first := d.first == nil
	if first {
		d.first = err
	}
	d.mu.Unlock()
	if first {
		d.log.Error(damagedIssue, "err", err)
	}
}

func (d *damage) found() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.first != nil
}
