//go:build unix

package main_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// socketPair returns both ends of a Unix socket. Node gives such sockets to its children.
func socketPair(t *testing.T) (ours, theirs *os.File) {
	syscall.ForkLock.RLock() // otherwise a process of another test could keep an end open
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
	if !errors.Is(err, syscall.ECONNRESET) { // the program ended with unread input, as after a shutdown
		require.NoError(t, err)
	}
	p.requireSuccess()
	return got
}

// The parent of the program may share its descriptors and make them non-blocking at any time.
func TestNonBlockingPipes(t *testing.T) {
	inTheirs, in := newPipe(t)
	out, outTheirs := newPipe(t)
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

// The program serves an editor whose standard error is closed or was never open, with any amount of
// log output.
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
		r, w := newPipe(t)
		p := launch{args: []string{"--log-level", "debug"}, stderr: w}.start(t)
		w.Close()
		serve(t, p, func() { r.Close() })
	})
	t.Run("closed before it starts", func(t *testing.T) {
		for range 100 { // repeated, because the first log line races with the start
			r, w := newPipe(t)
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

// An unread pipe on standard error, which some hundred lines fill, does not stop the program.
func TestStandardErrorThatNobodyReadsDoesNotStopIt(t *testing.T) {
	const n = 30_000
	_, w := newPipe(t)
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

// fillPipes sends a request repeatedly, without reading a response, until the program reads nothing
// more.
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
		require.Less(p.t, sent, 1<<30, "the program reads everything")
	}
}

// The program does not attach a pipe, because opening it would wait for a writer.
func TestAPipeIsNotAttached(t *testing.T) {
	s := newSite(parallel(t))
	require.NoError(t, syscall.Mkfifo(s.root+"/fifo", 0o600))
	s.refuses("fifo is a pipe or a device and cannot be attached: write its data to a file and attach that", "prompt", "--attach", "fifo", "quiet content")
}

// An unread pipe as the log file does not stop the program: opening it does not wait.
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
		t.Fatal("the program does not answer")
	}
}

// The program stops serving a client that never reads. Its memory stays bounded, and a signal still
// ends it.
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

// Standard output carries only frames. The output of a handler, a panic or a library goes
// elsewhere.
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
	assert.Contains(t, p.log.String(), "goroutine", "the log has the stack")
}

// goneAfter is the most time between the cause of the program's end and its exit.
const goneAfter = 2 * time.Second

// An ending is one cause of the program's end.
type ending struct {
	name     string
	end      func(p *process)
	reply    string // the response to the ending itself
	midFrame string // the response in the middle of a frame
}

const (
	notInAFrame = "what is sent would be a part of the frame"
	cutShort    = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the input ended inside a frame","data":{"reason":"length-mismatch"}}}`
	goodbye     = `{"jsonrpc":"2.0","id":9,"result":{"message":"Shutting down gracefully"}}`
	cancelled   = `{"jsonrpc":"2.0","id":"long","error":{"code":-32800,"message":"Request cancelled","data":{"kind":"cancelled"}}}`
)

func signalled(s os.Signal) func(*process) {
	return func(p *process) { require.NoError(p.t, p.cmd.Process.Signal(s)) }
}

func sent(message string) func(*process) { return func(p *process) { p.send(framed(message)) } }

var endings = []ending{
	{name: "end of input", end: (*process).closeStdin, midFrame: cutShort},
	{name: "SIGINT", end: signalled(syscall.SIGINT)},
	{name: "SIGTERM", end: signalled(syscall.SIGTERM)},
	{name: "SIGHUP", end: signalled(syscall.SIGHUP)},
	{name: "shutdown request", end: sent(`{"jsonrpc":"2.0","id":9,"method":"shutdown"}`), reply: goodbye, midFrame: notInAFrame},
	{name: "shutdown notification", end: sent(`{"jsonrpc":"2.0","method":"shutdown"}`), midFrame: notInAFrame},
	{name: "exit request", end: sent(`{"jsonrpc":"2.0","id":9,"method":"exit"}`), reply: `{"jsonrpc":"2.0","id":9,"result":null}`, midFrame: notInAFrame},
	{name: "exit notification", end: sent(`{"jsonrpc":"2.0","method":"exit"}`), midFrame: notInAFrame},
}

// After each ending and during any activity, the program exits in time with status 0 and the
// expected responses.
func TestEndings(t *testing.T) {
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			t.Run("while idle", func(t *testing.T) {
				t.Parallel()
				p := run(t, unhurried)
				p.requireServing()
				e.check(p, e.reply)
			})
			if e.midFrame != notInAFrame {
				t.Run("in the middle of a header", func(t *testing.T) { e.checkInside(t, "Content-Len") })
				t.Run("in the middle of a body", func(t *testing.T) { e.checkInside(t, framed(after)[:40]) })
			}
			t.Run("beside a long-running request", func(t *testing.T) {
				t.Parallel()
				p := run(t, "--test-methods", unhurried)
				p.startLong()
				e.check(p, e.reply, cancelled)
			})
		})
	}
}

