//go:build soak

package main_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The prompt box of a conversation is there at once, and shows what is typed while the agent
// streams. An answer of 5 MB takes no longer than without the box.
func TestAConversationKeepsUpWithItsAgent(t *testing.T) {
	const (
		starts   = 20
		soon     = 50 * time.Millisecond
		deltas   = 20_000
		rate     = 2000    // a second
		long     = 450_000 // deltas of an answer of 5 MB
		slowdown = 1.5     // of a long answer, against that without a box
	)
	s := newDaemonSite(t)
	s.watchdog = 5 * time.Minute
	s.env = append(s.env, "DUET_DEMO_DELAY=0")
	_, err := s.command("prompt", "quiet first")
	require.NoError(t, err)

	var took []time.Duration
	for range starts {
		begun := time.Now()
		p := s.talk(t)
		p.sees(idleFooter)
		took = append(took, time.Since(begun))
		p.keys("\x04")
		<-p.ended
	}
	slices.Sort(took)
	t.Logf("start to the prompt box: median %v, longest %v", took[starts/2], took[starts-1])
	assert.Less(t, took[starts/2], soon)

	p := s.talk(t)
	p.sees(idleFooter)
	begun := time.Now()
	p.keys(fmt.Sprintf("quiet stream:%d@%d\r", deltas, rate))
	p.sees("chunk 100 ")
	typed := time.Now()
	p.keys("typed")
	p.sees("typed")
	t.Logf("a key is shown after %v while %d deltas a second come", time.Since(typed), rate)
	p.sees("tokens")
	t.Logf("%d deltas at %d a second: %v", deltas, rate, time.Since(begun))
	assert.Less(t, time.Since(begun), deltas/rate*time.Second*3/2)
	p.sees(idleFooter)

	prompt := fmt.Sprintf("quiet stream:%d", long)
	begun = time.Now()
	once := s.talk(t, "prompt", prompt)
	once.sees("go on with")
	plain := time.Since(begun)
	<-once.ended
	size := len(once.tty.printed.String())
	begun = time.Now()
	p.keys("\x15" + prompt + "\r")
	p.sees("tokens")
	boxed := time.Since(begun)
	t.Logf("an answer of %d bytes: %v without the box, %v with it", size, plain, boxed)
	assert.Less(t, boxed.Seconds(), slowdown*plain.Seconds())
	p.sees(idleFooter)
	p.leaves()
}
