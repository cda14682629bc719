package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/database"
	values "github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
	"github.com/duet-rpc/duet-rpc/internal/supervisor"
)

// A domain opens the project's hub when it is first needed, or a moment after
// the start, beside the first reply and never before it. What has failed is
// tried again when the hub is needed again: the user may have mended it.
type domain struct {
	settings *Settings
	log      *logging.Log

	trouble      func() string // what else health is to tell; may be nil
	problem      string        // that this process is the hub, though it should not be; or empty
	claimedAgain func()        // called when the project could be claimed later than at the start; may be nil
	claimLost    func()        // called when this process is the hub no more; may be nil
	displaced    func()        // called when it cannot be again: another is, or the project has gone; may be nil

	mu      sync.Mutex
	claim   claim
	latest  *opening // nil before the first
	closing bool
	notices []database.Notice // what was found in the database's place, and is told from then on

	giveUp sync.WaitGroup // hubs that were lost, being closed
}

// An opening is a try to open the hub.
type opening struct {
	done chan struct{} // closed when the others are set

	hub       *hub.Hub
	failure   *values.Error
	executors *supervisor.Supervisor
	ended     time.Time
}

// openAgainAfter is for how long a failure to open the hub is believed.
const openAgainAfter = time.Second

func newDomain(s *Settings, log *logging.Log, c claim) *domain {
	return &domain{settings: s, log: log, claim: c}
}

// outdated reports whether o has failed, and longer ago than openAgainAfter.
func (o *opening) outdated() bool {
	return o.over() && o.failure != nil && time.Since(o.ended) > openAgainAfter
}

func (o *opening) over() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// A claim is the right to be the hub of a project, or why there is none.
type claim struct {
	project project.Project
	lock    *project.Lock
	err     error // of *project.HeldError if another process is the hub
}

