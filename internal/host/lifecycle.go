package host

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// A lifecycle decides when a daemon ends that listens: when nothing needs it any more, when a
// client stops it, when its files are lost, or at a signal.
type lifecycle struct {
	daemon running
	log    *slog.Logger
	stops  chan bool // from daemon.stop; true: at once
}

// running is a daemon, as its lifecycle sees it.
type running interface {
	// lost is closed when its files are the project's no more.
	lost() <-chan struct{}
	// idle reports whether nothing is under way and nothing is to begin by itself.
	idle(ctx context.Context) bool
	// interruptWork interrupts what clients have begun.
	interruptWork(ctx context.Context)
	// drain waits until nothing is at work, and lets nothing begin.
	drain(ctx context.Context)
	// interrupt interrupts what runs, and returns when subscribers know.
	interrupt(ctx context.Context)
	// listen opens the sockets, if they are not open; unlisten closes them.
	listen() error
	unlisten()
	// vacantFor returns how long no client has been connected; 0 while one is.
	vacantFor() time.Duration
	// superseded reports whether all clients are of another build; met has a value when such a
	// client has come.
	superseded() bool
	met() <-chan struct{}
	// idleAfter is how long no client may be connected before an idle daemon ends; 0: it does not
	// end for that reason.
	idleAfter() time.Duration
	// interruptsAlone reports whether work is interrupted once no client has been connected for
	// [aloneAfter].
	interruptsAlone() bool
	// noteStop keeps clients from starting another daemon at once.
	noteStop()
}

// The clocks of a daemon.
const (
	aloneAfter        = time.Minute            // without clients, after which work may be interrupted, and again
	idleAgainAfter    = time.Minute            // at most, after which a daemon without clients looks again whether it is idle
	replaceAgainAfter = time.Second            // after which a superseded daemon looks again whether it is idle
	lostGrace         = 300 * time.Millisecond // between the loss of the files and the end, so that what removes them has ended before the next daemon starts

	// DrainWithin is how long daemon.stop lets work finish.
	DrainWithin = 15 * time.Second

	// How long the end may take until subscribers know what it does to runs.
	interruptWithin     = 400 * time.Millisecond // after a signal: of EndWithin
	interruptStopWithin = 2 * time.Second        // after daemon.stop
)

// errLost says why a daemon has ended.
var errLost = errors.New("the project's directory or its state was removed, moved or replaced while duet-rpc used it, and what ran has ended")

func newLifecycle(d running, log *slog.Logger) *lifecycle {
	return &lifecycle{daemon: d, log: log, stops: make(chan bool, 2)}
}

// stop ends the daemon: at once with force, else when what runs has ended, or
// [DrainWithin] is over. It does not wait for that.
func (l *lifecycle) stop(force bool) {
	select {
	case l.stops <- force:
	default: // it was said more than once
	}
}

// run returns when the daemon is to end, after what runs was interrupted. A signal ends ctx.
func (l *lifecycle) run(ctx context.Context) error {
	for {
		select {
		case <-l.lookAfter():
		case <-l.daemon.met():
		case <-l.daemon.lost():
			l.daemon.unlisten()
			select {
			case <-time.After(lostGrace):
			case <-ctx.Done():
			}
			return errLost
		case force := <-l.stops:
			l.end(ctx, force)
			return nil
		case <-ctx.Done():
			l.interrupt(interruptWithin)
			return nil
		}
		if l.daemon.interruptsAlone() && l.daemon.vacantFor() >= aloneAfter {
			l.daemon.interruptWork(ctx)
		}
		if l.isDeserted(ctx) && l.leave(ctx) {
			return nil
		}
	}
}

// lookAfter tells when it is to be looked whether the daemon is deserted, and whether its work
// is to be interrupted.
func (l *lifecycle) lookAfter() <-chan time.Time {
	idle, vacant := l.daemon.idleAfter(), l.daemon.vacantFor()
	next := time.Duration(0)
	if idle > 0 {
		if next = idle - vacant; next <= 0 { // it had something to do a moment ago
			next = min(idle, idleAgainAfter)
		}
	}
	if l.daemon.interruptsAlone() {
		left := aloneAfter - vacant
		if left <= 0 { // it did so a moment ago
			left = aloneAfter
		}
		if next == 0 || left < next {
			next = left
		}
	}
	if l.daemon.superseded() && (next == 0 || replaceAgainAfter < next) {
		next = replaceAgainAfter
	}
	if next == 0 {
		return nil
	}
	return time.After(next)
}

// isDeserted reports whether the daemon has had no client for long, or none of its own build,
// and has nothing to do.
func (l *lifecycle) isDeserted(ctx context.Context) bool {
	after := l.daemon.idleAfter()
	if !l.daemon.superseded() && (after == 0 || l.daemon.vacantFor() < after) {
		return false
	}
	return l.daemon.idle(ctx)
}

// leave closes the sockets of a daemon that is not needed, unless a client has come at the last
// moment. A client that comes later finds no socket, and starts another daemon.
func (l *lifecycle) leave(ctx context.Context) bool {
	l.daemon.unlisten()
	if !l.isDeserted(ctx) {
		_ = l.daemon.listen()
		return false
	}
	why := "no client was here for long"
	if l.daemon.superseded() {
		why = "all clients are of another build"
	}
	l.log.Info(why + ", and nothing is to be done, so this daemon ends")
	return true
}

// end lets work finish after daemon.stop, unless it is forced, and interrupts what then still
// runs. A signal ends ctx, and hurries it.
func (l *lifecycle) end(ctx context.Context, force bool) {
	if !force {
		l.drain(ctx)
	}
	if ctx.Err() != nil {
		l.interrupt(interruptWithin)
		return
	}
	l.daemon.noteStop()
	l.interrupt(interruptStopWithin)
}

// drain lets work finish until [DrainWithin] is over, a client forces the stop, the files are
// lost, or ctx ends.
func (l *lifecycle) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, DrainWithin)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		l.daemon.drain(ctx)
	}()
	for force := false; !force; {
		select {
		case force = <-l.stops: // others may ask for it, too
			continue
		case <-l.daemon.lost():
		case <-drained:
		}
		break
	}
	cancel()
	<-drained
}

// interrupt interrupts what runs.
func (l *lifecycle) interrupt(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	l.daemon.interrupt(ctx)
}
