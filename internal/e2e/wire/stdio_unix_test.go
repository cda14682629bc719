//go:build unix

package wire

import (
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

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// The parent of the program may share its descriptors and make them non-blocking at any time.
func TestNonBlockingPipes(t *testing.T) {
	inTheirs, in := e2e.NewPipe(t)
	out, outTheirs := e2e.NewPipe(t)
	p := e2e.Launch{Stdin: inTheirs, Stdout: outTheirs}.Start(t)
	for _, f := range []*os.File{inTheirs, outTheirs} {
		raw, err := f.SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) { require.NoError(t, syscall.SetNonblock(int(fd), true)) }))
		defer f.Close()
	}
	p.Stdin, p.Stdout, p.Frames = in, out, e2e.NewFrameReader(out)
	p.RequireServing()
	const n = 50
	text := `"` + strings.Repeat("x", 300_000) + `"`
	go e2e.AtOnce(p.Stdin, []byte(strings.Repeat(e2e.Framed(echoRequest(text)), n)))
	for range n {
		require.Len(t, p.Next(), len(`{"jsonrpc":"2.0","id":1,"result":}`)+len(text))
	}
	p.RequireServing()
	p.CloseStdin()
	p.RequireSuccess()
}

// The program serves an editor whose standard error is closed or was never open, with any amount of
// log output.
func TestClosedStandardErrorDoesNotEndIt(t *testing.T) {
	serve := func(t *testing.T, p *e2e.Process, hangUp func()) {
		p.RequireServing()
		hangUp()
		for range 200 {
			p.RequireServing()
		}
		p.Finish()
	}
	t.Run("closed meanwhile", func(t *testing.T) {
		r, w := e2e.NewPipe(t)
		p := e2e.Launch{Args: []string{"--log-level", "debug"}, Stderr: w}.Start(t)
		w.Close()
		serve(t, p, func() { r.Close() })
	})
	t.Run("closed before it starts", func(t *testing.T) {
		for range 100 { // repeated, because the first log line races with the start
			r, w := e2e.NewPipe(t)
			r.Close()
			p := e2e.Launch{Args: []string{"--log-level", "debug"}, Stderr: w}.Start(t)
			w.Close()
			p.RequireServing()
			p.Finish()
		}
	})
	t.Run("never open", func(t *testing.T) {
		shell, err := exec.LookPath("sh")
		if err != nil {
			t.Skip(err)
		}
		p := e2e.Launch{Binary: shell, Args: []string{"-c", `exec "$0" --log-level debug 2>&-`, e2e.Program}}.Start(t)
		serve(t, p, func() {})
	})
}

// An unread pipe on standard error, which some hundred lines fill, does not stop the program.
func TestStandardErrorThatNobodyReadsDoesNotStopIt(t *testing.T) {
	const n = 30_000
	_, w := e2e.NewPipe(t)
	p := e2e.Launch{Args: []string{"--log-level", "debug"}, Stderr: w}.Start(t)
	w.Close()
	go func() {
		for i := range n {
			if _, err := p.Stdin.WriteString(e2e.Framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo"}`, i))); err != nil {
				return
			}
		}
	}()
	for i := range n {
		require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":null}`, i), p.Next())
	}
	watch := e2e.StartStopwatch(t)
	p.CloseStdin()
	assert.Empty(t, p.Rest())
	p.RequireGoneWithin(e2e.GoneAfter, watch)
}

// fillPipes sends a request repeatedly, without reading a response, until the program reads nothing
// more.
func fillPipes(p *e2e.Process, request string) {
	p.T.Helper()
	flood := strings.Repeat(request, 1+100_000/len(request))
	for sent := 0; ; {
		require.NoError(p.T, p.Stdin.SetWriteDeadline(time.Now().Add(500*time.Millisecond)))
		n, err := p.Stdin.WriteString(flood)
		if sent += n; n == 0 {
			require.ErrorIs(p.T, err, os.ErrDeadlineExceeded)
			return // the pipes and all queues between them are full
		}
		require.Less(p.T, sent, 1<<30, "the program reads everything")
	}
}

// The program does not attach a pipe, because opening it would wait for a writer.
func TestAPipeIsNotAttached(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	require.NoError(t, syscall.Mkfifo(s.Root+"/fifo", 0o600))
	s.Refuses("fifo is a pipe or a device and cannot be attached: write its data to a file and attach that", "prompt", "--attach", "fifo", "quiet content")
}

