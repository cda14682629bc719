package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/sandbox"
)

// The driver of programs without a protocol: it starts one program per prompt, and the program's
// output is the answer.

// maxArgument is the longest prompt that is passed as an argument, in bytes: Linux limits an
// argument to 128 KiB.
const maxArgument = 100 << 10

const promptMark = "{prompt}"

// A commandDriver runs prompts with programs. It keeps no state between prompts.
type commandDriver struct{ processes *process.Runner }

// newCommandDriver makes a commandDriver whose programs belong to processes.
func newCommandDriver(processes *process.Runner) *commandDriver { return &commandDriver{processes} }

// Run runs a task to its end. The program's goroutines end with it.
func (d *commandDriver) Run(t *task.Task) (stopReason string, failed *task.Failure) {
	prompt, failed := withLinks(t.Launch.Name, t.Params)
	if failed != nil {
		return "", failed
	}
	if t.Launch.History != "none" {
		history, failed := t.History(prompt)
		if failed != nil {
			return "", failed
		}
		prompt = history + prompt
	}
	if ignored := settingsOf(t.Session); ignored != "" {
		t.Problem(task.CodeIgnored,
			fmt.Sprintf("%s is a plain command, which is started as it is configured, without %s", t.Launch.Name, ignored))
	}
	argv, stdin := commandLine(t.Launch, prompt)
	env, failed := t.Environment()
	if failed != nil || t.Stopped() {
		return "", failed
	}
	path, err := env.Find(cmp.Or(t.Launch.Program, argv[0]), t.Params.CWD)
	if err != nil {
		return "", task.StartFailure(t.Launch, t.Params.CWD, err)
	}
	box, failed := t.Box(path, env)
	if failed != nil {
		return "", failed
	}
	proc, err := d.processes.Start(process.Spec{Path: path, Argv: argv, CWD: t.Params.CWD, Env: env, Stdin: stdin, Sandbox: box})
	if err != nil {
		return "", task.StartFailure(t.Launch, t.Params.CWD, err)
	}
	t.Started(proc)
	var beside sync.WaitGroup
	defer beside.Wait()
	if stdin {
		beside.Go(func() { // concurrently, because the program need not read its input
			proc.Write([]byte(prompt))
			proc.CloseInput()
		})
	}
	beside.Go(func() {
		select {
		case <-t.Context().Done():
			proc.Interrupt()
		case <-proc.Done():
		}
	})
	id := process.RandomID("")
	var text process.TextDecoder
	proc.ReadOutput(t.Context(), func(p []byte) { t.Text(id, "", text.Decode(p)) })
	t.Text(id, "", text.Flush())
	<-proc.Done()
	if proc.Succeeded() {
		return "", nil
	}
	return "", &task.Failure{Code: task.CodeExited, Message: t.Launch.Name + " " + proc.ExitText()}
}

// settingsOf describes the requested settings, which a program cannot apply.
func settingsOf(c catalog.GetExecutionContextResult) string {
	var list []string
	if c.ModelConfig != nil && c.ModelConfig.Model != "" {
		list = append(list, fmt.Sprintf("the model %q", c.ModelConfig.Model))
	}
	for _, id := range slices.Sorted(maps.Keys(c.Options)) {
		list = append(list, fmt.Sprintf("the option %q", id))
	}
	return strings.Join(list, " and ")
}

// withLinks returns a prompt followed by the places of its attached files, because a program
// accepts text only.
func withLinks(agent string, p catalog.ExecutePromptParams) (string, *task.Failure) {
	text := p.Prompt
	for _, b := range p.Content {
		uri := b.URI
		if b.Resource != nil {
			uri = b.Resource.URI
		}
		if b.Type != "resource" && b.Type != "resource_link" {
			return "", &task.Failure{Code: task.CodeContent, Message: fmt.Sprintf(
				"%s is a plain command and takes no content of the type %s: it takes text, and links to resources", agent, b.Type,
			)}
		}
		text += "\n\n" + uri
	}
	return text, nil
}

// commandLine returns the program and its arguments with the prompt in its place. stdin means
// that the prompt goes to stdin and the arguments lack it.
func commandLine(l *catalog.AgentLaunch, prompt string) (argv []string, stdin bool) {
	marked := false
	for _, arg := range l.Command {
		marked = marked || strings.Contains(arg, promptMark)
	}
	// An argument cannot contain a NUL.
	stdin = l.Prompt == "stdin" || len(prompt) > maxArgument || strings.ContainsRune(prompt, 0)
	for _, arg := range l.Command {
		switch {
		case stdin && arg == promptMark:
		case stdin:
			argv = append(argv, strings.ReplaceAll(arg, promptMark, ""))
		default:
			argv = append(argv, noOption(arg, strings.ReplaceAll(arg, promptMark, prompt)))
		}
	}
	if !stdin && !marked {
		argv = append(argv, noOption("", prompt))
	}
	return argv, stdin
}

