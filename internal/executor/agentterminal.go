package executor

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

const (
	terminalKeeps = 1 << 20 // of an agent's terminal, unless the agent says less
	terminalChunk = 32 << 10
	maxTerminals  = 256 // of an agent at once
)

// An agentTerminal is a program that an agent runs through us, so that people
// can watch it.
type agentTerminal struct {
	id   string
	task string
	proc *process
	done chan struct{} // closed when it has ended and its output is in

	mu        sync.Mutex // guards the fields below
	limit     int
	output    []byte // at most twice the limit: it is cut when it is worth it
	truncated bool
}

func (a *agent) createTerminal(ctx context.Context, p acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	a.acts()
	env := newEnvironment(a.env)
	for _, v := range p.Env {
		env[v.Name] = v.Value
	}
	cwd := a.place.cwd
	if p.Cwd != nil && *p.Cwd != "" {
		cwd = a.place.absolute(*p.Cwd)
	}
	argv := append([]string{p.Command}, p.Args...)
	path, err := env.find(p.Command, cwd)
	if err != nil && len(p.Args) == 0 && strings.ContainsAny(p.Command, " \t;|&") {
		// Some agents give the whole line as the command.
		argv = []string{"/bin/sh", "-c", p.Command}
		path, err = argv[0], nil
	}
	if err != nil {
		return acp.CreateTerminalResponse{}, fmt.Errorf("the program %q was not found", p.Command)
	}
	if err := a.allowed(ctx, running(argv)); err != nil {
		return acp.CreateTerminalResponse{}, err
	}
	t := &agentTerminal{id: randomID("term_"), limit: terminalKeeps, done: make(chan struct{})}
	if p.OutputByteLimit != nil && *p.OutputByteLimit >= 0 {
		t.limit = min(*p.OutputByteLimit, terminalKeeps)
	}
	if r := a.current.Load(); r != nil {
		t.task = r.task
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.life.Err() != nil || len(a.terminals) >= maxTerminals {
		return acp.CreateTerminalResponse{}, fmt.Errorf("there are %d terminals already; release one", len(a.terminals))
	}
	if t.proc, err = a.x.start(spec{path: path, argv: argv, cwd: cwd, env: env, merge: true}); err != nil {
		return acp.CreateTerminalResponse{}, fmt.Errorf("the program %q could not be started: %w", p.Command, err)
	}
	a.terminals[t.id] = t
	a.x.work.Go(func() {
		_ = a.x.daemon.TerminalStarted(a.x.ctx, catalog.TerminalStartedParams{
			TerminalID: t.id, TaskID: t.task, PID: t.proc.pid, Program: argv[0], Args: argv[1:], CWD: cwd,
		})
		t.follow(a.x)
	})
	return acp.CreateTerminalResponse{TerminalId: t.id}, nil
}

// follow keeps and reports what the terminal prints, and then its end.
func (t *agentTerminal) follow(x *Executor) {
	var runes runeKeeper
	t.proc.readOutput(x.ctx, func(p []byte) { t.print(x, runes.take(p)) })
	t.print(x, runes.rest())
	<-t.proc.done
	close(t.done)
	code, signal := exitStatus(t.proc.cmd.ProcessState)
	x.daemon.TerminalExit(x.ctx, catalog.TerminalExitParams{TerminalID: t.id, TaskID: t.task, ExitCode: code, Signal: signal})
}

func (t *agentTerminal) print(x *Executor, text string) {
	if text == "" {
		return
	}
	t.mu.Lock()
	t.output = append(t.output, text...)
	if len(t.output) > 2*t.limit {
		t.cut()
	}
	t.mu.Unlock()
	x.daemon.TerminalOutput(x.ctx, catalog.TerminalOutputParams{TerminalID: t.id, TaskID: t.task, Data: text, Encoding: "utf-8"})
}

// cut drops the beginning of what is over the limit, up to a character's end.
func (t *agentTerminal) cut() {
	over := len(t.output) - t.limit
	if over <= 0 {
		return
	}
	for over < len(t.output) && !utf8.RuneStart(t.output[over]) {
		over++
	}
	t.output, t.truncated = append(t.output[:0], t.output[over:]...), true
}

// exit is how it ended, or nil while it runs.
func (t *agentTerminal) exit() *acp.TerminalExitStatus {
	select {
	case <-t.done:
	default:
		return nil
	}
	code, signal := exitStatus(t.proc.cmd.ProcessState)
	if signal != "" {
		return &acp.TerminalExitStatus{Signal: &signal}
	}
	return &acp.TerminalExitStatus{ExitCode: &code}
}

// hasPrograms reports whether a program runs in a terminal of the agent's.
func (a *agent) hasPrograms() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.terminals {
		if !t.proc.ended() {
			return true
		}
	}
	return false
}

func (a *agent) terminal(id string) (*agentTerminal, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.terminals[id]; t != nil {
		return t, nil
	}
	return nil, acp.NewInvalidParams(map[string]any{"error": "there is no terminal " + id})
}

func (a *agent) terminalOutput(_ context.Context, p acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	t, err := a.terminal(p.TerminalId)
	if err != nil {
		return acp.TerminalOutputResponse{}, err
	}
	exit := t.exit() // first: then the output is whole
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut()
	return acp.TerminalOutputResponse{Output: string(t.output), Truncated: t.truncated, ExitStatus: exit}, nil
}

func (a *agent) awaitTerminal(ctx context.Context, p acp.WaitForTerminalExitRequest) (acp.WaitForTerminalExitResponse, error) {
	t, err := a.terminal(p.TerminalId)
	if err != nil {
		return acp.WaitForTerminalExitResponse{}, err
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return acp.WaitForTerminalExitResponse{}, ctx.Err()
	}
	exit := t.exit()
	return acp.WaitForTerminalExitResponse{ExitCode: exit.ExitCode, Signal: exit.Signal}, nil
}

func (a *agent) killTerminal(_ context.Context, p acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	t, err := a.terminal(p.TerminalId)
	if err == nil {
		t.proc.kill()
	}
	return acp.KillTerminalResponse{}, err
}

func (a *agent) releaseTerminal(_ context.Context, p acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
	t, err := a.terminal(p.TerminalId)
	if err == nil {
		t.proc.kill()
		a.mu.Lock()
		delete(a.terminals, p.TerminalId)
		a.mu.Unlock()
	}
	return acp.ReleaseTerminalResponse{}, err
}
