package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// A life is what a process does as the hub of its project, from its start to its
// end. It is a state machine with one goroutine: each state is a method that
// returns the next one. They stand here in the order in which a life goes
// through them:
//
//	starting ──► opening ──────► serving ──► losing
//	                │  ▲            │ │         │
//	                ▼  │ needed     │ │ stop    ├─► opening, when the files may be there again
//	            unavailable         │ ▼         └─► ended, when the project has gone
//	                                │ draining ──► stopping ──► ended
//	                                └─► leaving ──► ended, when a daemon has had nothing to do for long
//
// In every state daemon.stop leads to draining, or with force to stopping, a
// signal to signalled and so to ended. Callers that need the hub wait for the
// states: see [attempts].
type life[H opened] struct {
	parts parts[H]
	log   *slog.Logger
	ctx   context.Context // ends when everything is to end, before the state ended does its work
	end   context.CancelFunc

	signal <-chan struct{} // closed by a signal that ends processes
	stops  chan bool       // from daemon.stop; true: at once
	over   chan struct{}   // closed when the life is

	said     string         // why there was no hub the last time
	work     sync.WaitGroup // what the states opening and draining wait for
	attempts attempts[H]
}

// parts are what a life begins and ends: the lock, the sockets and the hub.
type parts[H opened] interface {
	// claim takes the project's lock, if it is not had, and reports whether it
	// was taken now. A *project.HeldError says that another process has it.
	claim(ctx context.Context) (taken bool, err error)
	// release gives the lock up; why says what is wrong until there is a claim
	// again.
	release(why error)
	// exists reports whether there is still a project.
	exists() bool
	// listen opens the sockets, if the lock is had and they are not open. It logs
	// what is wrong.
	listen() error
	// unlisten closes the sockets; with all, the connections over them, too.
	unlisten(all bool)
	// open opens the hub.
	open(ctx context.Context) (H, error)
	// vacantFor returns how long no client has been connected; 0 while one is.
	vacantFor() time.Duration
	// superseded reports whether all clients are of another build, so that a process ends that
	// has nothing to do; met has a value when such a client has come.
	superseded() bool
	met() <-chan struct{}
	// idleAfter is how long no client may be connected before a process ends that has nothing
	// to do; 0: it does not end for that reason.
	idleAfter() time.Duration
	// interruptsAlone reports whether work is interrupted once no client has been connected for
	// a while.
	interruptsAlone() bool
	// noteStop keeps whoever is attached from taking the hub's place at once.
	noteStop()
	// unavailable is an error as clients see it.
	unavailable(err error) error
}

// opened is an open hub.
type opened interface {
	// lost is closed when the files that it stands on are the project's no more.
	lost() <-chan struct{}
	// idle reports whether nothing is under way and nothing is to begin by itself.
	idle(ctx context.Context) bool
	// interruptWork interrupts what clients have begun.
	interruptWork(ctx context.Context)
	// drain waits until nothing is at work, and lets nothing begin.
	drain(ctx context.Context)
	// interrupt interrupts what runs, and returns when subscribers know.
	interrupt(ctx context.Context)
	// close closes it, as far as ctx allows.
	close(ctx context.Context)
}

// The clocks of a life.
const (
	listenAfter       = 10 * time.Millisecond  // after the start: the first reply comes first, and who wants to join tries again
	openAfter         = 100 * time.Millisecond // after the start, at the latest: runs that were queued when a process died go on without anybody asking
	openAgainAfter    = time.Second            // for which a failure to open the hub is believed
	aloneAfter        = time.Minute            // without clients, after which work may be interrupted, and again
	idleAgainAfter    = time.Minute            // at most, after which it is looked again whether a hub without clients is idle
	replaceAgainAfter = time.Second            // after which it is looked again whether a superseded process is idle
	claimAgainAfter   = 300 * time.Millisecond // grace period after the project's state was removed

	// DrainWithin is how long daemon.stop lets work finish.
	DrainWithin = 15 * time.Second

	// How long the end may take until subscribers know what it does to runs.
	interruptWithin     = 400 * time.Millisecond // after a signal: of EndWithin
	interruptStopWithin = 2 * time.Second        // after daemon.stop
)

// errLost says why there is no hub any more.
var errLost = errors.New("the project's directory or its state was removed, moved or replaced while duet-rpc used it, and what ran has ended; try again in a moment")