// noOption returns an argument that contains a prompt. It puts a space before a prompt that
// starts with a dash, so that the program cannot take the prompt for an option. The space changes
// nothing for an agent.
func noOption(configured, arg string) string {
	if strings.HasPrefix(arg, "-") && !strings.HasPrefix(configured, "-") {
		return " " + arg
	}
	return arg
}

// Commands of the configuration: builds, gates and other user commands.
//
// A [commands] owns the commands of an executor. It passes their output to a [commandReporter],
// in order. It does not read a command's output while a report waits.

// errCommandsClosed is the error of Run after Close.
var errCommandsClosed = errors.New("the commands have been ended")

// A commandReporter receives the start and the output of commands.
type commandReporter interface {
	CommandStarted(context.Context, catalog.CommandStartedParams) error
	// CommandOutput returns when the hub has taken the output.
	CommandOutput(context.Context, catalog.CommandOutputParams) error
}

// A commands owns commands. Its methods may be called from any goroutine. The caller must close
// it.
type commands struct {
	ctx       context.Context // reports are abandoned when it ends
	processes *process.Runner
	subreaper []string
	reporter  commandReporter

	mu      sync.Mutex // guards the fields below
	closed  bool
	running map[string]context.CancelFunc // by id; the function starts to end the command
	work    sync.WaitGroup
}

// newCommands makes a commands without any command. Its reports are retried until ctx ends.
// subreaper is the one of a [process.Spec].
func newCommands(ctx context.Context, processes *process.Runner, subreaper []string, reporter commandReporter) *commands {
	return &commands{ctx: ctx, processes: processes, subreaper: subreaper, reporter: reporter, running: make(map[string]context.CancelFunc)}
}

// Run runs a command until it ends or ctx does. It returns when all processes of the command have
// ended and the output was reported. The error is errCommandsClosed.
func (s *commands) Run(ctx context.Context, p catalog.RunCommandParams) (catalog.RunCommandResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !s.begin(p.CommandID, cancel) {
		return catalog.RunCommandResult{}, errCommandsClosed
	}
	defer s.end(p.CommandID)
	proc, err := s.start(p)
	if err != nil {
		return catalog.RunCommandResult{ExitCode: -1, StartError: reason(err)}, nil
	}
	var beside sync.WaitGroup
	beside.Go(func() {
		select {
		case <-ctx.Done():
			proc.Interrupt()
		case <-proc.Done():
		}
	})
	_ = s.reporter.CommandStarted(s.ctx, catalog.CommandStartedParams{CommandID: p.CommandID, PID: proc.PID})
	taken := true
	proc.ReadOutput(s.ctx, func(b []byte) {
		if taken { // else no client is left, and the output is only drained
			report := catalog.CommandOutputParams{CommandID: p.CommandID}
			report.Data, report.Encoding = catalog.EncodeBytes(b)
			taken = s.reporter.CommandOutput(s.ctx, report) == nil
		}
	})
	<-proc.Done()
	beside.Wait()
	result := catalog.RunCommandResult{}
	result.ExitCode, result.Signal = proc.ExitStatus()
	return result, nil
}

// start starts the program of a command.
func (s *commands) start(p catalog.RunCommandParams) (*process.Process, error) {
	if len(p.Command) == 0 {
		return nil, errors.New("no command is given")
	}
	env := process.NewEnvironment(p.Env)
	path, err := env.Find(p.Command[0], p.CWD)
	if err != nil {
		return nil, err
	}
	var box *sandbox.Box
	if p.Sandbox != nil {
		at := sandbox.Place{Root: p.CWD, CWD: p.CWD, Programs: []string{path}, Env: env}
		if box, err = sandbox.New(*p.Sandbox, at); err != nil {
			return nil, err
		}
	}
	return s.processes.Start(process.Spec{
		Sandbox: box, Path: path, Argv: p.Command, CWD: p.CWD, Env: env, Merge: true, Mark: p.Mark, Subreaper: s.subreaper,
	})
}

// Stop starts to end a command, and reports whether the command runs.
func (s *commands) Stop(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop, ok := s.running[id]
	if ok {
		stop()
	}
	return ok
}

// Close starts to end every command; Wait waits for the end.
func (s *commands) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, stop := range s.running {
		stop()
	}
}

// Wait returns when no command is left, after Close.
func (s *commands) Wait() { s.work.Wait() }

func (s *commands) begin(id string, stop context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running[id] = stop
	s.work.Add(1)
	return true
}

func (s *commands) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, id)
	s.work.Done()
}

// reason explains why a program was not started. It leaves the path out, because the caller knows
// it.
func reason(err error) string {
	var about *fs.PathError
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "no such program, or no such directory"
	case errors.As(err, &about):
		return about.Err.Error()
	}
	return err.Error()
}
