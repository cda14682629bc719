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
)

// The driver of programs that speak no protocol: it starts one for each prompt, and its output is
// the answer.

// maxArgument is the longest prompt that goes in an argument, in bytes: the
// system takes no more than 128 KiB in one.
const maxArgument = 100 << 10

const promptMark = "{prompt}"

// A commandDriver runs prompts with programs. It keeps nothing between them.
type commandDriver struct{ processes *process.Runner }

// newCommandDriver makes a Driver whose programs belong to processes.
func newCommandDriver(processes *process.Runner) *commandDriver { return &commandDriver{processes} }

// Run runs a task to its end. The program's goroutines end with it.
func (d *commandDriver) Run(t *task.Task) (stopReason string, failed *task.Failure) {
	prompt, failed := withLinks(t.Launch.Name, t.Params)
	if failed != nil {
		return "", failed
	}
	if t.Launch.History != "none" {
		prompt = task.Before(t.Conversation.Messages, prompt) + prompt
	}
	if ignored := settingsOf(t.Conversation); ignored != "" {
		t.Problem(task.CodeIgnored, fmt.Sprintf("%s is a plain command, which is started as it is configured, without %s", t.Launch.Name, ignored))
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
	proc, err := d.processes.Start(process.Spec{Path: path, Argv: argv, CWD: t.Params.CWD, Env: env, Stdin: stdin})
	if err != nil {
		return "", task.StartFailure(t.Launch, t.Params.CWD, err)
	}
	t.Started(proc)
	var beside sync.WaitGroup
	defer beside.Wait()
	if stdin {
		beside.Go(func() { // a program that does not read is none the worse
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

// settingsOf is what a program was to be set to, in words.
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

// withLinks is a prompt and where the files are that go with it: a program gets
// nothing else than text.
func withLinks(agent string, p catalog.ExecutePromptParams) (string, *task.Failure) {
	text := p.Prompt
	for _, b := range p.Content {
		uri := b.URI
		if b.Resource != nil {
			uri = b.Resource.URI
		}
		if b.Type != "resource" && b.Type != "resource_link" {
			return "", &task.Failure{Code: task.CodeContent, Message: fmt.Sprintf("%s is a plain command and takes no content of the type %s: it takes text, and links to resources", agent, b.Type)}
		}
		text += "\n\n" + uri
	}
	return text, nil
}

// commandLine is the program and its arguments with the prompt in its place,
// or without it, if it is to go to stdin.
func commandLine(l *catalog.AgentLaunch, prompt string) (argv []string, stdin bool) {
	marked := false
	for _, arg := range l.Command {
		marked = marked || strings.Contains(arg, promptMark)
	}
	// A NUL cannot stand in an argument.
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

// noOption is an argument made of what is configured and a prompt. A prompt is
// never to be taken for an option of the program, so a space comes before one
// that begins like one: it means the same to an agent, and options do not
// begin so.
func noOption(configured, arg string) string {
	if strings.HasPrefix(arg, "-") && !strings.HasPrefix(configured, "-") {
		return " " + arg
	}
	return arg
}

// Commands of the configuration: builds, gates and other user commands.
//
// A [commands] owns the commands of an executor. What one prints goes to a [commandReporter], in
// order, and while that takes its time the command is not read.

// errCommandsClosed is what Run returns after Close.
var errCommandsClosed = errors.New("the commands have been ended")

// A commandReporter is told of commands.
type commandReporter interface {
	CommandStarted(context.Context, catalog.CommandStartedParams) error
	// CommandOutput returns when the output has been taken.
	CommandOutput(context.Context, catalog.CommandOutputParams) error
}

// A commands owns commands. Its methods may be called from any goroutine. It has to be
// closed.
type commands struct {
	ctx       context.Context // reports are given up when it ends
	processes *process.Runner
	subreaper []string
	reporter  commandReporter

	mu      sync.Mutex // guards the fields below
	closed  bool
	running map[string]context.CancelFunc // by id; begins to end the command
	work    sync.WaitGroup
}

// newCommands makes a Set without commands. Reports wait as long as ctx lasts. The subreaper is
// that of a [process.Spec].
func newCommands(ctx context.Context, processes *process.Runner, subreaper []string, reporter commandReporter) *commands {
	return &commands{ctx: ctx, processes: processes, subreaper: subreaper, reporter: reporter, running: make(map[string]context.CancelFunc)}
}

// Run runs a command to its end, or that of ctx, and returns when nothing that it has started
// is left and its output has been reported. The error is ErrClosed.
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
		if taken { // else nobody is there any more, and it is only read to its end
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
	return s.processes.Start(process.Spec{Path: path, Argv: p.Command, CWD: p.CWD, Env: env, Merge: true, Mark: p.Mark, Subreaper: s.subreaper})
}

// Stop begins to end a command, and reports whether it runs.
func (s *commands) Stop(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop, ok := s.running[id]
	if ok {
		stop()
	}
	return ok
}

// Close begins to end every command; Wait waits for that.
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

// reason is why a program was not started, in words and without its path, which whoever
// asked for it knows.
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
