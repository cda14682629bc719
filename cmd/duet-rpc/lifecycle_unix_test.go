//go:build unix

package main_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// goneAfter is how long the process may live on once its end has begun.
const goneAfter = 2 * time.Second

// An ending is one way in which a process comes to its end.
type ending struct {
	name     string
	end      func(p *process)
	reply    string // what the ending itself is answered with
	midFrame string // and what in the middle of a frame
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

// Whatever ends it and whatever it is doing, the process is gone in time, with
// status 0 and with the right words.
func TestEndings(t *testing.T) {
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			t.Run("while idle", func(t *testing.T) {
				t.Parallel()
				p := run(t)
				p.requireServing()
				e.check(p, e.reply)
			})
			if e.midFrame != notInAFrame {
				t.Run("in the middle of a header", func(t *testing.T) { e.checkInside(t, "Content-Len") })
				t.Run("in the middle of a body", func(t *testing.T) { e.checkInside(t, framed(after)[:40]) })
			}
			t.Run("beside a long-running request", func(t *testing.T) {
				t.Parallel()
				p := run(t, "--test-methods")
				p.startLong()
				e.check(p, e.reply, cancelled)
			})
		})
	}
}

// startLong leaves a request in flight that would take a minute.
func (p *process) startLong() {
	p.t.Helper()
	p.send(framed(`{"jsonrpc":"2.0","id":"long","method":"test.sleep","params":{"ms":60000}}`))
	p.requireServing() // requests start in their order
}

func (e ending) checkInside(t *testing.T, part string) {
	t.Parallel()
	p := run(t)
	p.requireServing()
	p.send(part)
	p.requireInputRead()
	e.check(p, e.midFrame)
}

// check ends the process and requires that it says no more than that.
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

// A client that closed its end is found to have gone at the next reply.
//
// These do not run in parallel with other tests: a process that is being
// started has, until it is on its feet, every pipe of this one, and while
// a process could read it the end that we closed does not count as closed.
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

// A reply that is under way when the end comes still arrives.
func TestAnEndWaitsForWhatIsNearlyDone(t *testing.T) {
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			p := run(t, "--test-methods")
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

// A second ^C ends the program at once.
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
			assert.Empty(t, p.rest(), "the request in flight is not even cancelled")
			p.requireSuccess()
		})
	}
}

// A shutdown with a timeout waits for running work for as long, but an editor
// that goes away meanwhile, or loses patience, ends it in 2 s all the same.
func TestEndingsWhileShutdownWaits(t *testing.T) {
	for _, e := range endings {
		switch e.name {
		case "shutdown request", "shutdown notification":
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			p := run(t, "--test-methods")
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

// The replies and the log are unread, and a handler runs on: the
// times that each of these is given must not add up.
func TestTheWorstEndIsInTime(t *testing.T) {
	t.Parallel()
	for _, e := range endings[1:4] {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			require.NoError(t, err)
			defer r.Close()
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

// deafLog is a pipe for standard error that is full and unread.
func deafLog(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	require.NoError(t, w.SetWriteDeadline(time.Now().Add(time.Millisecond)))
	_, err = w.Write(make([]byte, 1<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it is full")
	return w
}

// Nor do they where the log is unread and the hub is still being opened, which
// waits for a process that holds the database.
func TestTheEndDoesNotWaitForTheHub(t *testing.T) {
	t.Parallel()
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			defer s.holdDatabase()()
			s.args = []string{"--test-methods"}
			l := s.launch()
			l.binary = fastProgram(t) // the time is the program's alone
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

// Nor where the hub is another process, which does not answer.
func TestTheEndDoesNotWaitForASilentHub(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.daemonStays.Store(true)
	l := s.launch()
	l.binary = fastProgram(t)
	l.stderr = deafLog(t)
	c := newClient(l.start(t))
	pid := hubOf(t, c)
	suspend(t, pid)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	c.process.send(framed(`{"jsonrpc":"2.0","id":99,"method":"task.stats"}`))
	c.requireInputRead()
	watch := startStopwatch(t)
	c.closeStdin()
	c.requireGoneWithin(goneAfter, watch)
}
