package stdio

import (
	"sync/atomic"
	"time"
)

// deadline is a time that one goroutine sets and another one reads.
type deadline struct{ ns atomic.Int64 } // since epoch; 0: none

var epoch = time.Now()

func (d *deadline) set(t time.Time) {
	if t.IsZero() {
		d.ns.Store(0)
		return
	}
	d.ns.Store(max(1, int64(t.Sub(epoch))))
}

// left is how long there is; it is meaningless if there is no deadline.
func (d *deadline) left() (left time.Duration, has bool) {
	ns := d.ns.Load()
	if ns == 0 {
		return 0, false
	}
	return time.Duration(ns) - time.Since(epoch), true
}
