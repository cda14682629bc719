package reach

import (
	"context"
	"os"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
)

// An Attended is a connection to the project's hub for a command that handles signals itself, and
// connects again when the hub has gone.
type Attended struct {
	*client.Client
	Interrupts <-chan os.Signal

	settings    *hubprocess.Settings
	ctx         context.Context
	cancel      context.CancelFunc
	giveSignals func()
}

// Open opens one. The error is [term.ErrInterrupted] where a signal came first.
func Open(ctx context.Context, s *hubprocess.Settings) (*Attended, error) {
	a := &Attended{settings: s}
	a.Interrupts, a.giveSignals = term.Interrupts()
	a.ctx, a.cancel = context.WithCancel(ctx)
	if err := a.connect(); err != nil {
		a.end()
		return nil, err
	}
	return a, nil
}

// Context ends when the connection is closed, or a signal came while one was made.
func (a *Attended) Context() context.Context { return a.ctx }

// Again connects once more, after the hub has gone.
func (a *Attended) Again() error {
	a.Client.Close()
	return a.connect()
}

// Close ends the connection.
func (a *Attended) Close() {
	a.Client.Close()
	a.end()
}

func (a *Attended) connect() error {
	return term.OrInterrupted(a.Interrupts, a.cancel, func() (err error) {
		a.Client, err = Dial(a.ctx, a.settings, true)
		return err
	})
}

func (a *Attended) end() {
	a.cancel()
	a.giveSignals()
}
