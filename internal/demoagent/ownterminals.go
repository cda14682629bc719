package demoagent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/acp"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

// ownTerminals are the terminals that the agent itself runs. Each is a process in a
// group of its own. The caller must close them.
type ownTerminals struct {
	update func(session string, update any)

	mu     sync.Mutex // guards the fields below
	ended  bool
	runner *process.Runner // nil before the first terminal
	stop   context.CancelFunc
	byID   map[string]*ownTerminal
	work   sync.WaitGroup
}

type ownTerminal struct {
	proc   *process.Process
	done   chan struct{} // closed after the client has received the end
	output []byte        // guarded by done
}

// create starts a program.
func (o *ownTerminals) create(_ context.Context, p acp.TerminalCreateParams) (acp.TerminalParams, error) {
	dir := ""
	if p.CWD != nil {
		dir = *p.CWD
	}
	argv := append([]string{p.Command}, p.Args...)
	env := process.NewEnvironment()
	path, err := env.Find(p.Command, dir)
	if err != nil {
		return acp.TerminalParams{}, fmt.Errorf("the program %q was not found", p.Command)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return acp.TerminalParams{}, errClosed
	}
	if o.runner == nil {
		ctx, stop := context.WithCancel(context.Background())
		o.runner, o.stop, o.byID = process.NewRunner(ctx, slog.New(slog.DiscardHandler), process.Grace{}), stop, make(map[string]*ownTerminal)
	}
	t := &ownTerminal{done: make(chan struct{})}
	if t.proc, err = o.runner.Start(process.Spec{Path: path, Argv: argv, CWD: dir, Env: env, Merge: true}); err != nil {
		return acp.TerminalParams{}, fmt.Errorf("starting %q: %w", p.Command, err)
	}
	id := process.RandomID("term_")
	o.byID[id] = t
	o.update(p.SessionID, acp.TerminalUpdate{Kind: acp.KindTerminal, TerminalID: id, Command: shellcommand.Line(argv), CWD: dir})
	o.work.Go(func() { o.follow(p.SessionID, id, t) })
	return acp.TerminalParams{TerminalID: id}, nil
}

// follow sends the output of a terminal, and its end.
func (o *ownTerminals) follow(session, id string, t *ownTerminal) {
	defer close(t.done)
	t.proc.ReadOutput(context.Background(), func(p []byte) {
		t.output = append(t.output, p...)
		o.update(session, acp.TerminalChunk{Kind: acp.KindTerminalChunk, TerminalID: id, Data: p})
	})
	<-t.proc.Done()
	exit := t.exit()
	o.update(session, acp.TerminalUpdate{Kind: acp.KindTerminal, TerminalID: id, ExitStatus: &exit})
}

// exit returns how a program has ended.
func (t *ownTerminal) exit() acp.ExitStatus {
	code, signal := t.proc.ExitStatus()
	if signal != "" {
		return acp.ExitStatus{Signal: signal}
	}
	return acp.ExitStatus{ExitCode: &code}
}

func (o *ownTerminals) terminal(id string) (*ownTerminal, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.byID[id]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("there is no terminal %q", id)
}

// wait waits until a program has ended.
func (o *ownTerminals) wait(ctx context.Context, p acp.TerminalParams) (acp.ExitStatus, error) {
	t, err := o.terminal(p.TerminalID)
	if err != nil {
		return acp.ExitStatus{}, err
	}
	select {
	case <-t.done:
		return t.exit(), nil
	case <-ctx.Done():
		return acp.ExitStatus{}, ctx.Err()
	}
}

// output returns the output of a program after its end.
func (o *ownTerminals) output(ctx context.Context, p acp.TerminalParams) (acp.TerminalOutputResult, error) {
	t, err := o.terminal(p.TerminalID)
	if err != nil {
		return acp.TerminalOutputResult{}, err
	}
	if _, err := o.wait(ctx, p); err != nil {
		return acp.TerminalOutputResult{}, err
	}
	return acp.TerminalOutputResult{Output: string(t.output)}, nil
}

// release ends a running program, and forgets the terminal.
func (o *ownTerminals) release(_ context.Context, p acp.TerminalParams) error {
	t, err := o.terminal(p.TerminalID)
	if err != nil {
		return err
	}
	t.proc.Kill()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byID, p.TerminalID)
	return nil
}

// kill ends all programs and refuses new ones. It does not wait.
func (o *ownTerminals) kill() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.runner != nil {
		o.stop()
		o.runner.Kill()
	}
}

// close waits for the programs that kill has ended.
func (o *ownTerminals) close() {
	o.mu.Lock()
	runner := o.runner
	o.mu.Unlock()
	if runner != nil {
		o.work.Wait()
		runner.Close()
	}
}