// startLong starts a request that takes a minute.
func (p *process) startLong() {
	p.t.Helper()
	p.send(framed(`{"jsonrpc":"2.0","id":"long","method":"test.sleep","params":{"ms":60000}}`))
	p.requireServing() // requests start in their order
}

func (e ending) checkInside(t *testing.T, part string) {
	t.Parallel()
	p := run(t, unhurried)
	p.requireServing()
	p.send(part)
	p.requireInputRead()
	e.check(p, e.midFrame)
}

// check ends the process and requires exactly these responses.
func (e ending) check(p *process, replies ...string) {
	p.t.Helper()
	watch := startStopwatch(p.t)
	e.end(p)
	var want []string
	for _, r := range replies {
		if r != "" {
			want = append(want, r)
		}
	}
	assert.Equal(p.t, want, p.rest())
	p.requireGoneWithin(goneAfter, watch)
}

// The program detects a closed output at its next response.
//
// These tests do not run in parallel with others. A starting process briefly holds every pipe of
// this process. Meanwhile a closed end still counts as open.
func TestAClosedOutputEndsIt(t *testing.T) {
	end := func(p *process) {
		watch := startStopwatch(t)
		p.stdout.Close()
		p.send(framed(after))
		p.requireGoneWithin(goneAfter, watch)
	}
	t.Run("while idle", func(t *testing.T) {
		p := run(t)
		p.requireServing()
		end(p)
	})
	t.Run("beside a long-running request", func(t *testing.T) {
		p := run(t, "--test-methods")
		p.startLong()
		end(p)
	})
	t.Run("in the middle of a long reply", func(t *testing.T) {
		p := run(t)
		p.send(framed(echoRequest(textOfFrame(60_000))))
		_, err := p.frames.r.Peek(1)
		require.NoError(t, err)
		watch := startStopwatch(t)
		go atOnce(p.stdin, []byte(strings.Repeat(framed(echoRequest(textOfFrame(maxFrame))), 3)))
		p.stdout.Close()
		p.requireGoneWithin(goneAfter, watch)
	})
}

// A response in progress at an ending still arrives.
func TestAnEndWaitsForWhatIsNearlyDone(t *testing.T) {
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			p := run(t, "--test-methods", unhurried)
			p.requireServing()
			p.send(framed(`{"jsonrpc":"2.0","id":"short","method":"test.sleep","params":{"ms":100}}`))
			p.requireServing()
			watch := startStopwatch(t)
			e.end(p)
			assert.Contains(t, p.rest(), `{"jsonrpc":"2.0","id":"short","result":{"slept_ms":100}}`)
			p.requireGoneWithin(goneAfter, watch)
		})
	}
}

// A second signal ends the program at once.
func TestASecondSignalEndsItAtOnce(t *testing.T) {
	for _, signals := range [][2]syscall.Signal{
		{syscall.SIGTERM, syscall.SIGTERM}, {syscall.SIGINT, syscall.SIGINT}, {syscall.SIGHUP, syscall.SIGTERM},
	} {
		t.Run(signals[0].String()+" and "+signals[1].String(), func(t *testing.T) {
			t.Parallel()
			p := run(t, "--test-methods")
			p.startLong()
			signalled(signals[0])(p)
			p.requireLog("msg=ending")
			signalled(signals[1])(p)
			assert.Empty(t, p.rest(), "the running request gets no response")
			p.requireSuccess()
		})
	}
}

// A shutdown with a timeout waits that long for running work. Another ending meanwhile still ends
// the program within 2 s.
func TestEndingsWhileShutdownWaits(t *testing.T) {
	for _, e := range endings {
		switch e.name {
		case "shutdown request", "shutdown notification":
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			p := run(t, "--test-methods", unhurried)
			p.startLong()
			p.send(framed(`{"jsonrpc":"2.0","id":9,"method":"shutdown","params":{"timeout_ms":60000,"reason":"update"}}`))
			p.requireLog(`msg="shutdown requested" reason=update`)
			watch := startStopwatch(t)
			e.end(p)
			assert.ElementsMatch(t, []string{cancelled, strings.Replace(goodbye, `{"message"`, `{"status":"interrupted","message"`, 1)}, p.rest())
			p.requireGoneWithin(goneAfter, watch)
		})
	}
}

