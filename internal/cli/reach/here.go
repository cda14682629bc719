package reach

import (
	"context"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/cli/interrupt"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// Here is a connection to the project's hub, which this process is until Close where
// no other one is, or a daemon that was started. Signals are for whoever has it.
type Here struct {
	*host.Connection
	Interrupts <-chan os.Signal

	settings    *hubprocess.Settings
	log         *logging.Log
	ctx         context.Context
	cancel      context.CancelFunc
	giveSignals func()
	note        func(string)
}

// Open opens one. Little is logged, unless levelGiven says that the user wants
// it. note is told what the user is to know. The error is
// [interrupt.Err] where a signal came first.
func Open(ctx context.Context, s *hubprocess.Settings, levelGiven bool, note func(string)) (*Here, error) {
	h := &Here{settings: s, log: openLog(s, levelGiven), note: note}
	h.Interrupts, h.giveSignals = interrupt.Signals()
	h.ctx, h.cancel = context.WithCancel(ctx)
	if err := h.connect(); err != nil {
		h.end()
		return nil, err
	}
	return h, nil
}

// Context ends when the connection is closed, or a signal came while one was made.
func (h *Here) Context() context.Context { return h.ctx }

// Again connects once more, after the hub has gone: to another one, or to this
// process.
func (h *Here) Again() error {
	h.Connection.Close(h.Interrupts, h.note)
	return h.connect()
}

// Close ends the connection, and the hub if this process is it.
func (h *Here) Close() {
	h.Connection.Close(h.Interrupts, h.note)
	h.end()
}

func (h *Here) connect() error {
	return interrupt.Or(h.Interrupts, h.cancel, func() error {
		c, err := host.Connect(h.ctx, h.settings, h.log)
		if err == nil {
			h.Connection = c
		}
		return err
	})
}

func (h *Here) end() {
	h.cancel()
	h.giveSignals()
	h.log.Close(LogGrace)
}