// An unread pipe as the log file does not stop the program: opening it does not wait.
func TestALogFileThatIsAPipeDoesNotStopIt(t *testing.T) {
	path := t.TempDir() + "/fifo"
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	p := e2e.Launch{Env: []string{"DUET_RPC_LOG=" + path}}.Start(t)
	p.Send(e2e.Framed(after))
	answered := make(chan string, 1)
	go func() {
		body, _ := p.Frames.Next()
		answered <- string(body)
	}()
	select {
	case got := <-answered:
		assert.Equal(t, afterServed, got)
	case <-time.After(e2e.Watchdog / 9):
		t.Fatal("the program does not answer")
	}
}

// The program stops serving a client that never reads. Its memory stays bounded, and a signal still
// ends it.
func TestAClientThatNeverReadsCostsLittle(t *testing.T) {
	for name, params := range map[string]string{"short replies": `1`, "long replies": `"` + strings.Repeat("x", 100_000) + `"`, "huge replies": `"` + strings.Repeat("x", 9<<20) + `"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary := e2e.FastProgram(t)
			p := e2e.Launch{Binary: binary}.Start(t)
			p.RequireServing()
			fillPipes(p, e2e.Framed(echoRequest(params)))
			assert.Less(t, p.Memory(t, "VmHWM"), 150<<20)
			watch := e2e.StartStopwatch(t)
			signalled(syscall.SIGTERM)(p)
			p.RequireGoneWithin(e2e.GoneAfter, watch)
		})
	}
}

// Standard output carries only frames. The output of a handler, a panic or a library goes
// elsewhere.
func TestStandardOutputIsForFramesAlone(t *testing.T) {
	p := e2e.Run(t, "--test-methods", "--log-level", "debug")
	for _, method := range []string{"test.panic", "test.fail"} {
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error: the request failed; the log has the cause"}}`,
			p.Ask(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`))
		p.RequireServing()
	}
	p.RequireLog("test.panic was called")
	requireDescriptorsTaken(p)
	p.Finish()
	assert.Contains(t, p.Log.String(), "goroutine", "the log has the stack")
}

// An ending is one cause of the program's end.
type ending struct {
	name     string
	end      func(p *e2e.Process)
	reply    string // the response to the ending itself
	midFrame string // the response in the middle of a frame
}

const (
	notInAFrame = "what is sent would be a part of the frame"
	cutShort    = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the input ended inside a frame","data":{"reason":"length-mismatch"}}}`
	goodbye     = `{"jsonrpc":"2.0","id":9,"result":{"message":"Shutting down gracefully"}}`
	cancelled   = `{"jsonrpc":"2.0","id":"long","error":{"code":-32800,"message":"Request cancelled","data":{"kind":"cancelled"}}}`
)

func signalled(s os.Signal) func(*e2e.Process) {
	return func(p *e2e.Process) { require.NoError(p.T, p.Cmd.Process.Signal(s)) }
}

func sent(message string) func(*e2e.Process) {
	return func(p *e2e.Process) { p.Send(e2e.Framed(message)) }
}

var endings = []ending{
	{name: "end of input", end: (*e2e.Process).CloseStdin, midFrame: cutShort},
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
				p := e2e.Run(t, e2e.Unhurried)
				p.RequireServing()
				e.check(p, e.reply)
			})
			if e.midFrame != notInAFrame {
				t.Run("in the middle of a header", func(t *testing.T) { e.checkInside(t, "Content-Len") })
				t.Run("in the middle of a body", func(t *testing.T) { e.checkInside(t, e2e.Framed(after)[:40]) })
			}
			t.Run("beside a long-running request", func(t *testing.T) {
				t.Parallel()
				p := e2e.Run(t, "--test-methods", e2e.Unhurried)
				startLongRequest(p)
				e.check(p, e.reply, cancelled)
			})
		})
	}
}

// startLongRequest starts a request that takes a minute.
func startLongRequest(p *e2e.Process) {
	p.T.Helper()
	p.Send(e2e.Framed(`{"jsonrpc":"2.0","id":"long","method":"test.sleep","params":{"ms":60000}}`))
	p.RequireServing() // requests start in their order
}