// Responses and log are unread, and a handler keeps running. The time limits of these must not add
// up.
func TestTheWorstEndIsInTime(t *testing.T) {
	t.Parallel()
	for _, e := range endings[:4] {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			_, w := newPipe(t)
			p := launch{args: []string{"--test-methods", "--log-level", "debug"}, stderr: w}.start(t)
			w.Close()
			p.startLong()
			p.fillPipes(framed(echoRequest(`"` + strings.Repeat("x", 10_000) + `"`)))
			watch := startStopwatch(t)
			e.end(p)
			p.requireGoneWithin(goneAfter+raceSlack, watch)
		})
	}
}

// deafLog returns a full and unread pipe for standard error.
func deafLog(t *testing.T) *os.File {
	t.Helper()
	_, w := newPipe(t)
	require.NoError(t, w.SetWriteDeadline(time.Now().Add(time.Millisecond)))
	_, err := w.Write(make([]byte, 1<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the pipe is full")
	return w
}

// The program ends in time with an unread log while its daemon waits for a locked database.
func TestTheEndDoesNotWaitForTheHub(t *testing.T) {
	t.Parallel()
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			s := newSite(parallel(t))
			defer s.holdDatabase()()
			s.args = []string{"--test-methods"}
			l := s.launch()
			l.binary = fastProgram(t) // without the time of the race detector
			l.stderr = deafLog(t)
			p := l.start(t)
			p.send(framed(`{"jsonrpc":"2.0","id":"hub","method":"execute_prompt","params":{"prompt":"quiet"}}`))
			project := project.Project{StateDir: s.state()}
			require.Eventually(t, func() bool { return !project.Unlocked() }, watchdog/3, pollEvery, "a daemon opens the database")
			watch := startStopwatch(t)
			e.end(p)
			p.rest()
			p.requireGoneWithin(goneAfter, watch)
		})
	}
}

// The program ends in time although its hub does not answer.
func TestTheEndDoesNotWaitForASilentHub(t *testing.T) {
	s := newSite(parallel(t))
	s.daemonStays.Store(true)
	l := s.launch()
	l.binary = fastProgram(t)
	l.stderr = deafLog(t)
	c := newClient(l.start(t))
	pid := hubOf(t, c)
	suspendHub(t, pid)
	c.process.send(framed(`{"jsonrpc":"2.0","id":99,"method":"task.stats"}`))
	c.requireInputRead()
	watch := startStopwatch(t)
	c.closeStdin()
	c.requireGoneWithin(goneAfter, watch)
}

const escape = "\x1b[" // begins a colour sequence

// terminal is a pseudo-terminal in raw mode. The test types into ours, and printed collects the
// programs' output on theirs.
type terminal struct {
	ours, theirs *os.File
	printed      *testkit.Text
}

func openTerminal(t *testing.T) terminal {
	ours, theirs, err := pty.Open()
	require.NoError(t, err)
	_, err = term.MakeRaw(int(theirs.Fd()))
	require.NoError(t, err)
	printed := &testkit.Text{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(printed, ours)
	}()
	t.Cleanup(func() {
		theirs.Close()
		ours.Close()
		<-done
	})
	return terminal{ours, theirs, printed}
}

func TestOnATerminalItPrintsHelp(t *testing.T) {
	tty := openTerminal(t)
	p := launch{stdin: tty.theirs}.start(t)
	help, err := io.ReadAll(p.stdout)
	require.NoError(t, err)
	p.requireSuccess()
	assert.Contains(t, string(help), "Usage:")
	assert.NotContains(t, string(help), escape)
	assert.Empty(t, p.log.String())
}

func TestOnATerminalItServesWhenTold(t *testing.T) {
	for _, args := range [][]string{{"--stdio"}, {"serve"}, {"serve", "--stdio"}} {
		tty := openTerminal(t)
		p := launch{args: args, stdin: tty.theirs}.start(t)
		_, err := tty.ours.WriteString(framed(after))
		require.NoError(t, err)
		assert.Equal(t, afterServed, p.next())
		_, err = tty.ours.WriteString(framed(`{"jsonrpc":"2.0","method":"exit"}`))
		require.NoError(t, err)
		assert.Empty(t, p.rest())
		p.requireSuccess()
	}
}

// A user can type a frame: the terminal driver passes whole lines, and ^D ends the input.
func TestOnATerminalAFrameCanBeTyped(t *testing.T) {
	ours, theirs, err := pty.Open()
	require.NoError(t, err)
	defer ours.Close()
	defer theirs.Close()
	p := launch{args: []string{"--stdio"}, stdin: theirs}.start(t)
	_, err = ours.WriteString("Content-Length: 66\r\r" + after + "\r")
	require.NoError(t, err)
	assert.Equal(t, afterServed, p.next())
	_, err = ours.WriteString("\x04")
	require.NoError(t, err)
	assert.Empty(t, p.rest())
	p.requireSuccess()
}

