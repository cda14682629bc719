//go:build unix

package main_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// socketPair is two ends of a Unix socket, as Node gives its children.
func socketPair(t *testing.T) (ours, theirs *os.File) {
	syscall.ForkLock.RLock() // or a process that another test starts keeps an end open
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	require.NoError(t, syscall.SetNonblock(fds[0], true)) // so that closing it ends a read
	ours, theirs = os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

func init() {
	frameModes = append(frameModes, struct {
		name     string
		converse func(*testing.T, frameCase) []byte
	}{"socket pairs", throughSocketPairs})
}

// throughSocketPairs gives the program a socket in each direction, as Node does.
func throughSocketPairs(t *testing.T, c frameCase) []byte {
	in, theirIn := socketPair(t)
	out, theirOut := socketPair(t)
	p := launch{args: c.args, stdin: theirIn, stdout: theirOut}.start(t)
	theirIn.Close()
	theirOut.Close()
	go func() {
		atOnce(in, c.in)
		in.Close()
	}()
	got, err := io.ReadAll(out)
	if !errors.Is(err, syscall.ECONNRESET) { // it ended with input unread, as after a shutdown
		require.NoError(t, err)
	}
	p.requireSuccess()
	return got
}

// The starter of the program may share its descriptors and make them
// non-blocking behind its back.
func TestNonBlockingPipes(t *testing.T) {
	inTheirs, in, err := os.Pipe()
	require.NoError(t, err)
	out, outTheirs, err := os.Pipe()
	require.NoError(t, err)
	p := launch{stdin: inTheirs, stdout: outTheirs}.start(t)
	for _, f := range []*os.File{inTheirs, outTheirs} {
		raw, err := f.SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) { require.NoError(t, syscall.SetNonblock(int(fd), true)) }))
		defer f.Close()
	}
	p.stdin, p.stdout, p.frames = in, out, newFrameReader(out)
	p.requireServing()
	const n = 50
	text := `"` + strings.Repeat("x", 300_000) + `"`
	go atOnce(p.stdin, []byte(strings.Repeat(framed(echoRequest(text)), n)))
	for range n {
		require.Len(t, p.next(), len(`{"jsonrpc":"2.0","id":1,"result":}`)+len(text))
	}
	p.requireServing()
	p.closeStdin()
	p.requireSuccess()
}

// An editor that closes its end of standard error, or never had one, keeps
// being served, however much there is to log.
func TestClosedStandardErrorDoesNotEndIt(t *testing.T) {
	serve := func(t *testing.T, p *process, hangUp func()) {
		p.requireServing()
		hangUp()
		for range 200 {
			p.requireServing()
		}
		p.finish()
	}
	t.Run("closed meanwhile", func(t *testing.T) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		p := launch{args: []string{"--log-level", "debug"}, stderr: w}.start(t)
		w.Close()
		serve(t, p, func() { r.Close() })
	})
	t.Run("closed before it starts", func(t *testing.T) {
		for range 100 { // the first line of the log is written while it starts: who comes first?
			r, w, err := os.Pipe()
			require.NoError(t, err)
			r.Close()
			p := launch{args: []string{"--log-level", "debug"}, stderr: w}.start(t)
			w.Close()
			p.requireServing()
			p.finish()
		}
	})
	t.Run("never open", func(t *testing.T) {
		shell, err := exec.LookPath("sh")
		if err != nil {
			t.Skip(err)
		}
		p := launch{binary: shell, args: []string{"-c", `exec "$0" --log-level debug 2>&-`, program}}.start(t)
		serve(t, p, func() {})
	})
}

// An unread pipe on standard error is full after some hundred lines.
func TestStandardErrorThatNobodyReadsDoesNotStopIt(t *testing.T) {
	const n = 30_000
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	p := launch{args: []string{"--log-level", "debug"}, stderr: w}.start(t)
	w.Close()
	go func() {
		for i := range n {
			if _, err := p.stdin.WriteString(framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo"}`, i))); err != nil {
				return
			}
		}
	}()
	for i := range n {
		require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":null}`, i), p.next())
	}
	watch := startStopwatch(t)
	p.closeStdin()
	assert.Empty(t, p.rest())
	p.requireGoneWithin(goneAfter, watch)
}

// fillPipes sends a request again and again, without reading a reply, until
// the program takes nothing more.
func (p *process) fillPipes(request string) {
	p.t.Helper()
	flood := strings.Repeat(request, 1+100_000/len(request))
	for sent := 0; ; {
		require.NoError(p.t, p.stdin.SetWriteDeadline(time.Now().Add(500*time.Millisecond)))
		n, err := p.stdin.WriteString(flood)
		if sent += n; n == 0 {
			require.ErrorIs(p.t, err, os.ErrDeadlineExceeded)
			return // the pipes and all queues between them are full
		}
		require.Less(p.t, sent, 1<<30, "it takes everything")
	}
}

// Opening a pipe would wait for a writer.
func TestAPipeIsNotAttached(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	require.NoError(t, syscall.Mkfifo(s.root+"/fifo", 0o600))
	s.refuses("fifo is a pipe or a device and cannot be attached: write its data to a file and attach that", "prompt", "--attach", "fifo", "quiet content")
}

// A log file may be an unread pipe; opening it must not wait.
func TestALogFileThatIsAPipeDoesNotStopIt(t *testing.T) {
	path := t.TempDir() + "/fifo"
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	p := launch{env: []string{"DUET_RPC_LOG=" + path}}.start(t)
	p.send(framed(after))
	answered := make(chan string, 1)
	go func() {
		body, _ := p.frames.next()
		answered <- string(body)
	}()
	select {
	case got := <-answered:
		assert.Equal(t, afterServed, got)
	case <-time.After(watchdog / 9):
		t.Fatal("it does not serve")
	}
}

// A client that sends and never reads stops being served; it costs no more
// memory than that, and the process can still be ended.
func TestAClientThatNeverReadsCostsLittle(t *testing.T) {
	for name, params := range map[string]string{"short replies": `1`, "long replies": `"` + strings.Repeat("x", 100_000) + `"`, "huge replies": `"` + strings.Repeat("x", 9<<20) + `"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary := fastProgram(t)
			p := launch{binary: binary}.start(t)
			p.requireServing()
			p.fillPipes(framed(echoRequest(params)))
			assert.Less(t, p.memory(t, "VmHWM"), 150<<20)
			watch := startStopwatch(t)
			signalled(syscall.SIGTERM)(p)
			p.requireGoneWithin(goneAfter, watch)
		})
	}
}

// Standard output is for frames: what a handler, a panic or a library prints
// goes elsewhere.
func TestStandardOutputIsForFramesAlone(t *testing.T) {
	p := run(t, "--test-methods", "--log-level", "debug")
	for _, method := range []string{"test.panic", "test.fail"} {
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error: the request failed; the log has the cause"}}`,
			p.ask(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`))
		p.requireServing()
	}
	p.requireLog("test.panic was called")
	p.requireDescriptorsTaken()
	p.finish()
	assert.Contains(t, p.log.String(), "goroutine", "the stack is in the log")
}