// errEnding says why there is no hub any more, and no other will be opened.
var errEnding error = domain.ErrEnding

func newLife[H opened](p parts[H], log *slog.Logger) *life[H] {
	l := &life[H]{
		parts: p, log: log, stops: make(chan bool, 2), over: make(chan struct{}),
		attempts: attempts[H]{needed: make(chan struct{}, 1), unavailable: p.unavailable},
	}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// state is a state of a life.
type state func() state

// run lives until the life is over. A signal ends ctx.
func (l *life[H]) run(ctx context.Context) {
	defer close(l.over)
	l.signal = ctx.Done()
	for next := state(l.starting); next != nil; {
		next = next()
	}
}

// starting gives way to the first reply.
func (l *life[H]) starting() state {
	e := l.wait(time.After(listenAfter), l.attempts.needed, nil)
	if e == timeOver {
		_ = l.parts.listen()
		e = l.wait(time.After(openAfter-listenAfter), l.attempts.needed, nil)
	}
	if e.leaves() {
		return l.leave(e)
	}
	return l.opening
}

// opening takes the lock, if it is not had, opens the sockets and then the hub.
func (l *life[H]) opening() state {
	attempt := l.attempts.begin()
	l.work.Go(func() {
		hub, err := l.tryOpen()
		l.attempts.settle(attempt, hub, err)
	})
	if e := l.wait(nil, attempt.done, nil); e.leaves() {
		return l.leave(e)
	}
	switch {
	case errors.As(attempt.err, new(*project.HeldError)):
		return l.ended // clients connect to that one
	case attempt.err != nil:
		if why := attempt.shown.Error(); why != l.said {
			l.said = why
			l.log.Warn("sessions are not available", "err", attempt.err)
		}
		return l.unavailable
	case attempt.number > 1:
		l.log.Info("sessions are available now")
	}
	return l.serving
}

func (l *life[H]) tryOpen() (hub H, err error) {
	taken, err := l.parts.claim(l.ctx)
	if err != nil {
		return hub, err
	}
	if taken {
		l.parts.unlisten(true) // at the next connection who comes is given back what it had
	}
	_ = l.parts.listen() // a hub that cannot be opened is to say why to whoever comes
	return l.parts.open(context.WithoutCancel(l.ctx))
}

// unavailable waits until the hub is needed again: the user may have mended what
// kept it from being opened.
func (l *life[H]) unavailable() state {
	for !l.attempts.wanted() {
		switch e := l.wait(l.lookAfter(), l.attempts.needed, nil); {
		case e.leaves():
			return l.leave(e)
		case e == timeOver && l.isDeserted():
			return l.leaving
		}
	}
	return l.opening
}

// serving is the hub.
func (l *life[H]) serving() state {
	hub, _ := l.attempts.ready()
	for {
		switch e := l.wait(l.lookAfter(), l.parts.met(), hub.lost()); {
		case e == filesLost:
			return l.losing
		case e.leaves():
			return l.leave(e)
		}
		if l.parts.interruptsAlone() && l.parts.vacantFor() >= aloneAfter {
			hub.interruptWork(l.ctx)
		}
		if l.isDeserted() {
			return l.leaving
		}
	}
}

// lookAfter tells when it is to be looked whether the process is deserted, and whether its work
// is to be interrupted.
func (l *life[H]) lookAfter() <-chan time.Time {
	idle, vacant := l.parts.idleAfter(), l.parts.vacantFor()
	next := time.Duration(0)
	if idle > 0 {
		if next = idle - vacant; next <= 0 { // it had something to do a moment ago
			next = min(idle, idleAgainAfter)
		}
	}
	if l.parts.interruptsAlone() {
		left := aloneAfter - vacant
		if left <= 0 { // it did so a moment ago
			left = aloneAfter
		}
		if next == 0 || left < next {
			next = left
		}
	}
	if l.parts.superseded() && (next == 0 || replaceAgainAfter < next) {
		next = replaceAgainAfter
	}
	if next == 0 {
		return nil
	}
	return time.After(next)
}

// isDeserted reports whether the process has had no client for long, or none of its own build,
// and has nothing to do.
func (l *life[H]) isDeserted() bool {
	after := l.parts.idleAfter()
	if !l.parts.superseded() && (after == 0 || l.parts.vacantFor() < after) {
		return false
	}
	hub, ok := l.attempts.ready()
	return !ok || hub.idle(l.ctx)
}

// leaving ends a process that is not needed, unless a client comes at the last moment. A
// client that comes later finds no socket, and starts another daemon.
func (l *life[H]) leaving() state {
	l.parts.unlisten(false)
	if l.isDeserted() {
		why := "no client was here for long"
		if l.parts.superseded() {
			why = "all clients are of another build"
		}
		l.log.Info(why + ", and nothing is to be done, so this daemon ends")
		return l.ended
	}
	_ = l.parts.listen()
	if _, ok := l.attempts.ready(); ok {
		return l.serving
	}
	return l.unavailable
}

// losing gives up the hub and the claim: the files that they stand on are not the
// project's any more. A moment later they may be there again; another process
// may have been quicker then.
func (l *life[H]) losing() state {
	hub, _ := l.attempts.ready()
	l.attempts.refuse(errLost)
	l.parts.unlisten(false)
	l.close(hub)
	l.parts.release(errLost)
	switch e := l.wait(time.After(claimAgainAfter), nil, nil); {
	case e.leaves():
		return l.leave(e)
	case !l.parts.exists():
		return l.ended
	}
	return l.opening
}

// draining lets work finish after daemon.stop.
func (l *life[H]) draining() state {
	if hub, ok := l.attempts.ready(); ok {
		ctx, cancel := context.WithTimeout(l.ctx, DrainWithin)
		drained := make(chan struct{})
		l.work.Go(func() {
			defer close(drained)
			hub.drain(ctx)
		})
		e := stopAsked
		for e == stopAsked { // others may ask for it, too
			e = l.wait(nil, drained, hub.lost())
		}
		cancel()
		<-drained
		if e == endSignalled {
			return l.leave(e)
		}
	}
	return l.stopping
}

// stopping ends because somebody said so: who is attached does not take over.
func (l *life[H]) stopping() state {
	l.parts.noteStop()
	l.interrupt(interruptStopWithin)
	return l.ended
}

// signalled ends because of a signal, which leaves less time.
func (l *life[H]) signalled() state {
	l.interrupt(interruptWithin)
	return l.ended
}

// interrupt interrupts what runs.
func (l *life[H]) interrupt(within time.Duration) {
	if hub, ok := l.attempts.ready(); ok && l.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(l.ctx, within)
		defer cancel()
		hub.interrupt(ctx)
	}
}