// A terminal gets the same frames as a pipe.
func TestFramesOnATerminalHaveNoColour(t *testing.T) {
	tty := openTerminal(t)
	p := launch{stdout: tty.theirs}.start(t)
	p.send(framed(after))
	tty.printed.Await(t, func(text string) bool { return text == framed(afterServed) }, "the reply")
	p.closeStdin()
	p.requireSuccess()
	assert.Equal(t, framed(afterServed), tty.printed.String())
}

func TestLogIsColouredOnATerminalAlone(t *testing.T) {
	for _, c := range []struct {
		name     string
		launch   launch
		coloured bool
	}{
		{"as it is", launch{}, true},
		{"--no-color", launch{args: []string{"--no-color"}}, false},
		{"--no-color=false", launch{args: []string{"--no-color=false"}}, true},
		{"NO_COLOR", launch{env: []string{"NO_COLOR=1"}}, false},
		{"NO_COLOR=0 is set too", launch{env: []string{"NO_COLOR=0"}}, false},
		{"an empty NO_COLOR is none", launch{env: []string{"NO_COLOR="}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tty := openTerminal(t)
			c.launch.stderr = tty.theirs
			p := c.launch.start(t)
			p.requireServing()
			p.finish()
			tty.printed.AwaitPart(t, "stopped")
			assert.Contains(t, tty.printed.String(), "started")
			assert.Equal(t, c.coloured, strings.Contains(tty.printed.String(), escape), "%q", tty.printed)
		})
	}
	t.Run("a pipe", func(t *testing.T) {
		p := run(t)
		p.requireServing()
		p.finish()
		assert.Contains(t, p.log.String(), "msg=stopped")
		assert.NotContains(t, p.log.String(), escape)
	})
	t.Run("a file, though standard error is a terminal", func(t *testing.T) {
		tty := openTerminal(t)
		path := t.TempDir() + "/log"
		p := launch{stderr: tty.theirs, env: []string{"DUET_RPC_LOG=" + path}}.start(t)
		p.requireServing()
		p.finish()
		log := readFile(t, path)
		assert.Contains(t, log, "msg=stopped")
		assert.NotContains(t, log, escape)
		assert.Empty(t, tty.printed.String())
	})
}

// The log on a terminal escapes a peer's control characters.
func TestLogOnATerminalEscapesWhatAPeerSent(t *testing.T) {
	tty := openTerminal(t)
	p := launch{args: []string{"--no-color", "--log-level", "debug"}, stderr: tty.theirs}.start(t)
	p.send(framed(`{"jsonrpc":"2.0","method":"\u001b[2Jnosuch\r\n\u0007"}`))
	p.send(framed(`{"jsonrpc":"2.0","id":"\u001b[2J","result":1}`))
	p.requireServing()
	p.finish()
	tty.printed.AwaitPart(t, "stopped")
	assert.Contains(t, tty.printed.String(), "nosuch")
	assert.NotContains(t, tty.printed.String(), "\x1b")
	assert.NotContains(t, tty.printed.String(), "\x07")
}

// With DUET_RPC_DEBUG=1, or AIWG's AIWG_IPC_DEBUG=1, the log has every message at any log level,
// without secrets. This also holds for an attached process, and for messages between hub and
// executor.
func TestLogHasEveryMessageIfAsked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"DUET_RPC_DEBUG", "AIWG_IPC_DEBUG"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(parallel(t))
			s.env = append(s.env, name+"=1", "DUET_RPC_LOG_LEVEL=error")
			hub := s.open()
			hub.runs("quiet")
			attached := s.start()
			require.Equal(t, hubOf(t, hub), hubOf(t, attached))
			for _, c := range []*client{attached, hub} {
				_ = c.try("secret.provide", object{"request_id": "r", "secret": secret}, nil)
				_ = c.try("get_execution_context", object{"session_token": secret}, nil)
				c.leave()
				log := c.log.String()
				requireParts(t, log, `msg=received`, `msg=sent`)
				assert.Regexp(t, `received.*\\"method\\":\\"secret\.provide\\"`, log)
				assert.Regexp(t, `\\"request_id\\":\\"r\\".*\(redacted\)|\(redacted\).*\\"request_id\\":\\"r\\"`, log)
				assert.NotContains(t, log, secret)
			}
			daemon := readFile(t, filepath.Join(s.state(), "daemon.log"))
			assert.Regexp(t, `msg=sent peer="executor \d+".*execute_prompt`, daemon)
			assert.NotContains(t, daemon, secret)
			assert.NotRegexp(t, `session_token\\":\\"[^(]`, hub.log.String(), "tokens of executors")
		})
	}
	s := newSite(t)
	c := s.start()
	_ = hubOf(t, c)
	c.leave()
	assert.NotContains(t, c.log.String(), "msg=received", "no debug variable is set")
}
