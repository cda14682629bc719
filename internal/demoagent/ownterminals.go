package demoagent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

// ownTerminals are the terminals that the agent itself runs in version 2. Each is a process in
// a group of its own. They have to be closed.
type ownTerminals struct {
	update func(session string, update object)

	mu     sync.Mutex // guards the fields below
	ended  bool
	runner *process.Runner // nil before the first terminal
	stop   context.CancelFunc
	byID   map[string]*ownTerminal
	work   sync.WaitGroup
}

type ownTerminal struct {
	proc   *process.Process
	done   chan struct{} // closed when it has ended and the client knows
	output []byte        // guarded by done
}

// CreateTerminal starts a program.
func (o *ownTerminals) CreateTerminal(_ context.Context, p acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	dir := ""
	if p.Cwd != nil {
		dir = *p.Cwd
	}
	argv := append([]string{p.Command}, p.Args...)
	env := process.NewEnvironment()
	path, err := env.Find(p.Command, dir)
	if err != nil {
		return acp.CreateTerminalResponse{}, fmt.Errorf("the program %q was not found", p.Command)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return acp.CreateTerminalResponse{}, errClosed
	}
	if o.runner == nil {
		ctx, stop := context.WithCancel(context.Background())
		o.runner, o.stop, o.byID = process.NewRunner(ctx, slog.New(slog.DiscardHandler), process.Grace{}), stop, make(map[string]*ownTerminal)
	}
	t := &ownTerminal{done: make(chan struct{})}
	if t.proc, err = o.runner.Start(process.Spec{Path: path, Argv: argv, CWD: dir, Env: env, Merge: true}); err != nil {
		return acp.CreateTerminalResponse{}, fmt.Errorf("starting %q: %w", p.Command, err)
	}
	id := process.RandomID("term_")
	o.byID[id] = t
	o.send(string(p.SessionId), "terminal_update", id, object{"command": shellcommand.Line(argv), "cwd": dir})
	o.work.Go(func() { o.follow(string(p.SessionId), id, t) })
	return acp.CreateTerminalResponse{TerminalId: id}, nil
}

// follow shows what a terminal prints, and its end.
func (o *ownTerminals) follow(session, id string, t *ownTerminal) {
	defer close(t.done)
	t.proc.ReadOutput(context.Background(), func(p []byte) {
		t.output = append(t.output, p...)
		o.send(session, "terminal_output_chunk", id, object{"data": p}) // encoded as base64
	})
	<-t.proc.Done()
	status := object{}
	if code, signal := t.proc.ExitStatus(); signal != "" {
		status["signal"] = signal
	} else {
		status["exitCode"] = code
	}
	o.send(session, "terminal_update", id, object{"exitStatus": status})
}

func (o *ownTerminals) send(session, kind, id string, update object) {
	update["sessionUpdate"], update["terminalId"] = kind, id
	o.update(session, update)
}

func (o *ownTerminals) terminal(id string) (*ownTerminal, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.byID[id]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("there is no terminal %q", id)
}

// WaitForTerminalExit waits until a program has ended.
func (o *ownTerminals) WaitForTerminalExit(ctx context.Context, p acp.WaitForTerminalExitRequest) (resp acp.WaitForTerminalExitResponse, err error) {
	t, err := o.terminal(p.TerminalId)
	if err != nil {
		return resp, err
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return resp, ctx.Err()
	}
	code, signal := t.proc.ExitStatus()
	if signal != "" {
		resp.Signal = &signal
	} else {
		resp.ExitCode = &code
	}
	return resp, nil
}

// TerminalOutput is what a program has printed, once it has ended.
func (o *ownTerminals) TerminalOutput(ctx context.Context, p acp.TerminalOutputRequest) (resp acp.TerminalOutputResponse, err error) {
	t, err := o.terminal(p.TerminalId)
	if err != nil {
		return resp, err
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return resp, ctx.Err()
	}
	resp.Output = string(t.output)
	return resp, nil
}

// ReleaseTerminal ends a program that still runs, and forgets it.
func (o *ownTerminals) ReleaseTerminal(_ context.Context, p acp.ReleaseTerminalRequest) (resp acp.ReleaseTerminalResponse, err error) {
	t, err := o.terminal(p.TerminalId)
	if err != nil {
		return resp, err
	}
	t.proc.Kill()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byID, p.TerminalId)
	return resp, nil
}

// kill ends all programs and lets none start. It does not wait.
func (o *ownTerminals) kill() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.runner != nil {
		o.stop()
		o.runner.Kill()
	}
}

// close waits for what kill has ended.
func (o *ownTerminals) close() {
	o.mu.Lock()
	runner := o.runner
	o.mu.Unlock()
	if runner != nil {
		o.work.Wait()
		runner.Close()
	}
}
