package host

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// A lifecycle decides when a listening daemon ends: when it has no clients and no work, when a
// client stops it, when its files are lost, or at a signal.
type lifecycle struct {
	daemon running
	log    *slog.Logger
	stops  chan bool // from daemon.stop; true: at once
	// interruptWithin is how long the end after a signal may take until subscribers have the last
	// events of the turns.
	interruptWithin time.Duration
}

// running is a daemon, as its lifecycle sees it.
type running interface {
	// lost returns a channel that is closed when the files no longer belong to the project.
	lost() <-chan struct{}
	// idle reports whether nothing runs and nothing is scheduled to start.
	idle(ctx context.Context) bool
	// interruptWork interrupts the work of clients.
	interruptWork(ctx context.Context)
	// drain waits until no work runs, and lets none begin.
	drain(ctx context.Context)
	// interrupt interrupts all work, and returns when subscribers have the events.
	interrupt(ctx context.Context)
	// listen opens the sockets, if they are not open; unlisten closes them.
	listen() error
	unlisten()
	// vacantFor returns how long no client has been connected; 0 while one is.
	vacantFor() time.Duration
	// superseded reports whether all clients are of another build; met gets a value when such a
	// client has come: whether it was told that the daemon ends. A client that was told otherwise
	// sends requests, so the daemon must not end at once, even if the last client of its own build
	// has gone since.
	superseded() bool
	met() <-chan bool
	// idleAfter is how long an idle daemon without clients lives; 0: it has no such limit.
	idleAfter() time.Duration
	// interruptsAlone reports whether work is interrupted once no client has been connected for
	// [aloneAfter].
	interruptsAlone() bool
	// noteStop keeps clients from starting another daemon at once.
	noteStop()
}

// The timeouts of a daemon.
const (
	// aloneAfter is how long a daemon is without clients before work may be interrupted, and again.
	aloneAfter = time.Minute
	// idleAgainAfter is the longest time before a daemon without clients checks again whether it is idle.
	idleAgainAfter = time.Minute
	// replaceAgainAfter is how long after the last client, or the last check, a superseded daemon
	// checks whether it is idle.
	replaceAgainAfter = time.Second
	// lostGrace is the grace period between the loss of the files and the end, so that the program
	// that removes them ends before the next daemon starts.
	lostGrace = 300 * time.Millisecond

	// DrainWithin is how long daemon.stop lets work finish.
	DrainWithin = 15 * time.Second

	// interruptStopWithin is how long the end after daemon.stop may take until subscribers have the
	// last events of the turns.
	interruptStopWithin = 2 * time.Second
)

// errLost is the error of a daemon that has lost its files.
var errLost = errors.New("the project's directory or its state was removed, moved or replaced while duet-rpc used it, and what ran has " +
	"ended")

func newLifecycle(d running, interruptWithin time.Duration, log *slog.Logger) *lifecycle {
	return &lifecycle{daemon: d, interruptWithin: interruptWithin, log: log, stops: make(chan bool, 2)}
}

// stop ends the daemon: at once with force, else when running work has ended, or [DrainWithin]
// is over. It does not wait for that.
func (l *lifecycle) stop(force bool) {
	select {
	case l.stops <- force:
	default: // already requested
	}
}

// run returns when the daemon must end, after it has interrupted all work. A signal ends ctx.
func (l *lifecycle) run(ctx context.Context) error {
	for {
		select {
		case <-l.lookAfter():
		case ends := <-l.daemon.met():
			if !ends {
				continue // the next check is in replaceAgainAfter at the earliest
			}
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
			l.interrupt(l.interruptWithin)
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

// lookAfter returns a timer for the next check whether the daemon is deserted, or its work must
// be interrupted.
func (l *lifecycle) lookAfter() <-chan time.Time {
	idle, vacant := l.daemon.idleAfter(), l.daemon.vacantFor()
	next := time.Duration(0)
	if idle > 0 {
		if next = idle - vacant; next <= 0 { // it was busy at the last check
			next = min(idle, idleAgainAfter)
		}
	}
	if l.daemon.interruptsAlone() {
		left := aloneAfter - vacant
		if left <= 0 { // it was interrupted at the last check
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

// isDeserted reports whether the daemon is idle and has had no client for long, or none of its
// own build.
func (l *lifecycle) isDeserted(ctx context.Context) bool {
	after := l.daemon.idleAfter()
	if !l.daemon.superseded() && (after == 0 || l.daemon.vacantFor() < after) {
		return false
	}
	return l.daemon.idle(ctx)
}

// leave closes the sockets of a daemon that is not needed, unless a client has come at the last
// moment. A later client finds no socket, and starts another daemon.
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

// end lets work finish after daemon.stop, unless it is forced, and then interrupts the rest. A
// signal ends ctx, and shortens the wait.
func (l *lifecycle) end(ctx context.Context, force bool) {
	if !force {
		l.drain(ctx)
	}
	if ctx.Err() != nil {
		l.interrupt(l.interruptWithin)
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
		case force = <-l.stops: // another client may stop it, too
			continue
		case <-l.daemon.lost():
		case <-drained:
		}
		break
	}
	cancel()
	<-drained
}

// interrupt interrupts all work.
func (l *lifecycle) interrupt(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	l.daemon.interrupt(ctx)
}