func (e ending) checkInside(t *testing.T, part string) {
	t.Parallel()
	p := e2e.Run(t, e2e.Unhurried)
	p.RequireServing()
	p.Send(part)
	requireInputRead(p)
	e.check(p, e.midFrame)
}

// check ends the process and requires exactly these responses.
func (e ending) check(p *e2e.Process, replies ...string) {
	p.T.Helper()
	watch := e2e.StartStopwatch(p.T)
	e.end(p)
	var want []string
	for _, r := range replies {
		if r != "" {
			want = append(want, r)
		}
	}
	assert.Equal(p.T, want, p.Rest())
	p.RequireGoneWithin(e2e.GoneAfter, watch)
}

// The program detects a closed output at its next response.
//
// These tests do not run in parallel with others. A starting process briefly holds every pipe of
// this process. Meanwhile a closed end still counts as open.
func TestAClosedOutputEndsIt(t *testing.T) {
	end := func(p *e2e.Process) {
		watch := e2e.StartStopwatch(t)
		p.Stdout.Close()
		p.Send(e2e.Framed(after))
		p.RequireGoneWithin(e2e.GoneAfter, watch)
	}
	t.Run("while idle", func(t *testing.T) {
		p := e2e.Run(t)
		p.RequireServing()
		end(p)
	})
	t.Run("beside a long-running request", func(t *testing.T) {
		p := e2e.Run(t, "--test-methods")
		startLongRequest(p)
		end(p)
	})
	t.Run("in the middle of a long reply", func(t *testing.T) {
		p := e2e.Run(t)
		p.Send(e2e.Framed(echoRequest(textOfFrame(60_000))))
		_, err := p.Frames.R.Peek(1)
		require.NoError(t, err)
		watch := e2e.StartStopwatch(t)
		go e2e.AtOnce(p.Stdin, []byte(strings.Repeat(e2e.Framed(echoRequest(textOfFrame(maxFrame))), 3)))
		p.Stdout.Close()
		p.RequireGoneWithin(e2e.GoneAfter, watch)
	})
}

// A response in progress at an ending still arrives.
func TestAnEndWaitsForWhatIsNearlyDone(t *testing.T) {
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			p := e2e.Run(t, "--test-methods", e2e.Unhurried)
			p.RequireServing()
			p.Send(e2e.Framed(`{"jsonrpc":"2.0","id":"short","method":"test.sleep","params":{"ms":100}}`))
			p.RequireServing()
			watch := e2e.StartStopwatch(t)
			e.end(p)
			assert.Contains(t, p.Rest(), `{"jsonrpc":"2.0","id":"short","result":{"slept_ms":100}}`)
			p.RequireGoneWithin(e2e.GoneAfter, watch)
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
			p := e2e.Run(t, "--test-methods")
			startLongRequest(p)
			signalled(signals[0])(p)
			p.RequireLog("msg=ending")
			signalled(signals[1])(p)
			assert.Empty(t, p.Rest(), "the running request gets no response")
			p.RequireSuccess()
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
			p := e2e.Run(t, "--test-methods", e2e.Unhurried)
			startLongRequest(p)
			p.Send(e2e.Framed(`{"jsonrpc":"2.0","id":9,"method":"shutdown","params":{"timeout_ms":60000,"reason":"update"}}`))
			p.RequireLog(`msg="shutdown requested" reason=update`)
			watch := e2e.StartStopwatch(t)
			e.end(p)
			assert.ElementsMatch(t, []string{cancelled, strings.Replace(goodbye, `{"message"`, `{"status":"interrupted","message"`, 1)}, p.Rest())
			p.RequireGoneWithin(e2e.GoneAfter, watch)
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
			_, w := e2e.NewPipe(t)
			p := e2e.Launch{Args: []string{"--test-methods", "--log-level", "debug"}, Stderr: w}.Start(t)
			w.Close()
			startLongRequest(p)
			fillPipes(p, e2e.Framed(echoRequest(`"`+strings.Repeat("x", 10_000)+`"`)))
			watch := e2e.StartStopwatch(t)
			e.end(p)
			p.RequireGoneWithin(e2e.GoneAfter+e2e.RaceSlack, watch)
		})
	}
}