// claimProject tries to become the hub of the project.
func claimProject(s *Settings) claim {
	p, err := s.Project()
	if err != nil {
		return claim{err: err}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	lock, err := p.Claim(ctx)
	return claim{p, lock, err}
}

// held reports whether another process is the hub.
func (c claim) held() bool {
	var held *project.HeldError
	return errors.As(c.err, &held)
}

// claimed is the project's claim as it stands.
func (d *domain) claimed() claim {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.claim
}

// open begins to open the hub, if that was not begun, or has failed a while
// ago.
func (d *domain) open() *opening {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.latest
	if before != nil && (d.closing || !before.outdated()) {
		return before
	}
	o := &opening{done: make(chan struct{})}
	d.latest = o
	if d.closing {
		o.failure = unavailable(d.claim.project, errors.New("duet-rpc is ending"))
		close(o.done)
		return o
	}
	go func() {
		defer close(o.done)
		if before != nil {
			d.claimAgain()
		}
		if err := d.tryOpen(context.Background(), o); err != nil {
			o.failure = unavailable(d.claimed().project, err)
			if before == nil || before.failure.Message != o.failure.Message {
				d.log.Warn("sessions are not available", "err", err)
			}
		} else if before != nil {
			d.log.Info("sessions are available now")
		}
		o.ended = time.Now()
	}()
	return o
}

// claimAgain claims the project if that has failed.
func (d *domain) claimAgain() {
	d.giveUp.Wait() // else this process itself would be the one that has the lock, and would make way for it
	before := d.claimed()
	if before.err == nil {
		return
	}
	c := claimProject(d.settings)
	d.mu.Lock()
	d.claim = c
	d.mu.Unlock()
	switch {
	case c.err == nil && d.claimedAgain != nil:
		d.claimedAgain()
	case c.held() && d.displaced != nil:
		d.displaced()
	}
}

// claimAgainAfter is how long whoever removes a project's state is given to be
// done with it.
const claimAgainAfter = 300 * time.Millisecond

// errLost says why there is no hub any more.
var errLost = errors.New("the project's .duet was removed or replaced while duet-rpc used it, and what ran has ended; try again in a moment")

// lose gives up the hub that was opened, and the claim: its files are not the
// project's any more. A moment later the project is claimed again, unless it
// has gone altogether; another process may have done that already.
func (d *domain) lose(o *opening) {
	d.mu.Lock()
	if d.closing || d.latest != o {
		d.mu.Unlock()
		return
	}
	lost := d.claim
	over := make(chan struct{})
	close(over)
	d.latest = &opening{done: over, failure: unavailable(lost.project, errLost), ended: time.Now().Add(claimAgainAfter - openAgainAfter)}
	d.claim = claim{project: lost.project, err: errLost}
	d.giveUp.Add(1)
	d.mu.Unlock()
	defer d.giveUp.Done()
	if d.claimLost != nil {
		d.claimLost()
	}
	ctx, cancel := context.WithTimeout(context.Background(), domainGrace)
	defer cancel()
	_ = o.hub.Close() // it has said what is wrong with it
	o.executors.Close(ctx)
	lost.lock.Close()
	time.AfterFunc(claimAgainAfter, func() {
		if _, err := os.Stat(lost.project.Root); err == nil {
			d.open()
		} else if d.displaced != nil {
			d.displaced()
		}
	})
}

// Hub waits for the hub. Its error is a *domain.Error of KindUnavailable.
func (d *domain) Hub(ctx context.Context) (*hub.Hub, error) {
	o := d.open()
	select {
	case <-o.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if o.failure != nil {
		return nil, o.failure
	}
	return o.hub, nil
}

// settled is the latest opening if it is over, else nil.
func (d *domain) settled() *opening {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.latest == nil || !d.latest.over() {
		return nil
	}
	return d.latest
}

// Issues lists what is wrong, without waiting.
func (d *domain) Issues() (issues []string) {
	if d.trouble != nil {
		if why := d.trouble(); why != "" {
			issues = append(issues, why)
		}
	}
	if d.problem != "" {
		issues = append(issues, d.claimed().project.ShortenPaths(d.problem))
	}
	d.mu.Lock()
	for _, notice := range d.notices {
		issues = append(issues, notice.Text)
	}
	d.mu.Unlock()
	o := d.settled()
	switch {
	case o == nil:
		return issues
	case o.failure != nil:
		return append(issues, o.failure.Message)
	}
	return append(issues, o.hub.Issues()...)
}

// openNoMore has the hub opened no more, and waits until nobody is about to, as
// long as ctx lasts: what is read to open it may be on a file system that does
// not answer. It returns the latest opening, or nil; over is false if there is
// one that goes on.
func (d *domain) openNoMore(ctx context.Context) (o *opening, over bool) {
	d.mu.Lock()
	d.closing = true
	o = d.latest
	d.mu.Unlock()
	if o == nil {
		return nil, true
	}
	select {
	case <-o.done:
		return o, true
	case <-ctx.Done():
		if o.over() {
			return o, true
		}
		return nil, false
	}
}

// close interrupts what runs and ends the executors.
func (d *domain) close(ctx context.Context) {
	o, over := d.openNoMore(ctx)
	if !over {
		d.log.Warn("the hub was still being opened")
		return // and the claim ends with the process: it may be about to use the database
	}
	defer func() { d.claimed().lock.Close() }()
	defer d.giveUp.Wait()
	if o == nil {
		return
	}
	if o.hub != nil {
		if err := o.hub.Close(); err != nil {
			d.log.Warn("the database was not closed properly", "err", err)
		}
	}
	if o.executors != nil {
		o.executors.Close(ctx)
	}
}

// tryOpen opens the project's hub.
func (d *domain) tryOpen(ctx context.Context, o *opening) error {
	claimed := d.claimed()
	if claimed.err != nil {
		return claimed.err
	}
	p := claimed.project
	live, err := d.liveConfig(p)
	if err != nil {
		return err
	}
	c, err := live.Current(false)
	if err != nil {
		return err
	}
	for _, note := range p.Notes {
		d.log.Warn("something was passed over", "note", note)
	}
	for _, file := range c.Untrusted {
		d.log.Warn("a project's configuration waits for your trust; parts of it have no effect", "file", file, "todo", "duet-rpc trust")
	}
	command, environment, err := executorCommand()
	if err != nil {
		return err
	}
	prepared, err := d.prepareDatabase(ctx, p)
	if err != nil {
		return err
	}
	o.hub, err = hub.Open(ctx, hub.Options{
		OpenStore: sqlite.Opener(p.Database(), prepared.ID), Database: p.Database(), Root: p.Root, Agents: live, Keys: live.Keys, Rules: live.Rules, Limits: c.Limits, Changes: live,
		Restricted: func() (*config.Config, error) { return live.Current(true) },
		Getenv:     os.Getenv, Logger: d.log.Logger, KillAgents: supervisor.KillAgents, Idle: debug.FreeOSMemory,
		Valid: func() error {
			if err := claimed.lock.Valid(); err != nil {
				return err
			}
			return prepared.Unchanged()
		},
		Lost: func(error) {
			<-o.done
			d.lose(o)
		},
		Executors: func(daemon catalog.Daemon) hub.Executors {
			o.executors = supervisor.New(supervisor.Options{
				Daemon: daemon, Command: command, Environment: environment, Logger: d.log.Logger, WireError: handlers.ExecutorError,
				Trace: traceExecutors(d.log), MostIdle: c.Limits.MostIdle(),
			})
			return o.executors
		},
	})
	err = sqlite.Locked(p.Database(), err)
	if err != nil && o.executors != nil {
		o.executors.Close(ctx)
		o.executors = nil
	}
	return err
}

// prepareDatabase prepares the project's database, and remembers what was
// noticed.
func (d *domain) prepareDatabase(ctx context.Context, p project.Project) (database.Prepared, error) {
	prepared, err := database.Prepare(ctx, p, d.log.Logger)
	d.mu.Lock()
	d.notices = append(d.notices, prepared.Notices...)
	d.mu.Unlock()
	return prepared, err
}

// forgetAside forgets what was noticed about a directory of what is not used.
func (d *domain) forgetAside(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notices = slices.DeleteFunc(d.notices, func(n database.Notice) bool { return n.Aside == dir })
}

// executorCommand is how an executor is started, and its environment, which
// is built from nothing.
func executorCommand() (command, environment []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("finding the program itself, which is also the executor: %w", err)
	}
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "GORACE"} {
		if value, ok := os.LookupEnv(name); ok {
			environment = append(environment, name+"="+value)
		}
	}
	return []string{self, "executor"}, environment, nil
}

