package usercommand

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
)

// running is a command in an executor.
type running struct {
	id, mark string
	ctx      context.Context // cancelled to end the command
	output   func(context.Context, []byte)
	answered chan struct{} // closed when the executor has answered

	once    sync.Once
	pid     int           // set before started is closed
	started chan struct{} // closed when it runs

	mu      sync.Mutex // guards the fields below; held while passing on output
	over    bool
	printed Excerpt
}

func newRunning(ctx context.Context, c Command) *running {
	return &running{
		id: random(), mark: random(), ctx: ctx, output: c.Output, answered: make(chan struct{}), started: make(chan struct{}),
		printed: Excerpt{limit: cmp.Or(c.Keep, keptOutput)},
	}
}

// hasStarted records the start of the command.
func (r *running) hasStarted(pid int) {
	r.once.Do(func() {
		r.pid = pid
		close(r.started)
	})
}

// print handles output of the command.
func (r *running) print(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.printed.add(p)
	if r.output != nil {
		r.output(r.ctx, p)
	}
}

// finish returns the output; later output is dropped.
func (r *running) finish() Excerpt {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.printed.trim()
	return r.printed
}

// random returns 128 random bits.
func random() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
