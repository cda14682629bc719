// Package build builds the project with the command that its configuration has for that, or
// that its files suggest, and finds in the output what is wrong where.
package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
)

// Configured is what the configuration has to say of builds now.
type Configured struct {
	Builds    []config.Build
	Untrusted bool // the project has a file that waits for its user's trust
}

// Options are what Builds need. All are required.
type Options struct {
	Root       string // of the project, absolute
	Configured func() (Configured, error)
	Getenv     func(string) string
	Run        func(context.Context, usercommand.Command) (usercommand.Result, error)
	// Announce keeps an event in the log. What it cannot keep it says itself.
	Announce func(domain.Event)
}

// Builds builds. Its methods may be called from any goroutine.
type Builds struct {
	opts Options

	mu   sync.Mutex               // guards the field below
	busy map[string]chan struct{} // by name; has one in it while that is being built
}

// New makes Builds. Each ends with whoever asked for it.
func New(opts Options) *Builds { return &Builds{opts: opts, busy: make(map[string]chan struct{})} }

// A Target is something that can be built.
type Target struct {
	config.Build
	Detected bool // the project's files suggest it; it is not configured
}

// Targets are what can be built: what is configured, or else what the project's files
// suggest. The first one is built where nobody names another.
func (b *Builds) Targets(ctx context.Context) ([]Target, error) {
	configured, err := b.opts.Configured()
	if err != nil {
		return nil, &domain.Error{Kind: domain.KindExecutor, Message: "the configuration cannot be read: " + err.Error(), Err: err}
	}
	// What is suggested runs the project's own programs, too, and so does mostly what the
	// user has configured for all projects.
	switch {
	case clientenv.IsRestricted(ctx):
		return nil, domain.Errorf(domain.KindNotTrusted, "a build runs programs of the project, and this editor does not trust the workspace (workspaceTrusted is false): trust it in the editor")
	case configured.Untrusted:
		return nil, domain.Errorf(domain.KindNotTrusted, "a build runs programs of the project, whose configuration waits for your trust: look at it with `duet-rpc trust`")
	}
	targets := make([]Target, 0, len(configured.Builds))
	for _, c := range configured.Builds {
		targets = append(targets, Target{Build: c})
	}
	if len(targets) == 0 {
		targets = detect(b.opts.Root)
	}
	return targets, nil
}

// A Request says what is to be built.
type Request struct {
	Name    string // "" for the first one
	Backend bool   // the first one of a backend, where no name is given
}

// choose finds what is to be built.
func (b *Builds) choose(ctx context.Context, r Request) (Target, error) {
	targets, err := b.Targets(ctx)
	if err != nil {
		return Target{}, err
	}
	var names []string
	for _, t := range targets {
		if t.Name == r.Name || r.Name == "" && t.Backend == r.Backend {
			return t, nil
		}
		names = append(names, t.Name)
	}
	switch {
	case r.Name != "" && len(names) > 0:
		return Target{}, domain.Invalid("name", "the name of a build", fmt.Sprintf("%q", r.Name), names...)
	case r.Backend:
		return Target{}, domain.Errorf(domain.KindNoBuild, "no build is one of a backend: give one `backend = true` in [[builds]] of .duet.toml")
	case len(targets) > 0: // all are backends
		return targets[0], nil
	}
	return Target{}, domain.Errorf(domain.KindNoBuild, "nothing says how this project is built: add [[builds]] to .duet.toml (`duet-rpc config --defaults` shows how)")
}

// A Listener is told how a build goes on, from one goroutine at a time. Its methods return
// when ctx ends; while they do not return, the build is held up.
type Listener interface {
	// Waits tells that another build of that name has to end first.
	Waits(ctx context.Context, id string, t Target)
	Started(ctx context.Context, id string, t Target)
	// Printed is called with whole lines; the last one may have no end.
	Printed(ctx context.Context, id string, t Target, text string)
	Found(ctx context.Context, id string, t Target, d domain.Diagnostic)
	// Ended tells at which stage the build has ended, after all else.
	Ended(ctx context.Context, id string, t Target, stage string)
}

// A Result is how a build ended.
type Result struct {
	usercommand.Result
	ID          string
	Target      Target
	Diagnostics []domain.Diagnostic // the first thousand
	Errors      int                 // in all
	Warnings    int

	text int // bytes of the diagnostics
}

// A FailedError is a build that has failed.
type FailedError struct {
	Result
	Reason string // in words, such as "exit status 2"
}

