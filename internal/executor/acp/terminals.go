package acp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

const (
	terminalKeeps = 1 << 20 // default output limit of an agent's terminal, in bytes
	maxTerminals  = 256     // per agent at once
)

// An agentTerminal is a program that an agent runs through Duet, so that users can watch it.
type agentTerminal struct {
	id      string
	command string // as a user would type it
	task    string
	turn    *turn // in which it was made, or nil
	proc    *process.Process
	done    chan struct{} // closed when it has ended and all its output was read

	mu        sync.Mutex // guards the fields below
	limit     int
	output    []byte // at most twice the limit: cut rarely, to copy less
	truncated bool
}

func (a *agent) createTerminal(ctx context.Context, p acp.TerminalCreateParams) (acp.TerminalParams, error) {
	a.acted()
	env := a.env.With(nil)
	for _, v := range p.Env {
		env[v.Name] = v.Value
	}
	cwd := a.workspace.CWD
	if p.CWD != nil && *p.CWD != "" {
		cwd = a.workspace.Absolute(*p.CWD)
	}
	argv := append([]string{p.Command}, p.Args...)
	path, err := env.Find(p.Command, cwd)
	if err != nil && len(p.Args) == 0 && strings.ContainsAny(p.Command, " \t;|&") {
		// Some agents send the whole command line as the command.
		argv = []string{"/bin/sh", "-c", p.Command}
		path, err = argv[0], nil
	}
	if err != nil {
		return acp.TerminalParams{}, fmt.Errorf("the program %q was not found", p.Command)
	}
	if err := a.allowed(ctx, running(argv)); err != nil {
		return acp.TerminalParams{}, err
	}
	t := &agentTerminal{
		id: process.RandomID("term_"), command: bounded(shellcommand.Line(argv)), limit: terminalKeeps, done: make(chan struct{}),
	}
	if p.OutputByteLimit != nil && *p.OutputByteLimit >= 0 {
		t.limit = min(*p.OutputByteLimit, terminalKeeps)
	}
	if turn := a.turns.now(); turn != nil {
		t.task, t.turn = turn.ID, turn
	}
	err = a.programs.add(t, a.life, func() (err error) {
		t.proc, err = a.driver.processes.Start(process.Spec{Path: path, Argv: argv, CWD: cwd, Env: env, Merge: true, Sandbox: a.box})
		return err
	})
	switch {
	case errors.Is(err, errTooManyPrograms):
		return acp.TerminalParams{}, err
	case err != nil:
		return acp.TerminalParams{}, fmt.Errorf("the program %q could not be started: %w", p.Command, err)
	}
	a.driver.work.Go(func() {
		_ = a.driver.hub.TerminalStarted(a.driver.ctx, catalog.TerminalStartedParams{
			TerminalID: t.id, TaskID: t.task, PID: t.proc.PID, Program: argv[0], Args: argv[1:], CWD: cwd,
		})
		t.follow(a.driver)
	})
	return acp.TerminalParams{TerminalID: t.id}, nil
}

// follow stores and reports the terminal's output, and then its end.
func (t *agentTerminal) follow(d *Driver) {
	var text process.TextDecoder
	t.proc.ReadOutput(d.ctx, func(p []byte) { t.print(d, text.Decode(p)) })
	t.print(d, text.Flush())
	<-t.proc.Done()
	close(t.done)
	code, signal := t.proc.ExitStatus()
	d.hub.TerminalExit(d.ctx, catalog.TerminalExitParams{TerminalID: t.id, TaskID: t.task, ExitCode: code, Signal: signal})
}

func (t *agentTerminal) print(d *Driver, text string) {
	if text == "" {
		return
	}
	if t.turn != nil {
		t.turn.silence.Sign()
	}
	t.mu.Lock()
	t.output = append(t.output, text...)
	if len(t.output) > 2*t.limit {
		t.cut()
	}
	t.mu.Unlock()
	d.hub.TerminalOutput(d.ctx, catalog.TerminalOutputParams{TerminalID: t.id, TaskID: t.task, Data: text, Encoding: catalog.EncodingUTF8})
}

// cut drops the oldest output over the limit, on a character boundary.
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

// exit returns how the program ended, or nil while it runs.
func (t *agentTerminal) exit() *acp.ExitStatus {
	select {
	case <-t.done:
	default:
		return nil
	}
	code, signal := t.proc.ExitStatus()
	if signal != "" {
		return &acp.ExitStatus{Signal: signal}
	}
	return &acp.ExitStatus{ExitCode: &code}
}

func (a *agent) terminalOutput(_ context.Context, p acp.TerminalParams) (acp.TerminalOutputResult, error) {
	t, err := a.programs.get(p.TerminalID)
	if err != nil {
		return acp.TerminalOutputResult{}, err
	}
	exit := t.exit() // before reading the output, so that the output is complete
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut()
	return acp.TerminalOutputResult{Output: string(t.output), Truncated: t.truncated, ExitStatus: exit}, nil
}

func (a *agent) awaitTerminal(ctx context.Context, p acp.TerminalParams) (acp.ExitStatus, error) {
	t, err := a.programs.get(p.TerminalID)
	if err != nil {
		return acp.ExitStatus{}, err
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return acp.ExitStatus{}, ctx.Err()
	}
	return *t.exit(), nil
}

func (a *agent) killTerminal(_ context.Context, p acp.TerminalParams) (none, error) {
	t, err := a.programs.get(p.TerminalID)
	if err == nil {
		t.proc.Kill()
	}
	return none{}, err
}

func (a *agent) releaseTerminal(_ context.Context, p acp.TerminalParams) (none, error) {
	t, err := a.programs.get(p.TerminalID)
	if err == nil {
		t.proc.Kill()
		a.programs.remove(p.TerminalID)
	}
	return none{}, err
}

// programs are the terminals in which an agent runs programs through Duet, by their ids. The zero value
// has none.
type programs struct {
	mu   sync.Mutex // guards byID
	byID map[string]*agentTerminal
}

var errTooManyPrograms = fmt.Errorf("there are %d terminals already; release one", maxTerminals)

// add starts a program and adds its terminal, unless life has ended.
func (p *programs) add(t *agentTerminal, life context.Context, start func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if life.Err() != nil || len(p.byID) >= maxTerminals {
		return errTooManyPrograms
	}
	if err := start(); err != nil {
		return err
	}
	if p.byID == nil {
		p.byID = make(map[string]*agentTerminal)
	}
	p.byID[t.id] = t
	return nil
}

func (p *programs) get(id string) (*agentTerminal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.byID[id]; t != nil {
		return t, nil
	}
	return nil, acp.InvalidParams(errors.New("there is no terminal " + id))
}

func (p *programs) remove(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byID, id)
}

// running returns the terminals whose programs run, sorted by their ids.
func (p *programs) running() (list []*agentTerminal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(p.byID)) {
		if t := p.byID[id]; !t.proc.Ended() {
			list = append(list, t)
		}
	}
	return list
}

// kill kills all programs.
func (p *programs) kill() {
	for _, t := range p.running() {
		t.proc.Kill()
	}
}