// unavailable is why there is no hub of a project, as clients are told it.
func unavailable(p project.Project, err error) *values.Error {
	text := err.Error()
	var held *project.HeldError
	switch {
	case errors.As(err, &held):
		text = fmt.Sprintf("another duet-rpc has this project open (process %d); talk to it with `duet-rpc session` and `duet-rpc approvals`, or end it", held.PID)
	case database.IsUnusable(err):
		text += "; `duet-rpc doctor` says more"
	}
	return &values.Error{Kind: values.KindUnavailable, Message: "sessions are not available: " + p.ShortenPaths(text), Err: err}
}

// openAfter is when the hub is opened at the latest: runs that were queued
// when a process died go on without anybody asking.
const openAfter = 100 * time.Millisecond

// DrainWithin is how long daemon.stop lets work finish.
const DrainWithin = 15 * time.Second

// ready is the hub, or nil where there is none, or none yet.
func (d *domain) ready() *hub.Hub {
	if o := d.settled(); o != nil {
		return o.hub
	}
	return nil
}

// busy reports whether agents are at work.
func (d *domain) busy() bool {
	h := d.ready()
	return h != nil && h.Busy()
}

// drain waits until no agent is at work, as long as ctx lasts, and lets no
// other begin.
func (d *domain) drain(ctx context.Context) {
	if h := d.ready(); h != nil {
		h.Drain(ctx)
	}
}
