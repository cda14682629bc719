package executor

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/server"
)

const (
	defaultCols = 80
	defaultRows = 24
	maxKeys     = 1 << 20 // typed into a terminal that does not read, in bytes
	hangupGrace = time.Second
)

// A terminal is a program of a human in a pseudo terminal.
type terminal struct {
	x    *Executor
	id   string
	proc *process // its stdout is the terminal
	once sync.Once
	over chan struct{} // closed when it is not read any more

	mu     sync.Mutex // guards the fields below
	keys   []byte     // not typed yet
	typing bool
	ended  bool
	held   *holding // somebody else reads; nil if nobody does
}

// SpawnTerminal implements catalog.Executor.
func (x *Executor) SpawnTerminal(_ context.Context, p catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	x.mu.Lock()
	if x.closing {
		x.mu.Unlock()
		return catalog.SpawnTerminalResult{}, errClosing()
	}
	x.work.Add(1) // so that Close waits for what is being started
	x.mu.Unlock()
	defer x.work.Done()

	env := newEnvironment(map[string]string{"TERM": "xterm-256color"}, p.Env)
	argv, failed := terminalCommand(p)
	if failed != nil {
		return catalog.SpawnTerminalResult{}, failed
	}
	path, err := env.find(argv[0], p.CWD)
	switch {
	case err != nil && p.UseTmux:
		return catalog.SpawnTerminalResult{}, internalError("tmux was not found: install it, or open the terminal without it", kindData{"tmux_not_found", "TMUX_NOT_FOUND"})
	case err != nil:
		return catalog.SpawnTerminalResult{}, internalError(fmt.Sprintf("the program %q was not found", argv[0]), kindData{Kind: "terminal_failed"})
	}
	t := &terminal{x: x, id: randomID("term_"), over: make(chan struct{})}
	t.proc = &process{x: x, done: make(chan struct{})}
	t.proc.cmd = &exec.Cmd{Path: path, Args: argv, Dir: p.CWD, Env: env.list()}
	result := catalog.SpawnTerminalResult{
		TerminalID: t.id, Program: argv[0], Args: argv[1:], Cols: orDefault(p.Cols, defaultCols), Rows: orDefault(p.Rows, defaultRows),
	}
	err = t.start(result.Cols, result.Rows)
	if err == nil && p.Descriptor {
		t.held = newHolding()
		if result.File, err = t.duplicate(); err != nil {
			t.proc.kill()
			<-t.proc.done
			t.proc.stdout.Close()
		}
	}
	if err != nil {
		return catalog.SpawnTerminalResult{}, internalError("the terminal could not be opened: "+withoutPath(err).Error(), kindData{Kind: "terminal_failed"})
	}
	result.PTYPID = t.proc.pid
	x.mu.Lock()
	x.terminals[t.id] = t
	late := x.closing
	x.mu.Unlock()
	x.work.Go(t.follow)
	if late {
		t.close()
	}
	return result, nil
}

func orDefault(n, value int) int {
	if n <= 0 || n > 1<<15 {
		return value
	}
	return n
}

func terminalCommand(p catalog.SpawnTerminalParams) ([]string, error) {
	if p.UseTmux {
		argv := []string{"tmux", "new-session", "-A", "-s", "duet"}
		if p.TmuxSessionName != "" {
			argv[4] = p.TmuxSessionName
		}
		if p.TmuxWindowName != "" {
			argv = append(argv, "-n", p.TmuxWindowName)
		}
		return argv, nil
	}
	shell := p.Shell
	if shell == "" {
		shell = os.Getenv("SHELL")
	}
	if shell == "" {
		shell = "/bin/sh"
	}
	return append([]string{shell}, p.Args...), nil
}

// follow reports what the terminal prints, and then its end.
func (t *terminal) follow() {
	chunks := make(chan piece, 8)
	t.x.work.Go(func() {
		defer close(chunks)
		t.read(chunks)
	})
	var kept []byte // the beginning of a character
	for p := range chunks {
		out := append(kept, p.output...)
		for p.printed == nil && len(out) < terminalChunk { // what has come meanwhile goes along
			select {
			case p = <-chunks:
			default:
				p = piece{}
			}
			if out = append(out, p.output...); p.output == nil {
				break
			}
		}
		whole := len(out)
		if p.printed == nil {
			whole -= partialRune(out)
		}
		t.print(out[:whole])
		kept = append([]byte(nil), out[whole:]...)
		if p.printed != nil {
			close(p.printed)
		}
	}
	t.print(kept)
	<-t.proc.done
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.x.mu.Lock()
	delete(t.x.terminals, t.id)
	t.x.mu.Unlock()
	code, signal := exitStatus(t.proc.cmd.ProcessState)
	t.x.daemon.TerminalExit(t.x.ctx, catalog.TerminalExitParams{TerminalID: t.id, ExitCode: code, Signal: signal})
}