func (e *FailedError) Error() string {
	text := fmt.Sprintf("%s failed: %s", e.Target.Name, e.Reason)
	if e.Errors > 0 {
		text += fmt.Sprintf(", %d error%s", e.Errors, plural(e.Errors))
	}
	return text
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// Build builds something, and ends that with its process group when ctx ends; then the error
// is that of ctx. One build of a name runs at a time: another one waits, since what it is to
// build may be newer. The error is a *FailedError if the build has failed.
func (b *Builds) Build(ctx context.Context, r Request, listener Listener) (Result, error) {
	target, err := b.choose(ctx, r)
	if err != nil {
		return Result{}, err
	}
	id := uuid.NewString()
	free := b.place(target.Name)
	select {
	case free <- struct{}{}:
	default:
		listener.Waits(ctx, id, target)
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
	}
	defer func() { <-free }()
	return b.run(ctx, id, target, listener)
}

// place has room for one build of a name.
func (b *Builds) place(name string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[name] == nil {
		b.busy[name] = make(chan struct{}, 1)
	}
	return b.busy[name]
}

// mostKept is how many diagnostics a result has, and keptText how long they are together, in
// bytes; mostTold and toldText are the same of an event.
const (
	mostKept = 1000
	keptText = 512 << 10
	mostTold = 200
	toldText = 64 << 10
)

func (b *Builds) run(ctx context.Context, id string, t Target, listener Listener) (Result, error) {
	directory := t.Directory
	if !filepath.IsAbs(directory) {
		directory = filepath.Join(b.opts.Root, directory)
	}
	result := Result{ID: id, Target: t}
	reader := &usercommand.Reader{
		Parser: usercommand.NewParser(b.opts.Root, directory),
		Text:   func(ctx context.Context, text string) { listener.Printed(ctx, id, t, text) },
		Found: func(ctx context.Context, d domain.Diagnostic) {
			result.count(d)
			listener.Found(ctx, id, t, d)
		},
	}
	b.tell(domain.BuildProgressed{BuildID: id, Name: t.Name, Stage: domain.BuildStarted, Command: t.Text()})
	listener.Started(ctx, id, t)
	ran, err := b.opts.Run(ctx, usercommand.Command{
		Argv: t.Command, Shell: t.Shell, Directory: directory, Env: clientenv.From(ctx).ForCommand(b.opts.Getenv, t.Env), Timeout: t.Timeout, Output: reader.Take,
	})
	reader.Flush(ctx)
	result.Result = ran
	var reason string
	var start *usercommand.StartError
	switch {
	case errors.As(err, &start):
		reason, err = start.Error(), nil
	case err != nil:
	case ran.TimedOut:
		reason = fmt.Sprintf("it took longer than %s", t.Timeout)
	case ran.Signal != "":
		reason = "ended by " + ran.Signal
	case ran.ExitCode != 0:
		reason = fmt.Sprintf("exit status %d", ran.ExitCode)
	}
	end := result.event(err, reason)
	b.tell(end)
	listener.Ended(ctx, id, t, end.Stage)
	switch {
	case err != nil:
		return result, err
	case reason != "":
		return result, &FailedError{result, reason}
	}
	return result, nil
}

// count takes a diagnostic.
func (r *Result) count(d domain.Diagnostic) {
	switch d.Severity {
	case domain.SeverityError:
		r.Errors++
	case domain.SeverityWarning:
		r.Warnings++
	}
	if r.text += len(d.File) + len(d.Message); len(r.Diagnostics) < mostKept && r.text <= keptText {
		r.Diagnostics = append(r.Diagnostics, d)
	}
}

// told are the diagnostics that an event has.
func (r *Result) told() []domain.Diagnostic {
	text := 0
	for i, d := range r.Diagnostics {
		if text += len(d.File) + len(d.Message); i == mostTold || text > toldText {
			return r.Diagnostics[:i]
		}
	}
	return r.Diagnostics
}

// event tells how the build ended.
func (r *Result) event(err error, reason string) domain.BuildProgressed {
	e := domain.BuildProgressed{
		BuildID: r.ID, Name: r.Target.Name, Stage: domain.BuildSucceeded, Command: r.Target.Text(), Duration: r.Duration,
		Diagnostics: r.told(), Errors: r.Errors, Warnings: r.Warnings, Reason: reason,
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Stage = domain.BuildCancelled
	case err != nil:
		e.Stage, e.Reason = domain.BuildFailed, cmp.Or(reason, err.Error())
	case reason != "":
		e.Stage = domain.BuildFailed
	}
	return e
}

func (b *Builds) tell(p domain.BuildProgressed) { b.opts.Announce(domain.Event{Payload: p}) }