// ended closes what is open.
func (l *life[H]) ended() state {
	l.end()
	l.attempts.end()
	l.work.Wait() // the hub may still be about to be opened
	if hub, ok := l.attempts.ready(); ok {
		l.close(hub)
	}
	l.parts.release(errEnding)
	return nil
}

// close closes a hub within the time that the end of a process leaves.
func (l *life[H]) close(hub H) {
	ctx, cancel := context.WithTimeout(context.Background(), hubGrace)
	defer cancel()
	hub.close(ctx)
}

// An event is what a state waits for.
type event int

const (
	timeOver  event = iota
	happened        // what the state waited for
	filesLost       // see [opened]
	// What ends a life in every state:
	stopAsked    // by daemon.stop
	stopForced   // by daemon.stop with force
	endSignalled // by a signal that ends processes
	endNow       // by its owner
)

// leaves reports whether an event ends a life in every state.
func (e event) leaves() bool { return e >= stopAsked }

// leave is the state to which such an event leads.
func (l *life[H]) leave(e event) state {
	switch e {
	case stopAsked:
		return l.draining
	case stopForced:
		return l.stopping
	case endSignalled:
		return l.signalled
	}
	return l.ended
}

// wait waits for the next event, of which those may be nil that a state does not
// wait for.
func (l *life[H]) wait(after <-chan time.Time, what, lost <-chan struct{}) event {
	select {
	case <-after:
		return timeOver
	case <-what:
		return happened
	case <-lost:
		return filesLost
	case force := <-l.stops:
		if force {
			return stopForced
		}
		return stopAsked
	case <-l.signal:
		return endSignalled
	case <-l.ctx.Done():
		return endNow
	}
}

// stop ends the life: at once with force, else when what runs has ended, or
// [DrainWithin] is over. It does not wait for that.
func (l *life[H]) stop(force bool) {
	select {
	case l.stops <- force:
	default: // it was said more than once
	}
}
