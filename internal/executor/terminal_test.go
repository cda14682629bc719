//go:build unix

package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/catalogrpc"
	"github.com/duet-rpc/duet-rpc/internal/executor"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// newSet makes a Terminals. The test's end closes it.
func newSet(t *testing.T, w *terminalRecord) (*executor.Terminals, *process.Flow) {
	t.Helper()
	return newSetWith(t, w, process.Grace{HangUp: 50 * time.Millisecond})
}

func newSetWith(t *testing.T, w *terminalRecord, grace process.Grace) (*executor.Terminals, *process.Flow) {
	t.Helper()
	processes := process.NewRunner(context.Background(), slog.New(slog.DiscardHandler), grace)
	s := executor.NewTerminals(context.Background(), processes, w)
	t.Cleanup(func() {
		s.Close()
		s.Wait()
		processes.Close()
		assert.ErrorIs(t, errorOf(s.Spawn(catalog.SpawnTerminalParams{Shell: "sh"})), executor.ErrClosed)
	})
	return s, &processes.Flow
}

func shell(t *testing.T, s *executor.Terminals, script string) string {
	t.Helper()
	result := must(s.Spawn(catalog.SpawnTerminalParams{
		Shell: "sh", Args: []string{"-c", script}, CWD: t.TempDir(), Env: map[string]string{"WORD": "there"},
	}))(t)
	assert.Positive(t, result.PTYPID)
	return result.TerminalID
}

// A terminal's program that ends by itself gets no SIGHUP.
func TestEndedTerminalGetsNoHangup(t *testing.T) {
	w := &terminalRecord{}
	s, _ := newSet(t, w)
	for range 40 {
		r := must(s.Spawn(catalog.SpawnTerminalParams{Shell: "cat"}))(t)
		require.NoError(t, s.Write(catalog.TerminalWriteParams{TerminalID: r.TerminalID, Data: "typed\n\x04"}))
		w.Await(t, func() bool { return w.Exit(r.TerminalID) != nil }, "the exit")
		require.Equal(t, catalog.TerminalExitParams{TerminalID: r.TerminalID}, *w.Exit(r.TerminalID))
	}
}