func (t *terminal) print(out []byte) {
	for len(out) > 0 {
		n := min(len(out), terminalChunk)
		if n < len(out) {
			n -= partialRune(out[:n])
		}
		p := catalog.TerminalOutputParams{TerminalID: t.id, Data: string(out[:n]), Encoding: "utf-8"}
		if !utf8.Valid(out[:n]) {
			p.Data, p.Encoding = base64.StdEncoding.EncodeToString(out[:n]), "base64"
		}
		t.x.daemon.TerminalOutput(t.x.ctx, p)
		out = out[n:]
	}
}

func (x *Executor) terminal(id string) (*terminal, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.terminals[id]; t != nil {
		return t, nil
	}
	return nil, noTerminal(id)
}

func noTerminal(id string) error {
	return server.NewError(jsonrpc2.CodeInvalidParams, "Invalid params: there is no terminal of that id, or it has ended", struct {
		server.ParamError
		Kind string `json:"kind"`
	}{server.ParamError{Param: "terminal_id", Expected: "the id of a terminal", Received: id}, "terminal_not_found"})
}

// TerminalWrite implements catalog.Executor. It does not wait for the program
// to read.
func (x *Executor) TerminalWrite(_ context.Context, p catalog.TerminalWriteParams) error {
	t, err := x.terminal(p.TerminalID)
	if err != nil {
		return err
	}
	keys := []byte(p.Data)
	switch p.Encoding {
	case "", "utf-8":
	case "base64":
		if keys, err = base64.StdEncoding.DecodeString(p.Data); err != nil {
			return server.InvalidParam(server.ParamError{Param: "data", Expected: "base64", Received: "something else"})
		}
	default:
		return server.InvalidParam(server.ParamError{
			Param: "encoding", Expected: "an encoding", Received: p.Encoding, Accepted: []string{"utf-8", "base64"},
		})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.keys)+len(keys) > maxKeys {
		return server.NewError(server.CodeOverloaded, "The terminal's program does not read what is typed", kindData{Kind: "overloaded"})
	}
	t.keys = append(t.keys, keys...)
	if !t.typing && !t.ended {
		t.typing = true
		x.work.Go(t.typeKeys)
	}
	return nil
}

// typeKeys types until nothing is left.
func (t *terminal) typeKeys() {
	for {
		t.mu.Lock()
		keys := t.keys
		t.keys = nil
		if len(keys) == 0 {
			t.typing = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		t.proc.stdout.Write(keys) // fails when the program has ended
	}
}

// TerminalResize implements catalog.Executor.
func (x *Executor) TerminalResize(_ context.Context, p catalog.TerminalResizeParams) error {
	t, err := x.terminal(p.TerminalID)
	if err != nil {
		return err
	}
	if p.Cols <= 0 || p.Rows <= 0 || p.Cols > 1<<15 || p.Rows > 1<<15 {
		return server.InvalidParam(server.ParamError{
			Param: "cols", Expected: "a size in characters", Received: fmt.Sprintf("%d×%d", p.Cols, p.Rows),
		})
	}
	return t.resize(p.Cols, p.Rows)
}

// TerminalClose implements catalog.Executor. It does not wait for the end,
// which terminal_exit tells.
func (x *Executor) TerminalClose(_ context.Context, p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	t, err := x.terminal(p.TerminalID)
	if err != nil {
		return catalog.TerminalCloseResult{}, err
	}
	t.close()
	return catalog.TerminalCloseResult{Closed: true}, nil
}

// close hangs up, and kills what does not mind.
func (t *terminal) close() {
	t.once.Do(func() {
		t.x.work.Go(func() {
			t.hangUp()
			if !t.proc.wait(hangupGrace) {
				t.proc.kill()
			}
		})
	})
}
