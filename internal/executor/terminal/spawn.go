package terminal

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

const (
	defaultCols = 80
	defaultRows = 24

	tmuxWithin = 5 * time.Second // to say whether it has a session
)

// Spawn starts a program in a new terminal. If the descriptor is asked for, the
// result has it, and the terminal is not read until Return.
func (s *Set) Spawn(p catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return catalog.SpawnTerminalResult{}, ErrClosed
	}
	s.work.Add(1) // so that Wait waits for what is being started
	s.mu.Unlock()
	defer s.work.Done()

	env := process.NewEnvironment(map[string]string{"TERM": "xterm-256color"}, p.Env)
	argv := commandLine(p)
	path, err := env.Find(argv[0], p.CWD)
	if err == nil && p.UseTmux && len(program(p)) > 0 && hasSession(path, p, env) {
		argv = windowCommandLine(p)
	}
	switch {
	case err != nil && p.UseTmux:
		return catalog.SpawnTerminalResult{}, internalError("tmux was not found: install it, or open the terminal without it", kindData{"tmux_not_found", "TMUX_NOT_FOUND"})
	case err != nil:
		return catalog.SpawnTerminalResult{}, internalError(fmt.Sprintf("the program %q was not found", argv[0]), kindData{Kind: "terminal_failed"})
	}
	t := &terminal{set: s, id: process.RandomID("term_"), over: make(chan struct{})}
	result := catalog.SpawnTerminalResult{
		TerminalID: t.id, Program: argv[0], Args: argv[1:], Cols: sizeOr(p.Cols, defaultCols), Rows: sizeOr(p.Rows, defaultRows),
	}
	err = t.start(&exec.Cmd{Path: path, Args: argv, Dir: p.CWD, Env: env.List()}, result.Cols, result.Rows)
	if err == nil && p.Descriptor {
		t.lent = newLoan()
		if result.File, err = t.duplicate(); err != nil {
			t.proc.Kill()
			<-t.proc.Done()
			t.tty.Close()
		}
	}
	if err != nil {
		return catalog.SpawnTerminalResult{}, internalError("the terminal could not be opened: "+withoutPath(err).Error(), kindData{Kind: "terminal_failed"})
	}
	result.PTYPID = t.proc.PID
	s.mu.Lock()
	s.terminals[t.id] = t
	late := s.closed
	s.mu.Unlock()
	s.work.Go(t.follow)
	if late {
		t.close()
	}
	return result, nil
}

func sizeOr(n, value int) int {
	if n <= 0 || n > maxSize {
		return value
	}
	return n
}

// commandLine is what runs in a terminal. tmux joins a session that is there, and
// makes one otherwise.
func commandLine(p catalog.SpawnTerminalParams) []string {
	if p.UseTmux {
		argv := []string{"tmux", "new-session", "-A", "-s", tmuxSession(p)}
		return append(argv, window(p)...)
	}
	return append([]string{cmp.Or(p.Shell, os.Getenv("SHELL"), "/bin/sh")}, p.Args...)
}

// windowCommandLine runs a program in a new window of a session of tmux that is
// there, and joins that: new-session would join it and forget the program.
func windowCommandLine(p catalog.SpawnTerminalParams) []string {
	session := "=" + tmuxSession(p)
	argv := append([]string{"tmux", "new-window", "-t", session + ":"}, window(p)...)
	return append(argv, ";", "attach-session", "-t", session)
}

// window are the name of a window of tmux and the program in it, as far as they
// are asked for.
func window(p catalog.SpawnTerminalParams) (args []string) {
	if p.TmuxWindowName != "" {
		args = append(args, "-n", p.TmuxWindowName)
	}
	if program := program(p); len(program) > 0 {
		args = append(append(args, "--"), program...)
	}
	return args
}

// program is what a terminal of tmux is to run; empty: what tmux itself would.
func program(p catalog.SpawnTerminalParams) []string {
	if p.Shell == "" {
		return nil
	}
	return append([]string{p.Shell}, p.Args...)
}

// hasSession reports whether tmux, which path leads to, has the session already.
func hasSession(path string, p catalog.SpawnTerminalParams, env process.Environment) bool {
	ctx, cancel := context.WithTimeout(context.Background(), tmuxWithin)
	defer cancel()
	has := exec.CommandContext(ctx, path, "has-session", "-t", "="+tmuxSession(p))
	has.Dir, has.Env = p.CWD, env.List()
	return has.Run() == nil
}

func tmuxSession(p catalog.SpawnTerminalParams) string { return cmp.Or(p.TmuxSessionName, "duet") }