func TestTerminals(t *testing.T) {
	w := &terminalRecord{}
	s, _ := newSet(t, w)
	t.Run("size, keys and exit", func(t *testing.T) {
		id := shell(t, s, `stty size; read a; stty size; echo "$WORD $a"; exit 3`)
		w.Await(t, func() bool { return strings.Contains(w.Printed(id), "24 80") }, "the default size")
		require.NoError(t, s.Resize(catalog.TerminalResizeParams{TerminalID: id, Cols: 100, Rows: 30}))
		require.NoError(t, s.Write(catalog.TerminalWriteParams{TerminalID: id, Data: "w7ZrCg==", Encoding: "base64"}))
		w.Await(t, func() bool { return w.Exit(id) != nil }, "the exit")
		assert.Equal(t, 3, w.Exit(id).ExitCode)
		assert.Contains(t, w.Printed(id), "30 100")
		assert.Contains(t, w.Printed(id), "there ök")
	})
	t.Run("the same size again has the screen drawn", func(t *testing.T) {
		id := shell(t, s, `trap 'echo drawn' WINCH; echo up; while :; do sleep 0.02; done`)
		w.Await(t, func() bool { return strings.Contains(w.Printed(id), "up") }, "the program's first output")
		require.NoError(t, s.Resize(catalog.TerminalResizeParams{TerminalID: id, Cols: 80, Rows: 24}))
		w.Await(t, func() bool { return strings.Contains(w.Printed(id), "drawn") }, "the screen")
		must(s.Hangup(catalog.TerminalCloseParams{TerminalID: id}))(t)
	})
	t.Run("what is no text", func(t *testing.T) {
		id := shell(t, s, `printf 'a\303'; sleep 0.2; printf '\244b'; sleep 0.2; printf '\377'`)
		w.Await(t, func() bool { return w.Exit(id) != nil }, "the exit")
		assert.Equal(t, "utf-8:autf-8:äbbase64:/w==", w.Printed(id))
	})
	t.Run("close", func(t *testing.T) {
		id := shell(t, s, `trap '' HUP; echo up; sleep 600`)
		w.Await(t, func() bool { return strings.Contains(w.Printed(id), "up") }, "the program's first output")
		assert.True(t, must(s.Hangup(catalog.TerminalCloseParams{TerminalID: id}))(t).Closed)
		w.Await(t, func() bool { return w.Exit(id) != nil }, "the exit")
		assert.Equal(t, "SIGKILL", w.Exit(id).Signal)
		_, err := s.Hangup(catalog.TerminalCloseParams{TerminalID: id})
		requireKind(t, err, "terminal_not_found")
	})
	t.Run("close of a program that ends by itself", func(t *testing.T) {
		s, _ := newSetWith(t, w, process.Grace{HangUp: time.Minute})
		id := shell(t, s, `trap 'exit 7' HUP; echo up; while :; do sleep 0.02; done`)
		w.Await(t, func() bool { return strings.Contains(w.Printed(id), "up") }, "the program's first output")
		must(s.Hangup(catalog.TerminalCloseParams{TerminalID: id}))(t)
		w.Await(t, func() bool { return w.Exit(id) != nil }, "the exit")
		assert.Equal(t, 7, w.Exit(id).ExitCode, "the program has time to end by itself")
	})
	t.Run("a program that does not read", func(t *testing.T) {
		id := shell(t, s, `stty raw -echo; echo up; sleep 600`)
		w.Await(t, func() bool { return strings.Contains(w.Printed(id), "up") }, "the program's first output")
		var err error
		for i := 0; i < 10 && err == nil; i++ {
			err = s.Write(catalog.TerminalWriteParams{TerminalID: id, Data: strings.Repeat("x", 1<<19)})
		}
		requireKind(t, err, "overloaded")
	})
	t.Run("nobody", func(t *testing.T) {
		requireKind(t, s.Write(catalog.TerminalWriteParams{TerminalID: "no"}), "terminal_not_found")
		requireKind(t, s.Resize(catalog.TerminalResizeParams{TerminalID: "no"}), "terminal_not_found")
		_, err := s.Spawn(catalog.SpawnTerminalParams{Shell: "no-such-shell"})
		requireKind(t, err, "terminal_failed")
		dir := filepath.Join(t.TempDir(), "gone")
		_, err = s.Spawn(catalog.SpawnTerminalParams{Shell: "/bin/sh", CWD: dir})
		requireKind(t, err, "terminal_failed")
		assert.NotContains(t, err.Error(), dir, "the error contains no path")
	})
	t.Run("no tmux", func(t *testing.T) {
		_, err := s.Spawn(catalog.SpawnTerminalParams{UseTmux: true, Env: map[string]string{"PATH": t.TempDir()}})
		requireKind(t, err, "tmux_not_found")
	})
}

