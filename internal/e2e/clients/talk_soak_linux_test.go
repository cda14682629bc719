//go:build soak

package clients

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// The prompt box of a session appears soon and shows typed keys while the agent streams. An
// answer of 5 MB takes at most 1.5 times as long as without the box.
func TestASessionKeepsUpWithItsAgent(t *testing.T) {
	const (
		starts   = 20
		soon     = 50 * time.Millisecond
		deltas   = 20_000
		rate     = 2000    // a second
		long     = 450_000 // deltas of an answer of 5 MB
		slowdown = 1.5     // of a long answer relative to one without the box
	)
	s := e2e.NewDaemonSite(t)
	s.Watchdog = 5 * time.Minute
	s.Env = append(s.Env, "DUET_DEMO_DELAY=0")
	s.Run("prompt", "quiet first")

	var took []time.Duration
	for range starts {
		begun := time.Now()
		p := startTalk(s, t)
		p.sees(idleFooter)
		took = append(took, time.Since(begun))
		p.presses("\x04")
		<-p.Ended
	}
	slices.Sort(took)
	t.Logf("start to the prompt box: median %v, longest %v", took[starts/2], took[starts-1])
	assert.Less(t, took[starts/2], soon)

	p := startTalk(s, t)
	p.sees(idleFooter)
	begun := time.Now()
	p.presses(fmt.Sprintf("quiet stream:%d@%d\r", deltas, rate), "chunk 100 ")
	typed := time.Now()
	p.presses("typed", "typed")
	t.Logf("a key is shown after %v while %d deltas a second come", time.Since(typed), rate)
	p.sees("tokens")
	t.Logf("%d deltas at %d a second: %v", deltas, rate, time.Since(begun))
	assert.Less(t, time.Since(begun), deltas/rate*time.Second*3/2)
	p.sees(idleFooter)

	prompt := fmt.Sprintf("quiet stream:%d", long)
	begun = time.Now()
	once := startTalk(s, t, "prompt", prompt)
	once.sees("go on with")
	plain := time.Since(begun)
	<-once.Ended
	size := len(once.tty.Printed.String())
	begun = time.Now()
	p.presses("\x15"+prompt+"\r", "tokens")
	boxed := time.Since(begun)
	t.Logf("an answer of %d bytes: %v without the box, %v with it", size, plain, boxed)
	assert.Less(t, boxed.Seconds(), slowdown*plain.Seconds())
	p.sees(idleFooter)
	p.leaves()
}