// deafLog returns a full and unread pipe for standard error.
func deafLog(t *testing.T) *os.File {
	t.Helper()
	_, w := e2e.NewPipe(t)
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
			s := e2e.NewSite(e2e.Parallel(t))
			defer s.HoldDatabase()()
			s.Args = []string{"--test-methods"}
			l := s.Launch()
			l.Binary = e2e.FastProgram(t) // without the time of the race detector
			l.Stderr = deafLog(t)
			p := l.Start(t)
			p.Send(e2e.Framed(`{"jsonrpc":"2.0","id":"hub","method":"execute_prompt","params":{"prompt":"quiet"}}`))
			project := project.Project{StateDir: s.State()}
			require.Eventually(t, func() bool { return !project.Unlocked() }, e2e.Watchdog/3, e2e.PollEvery, "a daemon opens the database")
			watch := e2e.StartStopwatch(t)
			e.end(p)
			p.Rest()
			p.RequireGoneWithin(e2e.GoneAfter, watch)
		})
	}
}

// The program ends in time although its hub does not answer.
func TestTheEndDoesNotWaitForASilentHub(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.DaemonStays.Store(true)
	l := s.Launch()
	l.Binary = e2e.FastProgram(t)
	l.Stderr = deafLog(t)
	c := e2e.NewClient(l.Start(t))
	pid := e2e.HubOf(t, c)
	e2e.SuspendHub(t, pid)
	c.Process.Send(e2e.Framed(`{"jsonrpc":"2.0","id":99,"method":"task.stats"}`))
	requireInputRead(c.Process)
	watch := e2e.StartStopwatch(t)
	c.CloseStdin()
	c.RequireGoneWithin(e2e.GoneAfter, watch)
}

func TestOnATerminalItPrintsHelp(t *testing.T) {
	tty := e2e.OpenTerminal(t)
	p := e2e.Launch{Stdin: tty.Theirs}.Start(t)
	help, err := io.ReadAll(p.Stdout)
	require.NoError(t, err)
	p.RequireSuccess()
	assert.Contains(t, string(help), "Usage:")
	assert.NotContains(t, string(help), e2e.Escape)
	assert.Empty(t, p.Log.String())
}

func TestOnATerminalItServesWhenTold(t *testing.T) {
	for _, args := range [][]string{{"--stdio"}, {"serve", "--stdio"}} {
		tty := e2e.OpenTerminal(t)
		p := e2e.Launch{Args: args, Stdin: tty.Theirs}.Start(t)
		_, err := tty.Ours.WriteString(e2e.Framed(after))
		require.NoError(t, err)
		assert.Equal(t, afterServed, p.Next())
		_, err = tty.Ours.WriteString(e2e.Framed(`{"jsonrpc":"2.0","method":"exit"}`))
		require.NoError(t, err)
		assert.Empty(t, p.Rest())
		p.RequireSuccess()
	}
}

// A user can type a frame: the terminal driver passes whole lines, and ^D ends the input.
func TestOnATerminalAFrameCanBeTyped(t *testing.T) {
	ours, theirs, err := pty.Open()
	require.NoError(t, err)
	defer ours.Close()
	defer theirs.Close()
	p := e2e.Launch{Args: []string{"--stdio"}, Stdin: theirs}.Start(t)
	_, err = ours.WriteString("Content-Length: 66\r\r" + after + "\r")
	require.NoError(t, err)
	assert.Equal(t, afterServed, p.Next())
	_, err = ours.WriteString("\x04")
	require.NoError(t, err)
	assert.Empty(t, p.Rest())
	p.RequireSuccess()
}

// A terminal gets the same frames as a pipe.
func TestFramesOnATerminalHaveNoColour(t *testing.T) {
	tty := e2e.OpenTerminal(t)
	p := e2e.Launch{Stdout: tty.Theirs}.Start(t)
	p.Send(e2e.Framed(after))
	tty.Printed.Await(t, func(text string) bool { return text == e2e.Framed(afterServed) }, "the reply")
	p.CloseStdin()
	p.RequireSuccess()
	assert.Equal(t, e2e.Framed(afterServed), tty.Printed.String())
}