// A script replaces tmux and prints its arguments. The tests with the tag clients use tmux
// itself.
func TestTmuxArguments(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tmux"), []byte(`#!/bin/sh
case $1 in
has-session) [ "$3" = "=known" ] ;;
*) printf '<%s>' "$@"; echo; read x ;;
esac
`), 0o700))
	w := &terminalRecord{}
	s, _ := newSet(t, w)
	program := []string{"-c", "make test"}
	for want, p := range map[string]catalog.SpawnTerminalParams{
		"<new-session><-A><-s><duet>":                              {},
		"<new-session><-A><-s><known><-n><w1>":                     {TmuxSessionName: "known", TmuxWindowName: "w1"},
		"<new-session><-A><-s><new><--><sh><-c><make test>":        {TmuxSessionName: "new", Shell: "sh", Args: program},
		"<new-window><-t><=known:><-n><w1><--><sh><-c><make test>": {TmuxSessionName: "known", TmuxWindowName: "w1", Shell: "sh", Args: program},
	} {
		p.UseTmux, p.Env = true, map[string]string{"PATH": dir + ":/usr/bin:/bin"}
		started := must(s.Spawn(p))(t)
		w.Await(t, func() bool { return strings.Contains(w.Printed(started.TerminalID), "\n") }, "the arguments")
		assert.Contains(t, w.Printed(started.TerminalID), want)
	}
}

// handed is a terminal's descriptor that this process has borrowed.
type handed struct {
	t *testing.T
	*os.File
}

func (f handed) awaits(text string) {
	f.t.Helper()
	require.NoError(f.t, f.SetReadDeadline(time.Now().Add(time.Minute)))
	var seen []byte
	for buf := make([]byte, 1024); !strings.Contains(string(seen), text); {
		n := must(f.Read(buf))(f.t, "%q", seen)
		seen = append(seen, buf[:n]...)
	}
}

func TestTerminalDescriptorIsLentAndReturned(t *testing.T) {
	w := &terminalRecord{}
	s, flow := newSet(t, w)
	ctx := context.Background()
	take := func(id string) handed {
		t.Helper()
		f := must(s.Descriptor(ctx, catalog.TerminalDescriptorParams{TerminalID: id}))(t)
		t.Cleanup(func() { f.Close() })
		return handed{t, f}
	}
	give := func(id string) {
		t.Helper()
		require.NoError(t, s.Return(catalog.TerminalReturnParams{TerminalID: id}))
	}
	// text returns the output, however many pieces it came in.
	text := func(id string) string { return strings.ReplaceAll(w.Printed(id), "utf-8:", "") }
	const echoes = `stty -echo; echo up; while read a; do echo "got $a"; done`
	id := shell(t, s, echoes)
	w.Await(t, func() bool { return strings.Contains(text(id), "up\r\n") }, "the program's first output")
	for i := range 20 {
		// Earlier output is reported before Descriptor returns.
		word := strings.Repeat("w", i+1)
		tty := take(id)
		reported := text(id)
		_, err := s.Descriptor(ctx, catalog.TerminalDescriptorParams{TerminalID: id})
		requireKind(t, err, "terminal_taken")
		must(tty.WriteString(word + "\n"))(t)
		tty.awaits("got " + word + "\r\n")
		assert.Equal(t, reported, text(id), "the executor does not report the holder's output")
		_, err = tty.WriteString("rest" + word + "\n") // for the executor
		require.NoError(t, err)
		give(id)
		give(id)
		w.Await(t, func() bool { return strings.Contains(text(id), "got rest"+word+"\r\n") }, "the executor's next output")
		tty.Close()
	}

	t.Run("in the middle of much", func(t *testing.T) {
		id := shell(t, s, `i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo $i; done; read a`)
		w.Await(t, func() bool { return len(text(id)) > 10_000 }, "some of it")
		tty := take(id)
		all := text(id)
		require.NoError(t, tty.SetReadDeadline(time.Now().Add(time.Minute)))
		for buf := make([]byte, 32<<10); len(all) < 400_000; {
			n := must(tty.Read(buf))(t)
			all += string(buf[:n])
		}
		lines := strings.Split(all, "\r\n")
		for i, line := range lines[:len(lines)-1] {
			require.Equal(t, fmt.Sprint(i+1), line, "no output is lost or out of order at the handover")
		}
		require.NoError(t, tty.Close())
		give(id)
		w.Await(t, func() bool { return strings.HasSuffix(text(id), "\r\n100000\r\n") }, "the rest")
	})
	t.Run("from the start", func(t *testing.T) {
		r := must(s.Spawn(catalog.SpawnTerminalParams{Shell: "sh", Args: []string{"-c", "echo first; exit 3"}, Descriptor: true}))(t)
		tty := handed{t, r.File}
		defer tty.Close()
		w.Await(t, func() bool { return w.Exit(r.TerminalID) != nil }, "the exit")
		assert.Equal(t, 3, w.Exit(r.TerminalID).ExitCode)
		tty.awaits("first\r\n")
		assert.Empty(t, text(r.TerminalID))
	})
	t.Run("at its end", func(t *testing.T) {
		id := shell(t, s, echoes)
		tty := take(id)
		must(tty.WriteString("a\n\x04"))(t)
		w.Await(t, func() bool { return w.Exit(id) != nil }, "the exit")
		tty.awaits("got a\r\n")
		_, err := s.Descriptor(ctx, catalog.TerminalDescriptorParams{TerminalID: id})
		requireKind(t, err, "terminal_not_found")
		requireKind(t, s.Return(catalog.TerminalReturnParams{TerminalID: id}), "terminal_not_found")
	})
	t.Run("while nothing is read", func(t *testing.T) {
		id := shell(t, s, echoes)
		w.Await(t, func() bool { return strings.Contains(text(id), "up\r\n") }, "the program's first output")
		flow.Pause()
		require.NoError(t, s.Write(catalog.TerminalWriteParams{TerminalID: id, Data: "one\ntwo\n"}))
		brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err := s.Descriptor(brief, catalog.TerminalDescriptorParams{TerminalID: id})
		if err != nil { // the reader may have been between two reads
			require.ErrorIs(t, err, context.DeadlineExceeded)
		} else {
			give(id)
		}
		flow.Resume()
		w.Await(t, func() bool { return strings.Contains(text(id), "two\r\n") }, "the output after the resume")
	})
	t.Run("closed meanwhile", func(t *testing.T) {
		id := shell(t, s, echoes)
		take(id)
		must(s.Hangup(catalog.TerminalCloseParams{TerminalID: id}))(t)
		w.Await(t, func() bool { return w.Exit(id) != nil }, "the exit")
		take := shell(t, s, echoes)
		_, err := s.Descriptor(ctx, catalog.TerminalDescriptorParams{TerminalID: take}) // ends with the test
		require.NoError(t, err)
	})
}

// Descriptor returns when all earlier output has been reported, and not earlier.
func TestDescriptorWaitsForEarlierOutput(t *testing.T) {
	w := &terminalRecord{}
	reporting, goOn := make(chan struct{}), make(chan struct{})
	w.OnOutput = func(p catalog.TerminalOutputParams) {
		if p.Data == "up" {
			reporting <- struct{}{}
			<-goOn
		}
	}
	s, _ := newSet(t, w)
	id := shell(t, s, `printf up; read a`)
	<-reporting
	taken := make(chan error, 1)
	go func() {
		f, err := s.Descriptor(context.Background(), catalog.TerminalDescriptorParams{TerminalID: id})
		if err == nil {
			f.Close()
		}
		taken <- err
	}()
	for range 5 { // output of other terminals: takes long enough for a call that does not wait
		other := shell(t, s, `echo here`)
		w.Await(t, func() bool { return w.Exit(other) != nil }, "the exit of another terminal")
	}
	assert.Empty(t, taken, "Descriptor waits")
	close(goOn)
	require.NoError(t, <-taken)
	assert.Equal(t, "utf-8:up", w.Printed(id))
}

func requireKind(t *testing.T, err error, kind string) {
	t.Helper()
	var wire *jsonrpc2.Error
	require.ErrorAs(t, err, &wire)
	if wire.Code == jsonrpc2.CodeInternalError {
		assert.True(t, strings.HasPrefix(wire.Message, "Internal error: "), "%s", wire.Message)
	}
	require.NotNil(t, wire.Data)
	assert.Contains(t, string(*wire.Data), `"`+kind+`"`)
}

// printed returns a terminal's output, however many pieces it came in.
func (h *hub) printed(id string) string {
	return strings.ReplaceAll(h.Printed(id), "utf-8:", "")
}

// Each call of the catalog reaches the terminals, directly and over the link. The tests above test
// the behaviour of the terminals.
func TestTerminalsOfAnExecutor(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *hub) catalog.Executor{
		"here": func(t *testing.T, h *hub) catalog.Executor { return newExecutor(t, h, executor.Options{}) },
		"over the link": func(t *testing.T, h *hub) catalog.Executor {
			_, rpc := startProcess(t, h)
			return catalogrpc.Executor(rpc)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub()
			x := start(t, h)
			ctx := context.Background()
			terminal := must(x.SpawnTerminal(ctx, catalog.SpawnTerminalParams{
				Shell: "sh", Args: []string{"-c", `stty -echo; echo up; while read a; do stty size; echo "got $a"; done`}, CWD: t.TempDir(),
			}))(t)
			id := terminal.TerminalID
			h.Await(t, func() bool { return strings.Contains(h.printed(id), "up") }, "the program's first output")
			require.NoError(t, x.TerminalResize(ctx, catalog.TerminalResizeParams{TerminalID: id, Cols: 100, Rows: 30}))
			require.NoError(t, x.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: id, Data: "one\n"}))
			h.Await(t, func() bool { return strings.Contains(h.printed(id), "30 100\r\ngot one\r\n") }, "the first echoed line")
			require.NoError(t, x.PauseNotifications(ctx))
			require.NoError(t, x.ResumeNotifications(ctx))
			if name == "here" { // the link of this test passes no descriptors
				must(x.TerminalDescriptor(ctx, catalog.TerminalDescriptorParams{TerminalID: id}))(t).Close()
				require.NoError(t, x.TerminalReturn(ctx, catalog.TerminalReturnParams{TerminalID: id}))
			}
			require.NoError(t, x.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: id, Data: "two\n"}))
			h.Await(t, func() bool { return strings.Contains(h.printed(id), "got two\r\n") }, "the second echoed line")
			assert.True(t, must(x.TerminalClose(ctx, catalog.TerminalCloseParams{TerminalID: id}))(t).Closed)
			h.Await(t, func() bool { return h.Exit(id) != nil }, "the exit")
			assert.Error(t, x.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: id}), "the terminal has ended")
		})
	}
}
