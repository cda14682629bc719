package handlers

import (
	"context"
	"encoding/base64"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const (
	// terminalQueue bounds what a terminal printed and its connection has not
	// taken yet, in bytes; what is beyond it is lost, and the peer is told.
	terminalQueue = 256 << 10
	// terminalPatience is how long the terminal waits for such a connection,
	// before it is left behind until it has taken all that is queued. Whatever
	// else its executor has to tell waits, too.
	terminalPatience = 250 * time.Millisecond
	// terminalPart bounds the output in one event, in bytes.
	terminalPart = 64 << 10
)

// A terminalFeed is what one terminal has to tell its connection: a bounded
// queue in which adjacent output is joined, and a goroutine (run) that sends
// from it at the pace of the peer.
type terminalFeed struct {
	dialect *dialect.Client
	room    int // of a message, in bytes; 0: no limit
	send    func(ctx context.Context, messages ...any) error
	log     *slog.Logger

	wake  chan struct{} // something was queued
	space chan struct{} // something was taken, or nothing will be

	mu     sync.Mutex // guards the fields below
	queue  []terminalPiece
	bytes  int  // of output in queue
	behind bool // it was waited for in vain, and has not taken all yet
	ended  bool
	exit   bool // the last in queue, or the last that was in it, is the terminal's end
}

// A terminalPiece is output, or a gap in it, or another event as it is.
type terminalPiece struct {
	id       string
	encoding string
	output   []byte
	dropped  int
	time     time.Time
	event    *domain.Event
}

func newTerminalFeed(d *dialect.Client, room int, send func(context.Context, ...any) error, log *slog.Logger) *terminalFeed {
	return &terminalFeed{dialect: d, room: room, send: send, log: log, wake: make(chan struct{}, 1), space: make(chan struct{}, 1)}
}

// put queues an event of the terminal. It waits a moment where output finds no
// room.
func (f *terminalFeed) put(e domain.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	if p, ok := e.Payload.(domain.TerminalPrinted); ok {
		f.putOutput(p, e.Time)
	} else {
		f.queue = append(f.queue, terminalPiece{event: &e})
		f.exit = e.Payload.Kind() == domain.EventTerminalExit
		f.ended = f.exit
	}
	nudge(f.wake)
}

func (f *terminalFeed) putOutput(p domain.TerminalPrinted, at time.Time) {
	output, err := catalog.DecodeBytes(p.Data, p.Encoding)
	if p.Encoding != catalog.EncodingBase64 {
		p.Encoding = catalog.EncodingUTF8
	} else if err != nil {
		return
	}
	f.waitForRoom(len(output))
	last := f.last()
	if f.bytes+len(output) > terminalQueue {
		if last == nil || last.dropped == 0 {
			f.queue = append(f.queue, terminalPiece{id: p.TerminalID, time: at})
			last = f.last()
			f.log.Warn("output of a terminal is lost: the peer does not read", "terminal", p.TerminalID)
		}
		last.dropped += len(output)
		return
	}
	f.bytes += len(output)
	if last != nil && last.event == nil && last.dropped == 0 && last.encoding == p.Encoding && len(last.output)+len(output) <= terminalPart {
		last.output = append(last.output, output...)
		return
	}
	f.queue = append(f.queue, terminalPiece{id: p.TerminalID, encoding: p.Encoding, output: output, time: at})
}

// waitForRoom waits until so many bytes fit, but not for a peer that is behind
// already; f.mu is held, but not meanwhile.
func (f *terminalFeed) waitForRoom(n int) {
	if f.behind || f.bytes+n <= terminalQueue {
		return
	}
	patience := time.NewTimer(terminalPatience)
	defer patience.Stop()
	for !f.ended && !f.behind && f.bytes+n > terminalQueue {
		late := false
		f.mu.Unlock()
		select {
		case <-f.space:
		case <-patience.C:
			late = true
		}
		f.mu.Lock()
		f.behind = late
	}
}

func (f *terminalFeed) last() *terminalPiece {
	if len(f.queue) == 0 {
		return nil
	}
	return &f.queue[len(f.queue)-1]
}

// run sends until the terminal has ended or the connection has.
func (f *terminalFeed) run(ctx context.Context) {
	defer f.finish()
	for {
		piece, more := f.take()
		if piece == nil {
			if !more {
				return
			}
			select {
			case <-f.wake:
			case <-ctx.Done():
				return
			}
			continue
		}
		if sendEvent(ctx, f.send, f.dialect, "", f.room, piece.asEvent()) != nil {
			return
		}
	}
}

// exitQueued reports whether the terminal's exit was sent, or is about to be.
func (f *terminalFeed) exitQueued() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.exit
}

// take takes the first piece off the queue; if there is none, more says
// whether one may come.
func (f *terminalFeed) take() (piece *terminalPiece, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		f.behind = false
		return nil, !f.ended
	}
	first := f.queue[0]
	f.queue = f.queue[1:]
	f.bytes -= len(first.output)
	nudge(f.space)
	return &first, true
}

// finish lets go of what nobody will take, and ends run.
func (f *terminalFeed) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.queue = true, nil
	nudge(f.wake)
	nudge(f.space)
}

// nudge wakes whoever waits on c, or will.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// asEvent is the piece as an event.
func (p terminalPiece) asEvent() domain.Event {
	if p.event != nil {
		return *p.event
	}
	e := domain.Event{Time: p.time}
	switch {
	case p.dropped > 0:
		e.Payload = domain.TerminalLagged{TerminalID: p.id, Dropped: p.dropped}
	case p.encoding == catalog.EncodingBase64: // also where the parts of it together are UTF-8
		e.Payload = domain.TerminalPrinted{TerminalID: p.id, Data: base64.StdEncoding.EncodeToString(p.output), Encoding: p.encoding}
	default:
		e.Payload = domain.TerminalPrinted{TerminalID: p.id, Data: string(p.output), Encoding: p.encoding}
	}
	return e
}
