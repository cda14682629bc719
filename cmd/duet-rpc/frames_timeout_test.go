package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const tooSlow = "a frame did not arrive whole in time"

// requireTimeouts waits until the log tells of n frames that were too slow.
func (p *process) requireTimeouts(n int) {
	p.t.Helper()
	p.log.Await(p.t, func(log string) bool { return strings.Count(log, tooSlow) >= n }, fmt.Sprintf("%d frames that were too slow", n))
}

// What came of a frame that stops arriving is dropped without a word, any
// number of times, and so is the rest when it comes too late. The next good
// frame is served.
func TestAFrameThatStopsArrivingIsDropped(t *testing.T) {
	launches := map[string]launch{
		"by flag":        {args: []string{"--read-timeout", "50ms"}},
		"by environment": {env: []string{"DUET_RPC_READ_TIMEOUT=0.05"}},
	}
	for name, l := range launches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := l.start(t)
			whole := framed(after)
			header := len(whole) - len(after)
			for i, stop := range []int{1, 10, header - 4, header - 1, header, header + 1, len(whole) - 1} {
				p.send(whole[:stop])
				p.requireTimeouts(i + 1)
				p.send(whole[stop:])
				p.requireServing()
			}
			p.finish()
		})
	}
}

// The clock goes on in a body that is skipped, but the refusal was said.
func TestASkippedBodyThatStopsArrivingIsDropped(t *testing.T) {
	p := run(t, "--read-timeout", "50ms")
	p.send("Content-Length: 10485761\r\n\r\nsome of it")
	require.Contains(t, p.next(), `"reason":"oversize"`)
	p.requireTimeouts(1)
	p.requireServing()
	p.finish()
}

// Between frames there is no clock, whatever stands there.
func TestIdlenessIsNoTimeout(t *testing.T) {
	for name, between := range map[string]string{"nothing": "", "blank lines": "\r\n \r\n", "garbage": "a stray print"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const timeout = 50 * time.Millisecond
			p := run(t, "--read-timeout", timeout.String())
			p.requireServing()
			p.send(between)
			if name == "garbage" {
				require.Contains(t, p.next(), `"reason":"length-mismatch"`)
			}
			time.Sleep(3 * timeout) // machine: idleness is time in which nothing comes; on a slow machine there is more of it
			p.requireServing()
			p.finish()
			require.NotContains(t, p.log.String(), tooSlow)
		})
	}
}
