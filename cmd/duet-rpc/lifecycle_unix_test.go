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
	began := time.Now()
	e.end(p)
	var want []string
	for _, r := range replies {
		if r != "" {
			want = append(want, r)
		}
	}
	assert.Equal(p.t, want, p.rest())
	p.requireGoneWithin(goneAfter, began)
}

// A client that closed its end is found to have gone at the next reply.
//
// These do not run in parallel with other tests: a process that is being
// started has, until it is on its feet, every pipe of this one, and while
// somebody could read it the end that we closed does not count as closed.
func TestAClosedOutputEndsIt(t *testing.T) {
	end := func(p *process) {
		began := time.Now()
		p.stdout.Close()
		p.send(framed(after))
		p.requireGoneWithin(goneAfter, began)
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
		began := time.Now()
		go atOnce(p.stdin, []byte(strings.Repeat(framed(echoRequest(textOfFrame(maxFrame))), 3)))
		p.stdout.Close()
		p.requireGoneWithin(goneAfter, began)
	})
}

// A reply that is under way when the end comes still arrives.
func TestAnEndWaitsForWhatIsNearlyDone(t *testing.T) {
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			p := run(t, "--test-methods")
			p.requireServing()
			p.send(framed(`{"jsonrpc":"2.0","id":"short","method":"test.sleep","params":{"ms":300}}`))
			p.requireServing()
			began := time.Now()
			e.end(p)
			assert.Contains(t, p.rest(), `{"jsonrpc":"2.0","id":"short","result":{"slept_ms":300}}`)
			p.requireGoneWithin(goneAfter, began)
		})
	}
}

// Somebody who presses ^C twice means it.
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
			p.send(framed(`{"jsonrpc":"2.0","id":9,"method":"shutdown","params":{"timeout_ms":60000}}`))
			p.requireInputRead()
			began := time.Now()
			e.end(p)
			assert.ElementsMatch(t, []string{cancelled, strings.Replace(goodbye, `{"message"`, `{"status":"interrupted","message"`, 1)}, p.rest())
			p.requireGoneWithin(goneAfter, began)
		})
	}
}

// Nobody reads the replies, nobody reads the log, and a handler runs on: the
// times that each of these is given must not add up.
func TestTheWorstEndIsInTime(t *testing.T) {
	for _, e := range endings[1:4] {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			require.NoError(t, err)
			defer r.Close()
			p := launch{args: []string{"--test-methods", "--log-level", "debug"}, stderr: w}.start(t)
			w.Close()
			p.startLong()
			p.fillPipes(framed(echoRequest(`1`)))
			began := time.Now()
			e.end(p)
			p.requireGoneWithin(goneAfter+noise, began)
			t.Logf("%v", time.Since(began))
		})
	}
}

// noise is what a busy machine may add where the program itself takes nearly
// all of the time that it has.
const noise = 500 * time.Millisecond