func TestLogIsColouredOnATerminalAlone(t *testing.T) {
	for _, c := range []struct {
		name     string
		launch   e2e.Launch
		coloured bool
	}{
		{"as it is", e2e.Launch{}, true},
		{"--no-color", e2e.Launch{Args: []string{"--no-color"}}, false},
		{"--no-color=false", e2e.Launch{Args: []string{"--no-color=false"}}, true},
		{"NO_COLOR", e2e.Launch{Env: []string{"NO_COLOR=1"}}, false},
		{"NO_COLOR=0 is set too", e2e.Launch{Env: []string{"NO_COLOR=0"}}, false},
		{"an empty NO_COLOR is none", e2e.Launch{Env: []string{"NO_COLOR="}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tty := e2e.OpenTerminal(t)
			c.launch.Stderr = tty.Theirs
			p := c.launch.Start(t)
			p.RequireServing()
			p.Finish()
			tty.Printed.AwaitPart(t, "stopped")
			assert.Contains(t, tty.Printed.String(), "started")
			assert.Equal(t, c.coloured, strings.Contains(tty.Printed.String(), e2e.Escape), "%q", tty.Printed)
		})
	}
	t.Run("a pipe", func(t *testing.T) {
		p := e2e.Run(t)
		p.RequireServing()
		p.Finish()
		assert.Contains(t, p.Log.String(), "msg=stopped")
		assert.NotContains(t, p.Log.String(), e2e.Escape)
	})
	t.Run("a file, though standard error is a terminal", func(t *testing.T) {
		tty := e2e.OpenTerminal(t)
		path := t.TempDir() + "/log"
		p := e2e.Launch{Stderr: tty.Theirs, Env: []string{"DUET_RPC_LOG=" + path}}.Start(t)
		p.RequireServing()
		p.Finish()
		log := e2e.ReadFile(t, path)
		assert.Contains(t, log, "msg=stopped")
		assert.NotContains(t, log, e2e.Escape)
		assert.Empty(t, tty.Printed.String())
	})
}

// The log on a terminal escapes a peer's control characters.
func TestLogOnATerminalEscapesWhatAPeerSent(t *testing.T) {
	tty := e2e.OpenTerminal(t)
	p := e2e.Launch{Args: []string{"--no-color", "--log-level", "debug"}, Stderr: tty.Theirs}.Start(t)
	p.Send(e2e.Framed(`{"jsonrpc":"2.0","method":"\u001b[2Jnosuch\r\n\u0007"}`))
	p.Send(e2e.Framed(`{"jsonrpc":"2.0","id":"\u001b[2J","result":1}`))
	p.RequireServing()
	p.Finish()
	tty.Printed.AwaitPart(t, "stopped")
	assert.Contains(t, tty.Printed.String(), "nosuch")
	assert.NotContains(t, tty.Printed.String(), "\x1b")
	assert.NotContains(t, tty.Printed.String(), "\x07")
}

// With DUET_RPC_DEBUG=1, or AIWG's AIWG_IPC_DEBUG=1, the log has every message at any log level,
// without secrets. This also holds for an attached process, and for messages between hub and
// executor.
func TestLogHasEveryMessageIfAsked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"DUET_RPC_DEBUG", "AIWG_IPC_DEBUG"} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			s.Env = append(s.Env, name+"=1", "DUET_RPC_LOG_LEVEL=error")
			hub := s.Open()
			hub.Runs("quiet")
			attached := s.Start()
			require.Equal(t, e2e.HubOf(t, hub), e2e.HubOf(t, attached))
			for _, c := range []*e2e.Client{attached, hub} {
				_ = c.Try("secret.provide", object{"request_id": "r", "secret": secret}, nil)
				_ = c.Try("get_execution_context", object{"session_token": secret}, nil)
				c.Leave()
				log := c.Log.String()
				e2e.RequireParts(t, log, `msg=received`, `msg=sent`)
				assert.Regexp(t, `received.*\\"method\\":\\"secret\.provide\\"`, log)
				assert.Regexp(t, `\\"request_id\\":\\"r\\".*\(redacted\)|\(redacted\).*\\"request_id\\":\\"r\\"`, log)
				assert.NotContains(t, log, secret)
			}
			daemon := e2e.ReadFile(t, filepath.Join(s.State(), "daemon.log"))
			assert.Regexp(t, `msg=sent peer="executor \d+".*execute_prompt`, daemon)
			assert.NotContains(t, daemon, secret)
			assert.NotRegexp(t, `session_token\\":\\"[^(]`, hub.Log.String(), "tokens of executors")
		})
	}
	s := e2e.NewSite(t)
	c := s.Start()
	_ = e2e.HubOf(t, c)
	c.Leave()
	assert.NotContains(t, c.Log.String(), "msg=received", "no debug variable is set")
}
