// Package build builds the project with its configured command, or one that its files suggest, and
// finds diagnostics in the output.
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

// Configured is the current build configuration.
type Configured struct {
	Builds    []config.Build
	Untrusted bool // the project has an untrusted file
}

// Options configure Builds. All are required.
type Options struct {
	Root       string // project root, absolute
	Configured func() (Configured, error)
	Getenv     func(string) string
	Run        func(context.Context, usercommand.Command) (usercommand.Result, error)
	// Announce adds an event to the log, and reports its own errors.
	Announce func(domain.Event)
}

// Builds builds targets. Its methods may be called from any goroutine.
type Builds struct {
	opts Options

	mu   sync.Mutex               // guards busy
	busy map[string]chan struct{} // by name; holds a value during a build
}

// New returns Builds. Each build ends with its caller's context.
func New(opts Options) *Builds { return &Builds{opts: opts, busy: make(map[string]chan struct{})} }

// A Target is something that can be built.
type Target struct {
	config.Build
	Detected bool // suggested by the project's files, not configured
}

// Targets returns the configured targets, or else those that the project's files suggest. The first
// one is the default.
func (b *Builds) Targets(ctx context.Context) ([]Target, error) {
	configured, err := b.opts.Configured()
	if err != nil {
		return nil, &domain.Error{Kind: domain.KindExecutor, Message: "the configuration cannot be read: " + err.Error(), Err: err}
	}
	// Suggested commands also run the project's own programs, and so do most commands that the user
	// has configured for all projects.
	switch {
	case clientenv.IsRestricted(ctx):
		return nil, domain.Errorf(domain.KindNotTrusted, "a build runs programs of the project, and this editor does not trust the workspace "+
			"(workspaceTrusted is false): trust it in the editor")
	case configured.Untrusted:
		return nil, domain.Errorf(domain.KindNotTrusted, "a build runs programs of the project, whose configuration waits for your trust: look "+
			"at it with `duet-rpc trust`")
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

// Request selects a target.
type Request struct {
	Name    string // "" for the first one
	Backend bool   // without a name, the first backend
}

// choose finds the requested target.
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
	return Target{}, domain.Errorf(domain.KindNoBuild, "nothing says how this project is built: add [[builds]] to .duet.toml (`duet-rpc "+
		"config --defaults` shows how)")
}

// Listener receives the progress of a build, from one goroutine at a time. Its methods block the
// build and must return when ctx ends.
type Listener interface {
	// Waits reports that another build of that name must end first.
	Waits(ctx context.Context, id string, t Target)
	Started(ctx context.Context, id string, t Target)
	// Printed receives whole lines; the last one may have no end.
	Printed(ctx context.Context, id string, t Target, text string)
	Found(ctx context.Context, id string, t Target, d domain.Diagnostic)
	// Ended receives the final stage, after all other calls.
	Ended(ctx context.Context, id string, t Target, stage string)
}

// Result is the outcome of a build.
type Result struct {
	usercommand.Result
	ID          string
	Target      Target
	Diagnostics []domain.Diagnostic // the first thousand
	Errors      int                 // total
	Warnings    int

	text int // bytes of the diagnostics
}

// FailedError is the error of a failed build.
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

// Build builds a target. If ctx ends, Build ends its process group and returns the error of ctx.
// One build per name runs at a time; another one waits, because its sources may be newer. The error
// is a *FailedError if the build has failed.
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

// place returns the lock of a name.
func (b *Builds) place(name string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[name] == nil {
		b.busy[name] = make(chan struct{}, 1)
	}
	return b.busy[name]
}

// mostKept limits the diagnostics of a result, and keptText their total bytes; mostInEvent and
// textInEvent are the limits of an event.
const (
	mostKept    = 1000
	keptText    = 512 << 10
	mostInEvent = 200
	textInEvent = 64 << 10
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
	command := usercommand.Command{
		Argv: t.Command, Shell: t.Shell, Directory: directory, Env: clientenv.From(ctx).ForCommand(b.opts.Getenv, t.Env), Timeout: t.Timeout,
		Output: reader.Take,
	}
	var err error
	result.Result, err = b.opts.Run(ctx, command)
	reader.Flush(ctx)
	reason, err := command.Failure(result.Result, err)
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

// count adds a diagnostic.
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

// eventDiagnostics returns the diagnostics for an event.
func (r *Result) eventDiagnostics() []domain.Diagnostic {
	text := 0
	for i, d := range r.Diagnostics {
		if text += len(d.File) + len(d.Message); i == mostInEvent || text > textInEvent {
			return r.Diagnostics[:i]
		}
	}
	return r.Diagnostics
}

// event returns the event of the build's end.
func (r *Result) event(err error, reason string) domain.BuildProgressed {
	e := domain.BuildProgressed{
		BuildID: r.ID, Name: r.Target.Name, Stage: domain.BuildSucceeded, Command: r.Target.Text(), Duration: r.Duration,
		Diagnostics: r.eventDiagnostics(), Errors: r.Errors, Warnings: r.Warnings, Reason: reason,
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
