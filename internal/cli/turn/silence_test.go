package turn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSilentHubIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		silentUntil := make(chan struct{})
		pings := 0
		ping := func(ctx context.Context) {
			if pings++; pings == 2 {
				select {
				case <-silentUntil:
				case <-ctx.Done():
				}
			}
		}
		said := make(chan bool)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watchSilence(ctx, ping, 4*time.Second, said)
		}()
		next := func() bool {
			select {
			case silent := <-said:
				return silent
			case <-time.After(time.Hour):
				t.Fatal("no report arrives")
				return false
			}
		}
		began := time.Now()
		assert.True(t, next(), "the hub is silent")
		assert.Equal(t, 4*time.Second+5*time.Second, time.Since(began), "the second ping and a quarter of the limit")
		close(silentUntil)
		assert.False(t, next(), "the hub answers again")
		cancel()
		<-ended
	})
}

// No message appears if the hub answers late but in time. The end of ctx comes first.
func TestLateAnswerIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		said := make(chan bool, 1)
		slow := func(context.Context) { time.Sleep(4900 * time.Millisecond) }
		watchSilence(ctx, slow, 4*time.Second, said)
		assert.Empty(t, said)
	})
}

// An event of the hub shows that it answers again, before its response to the ping arrives. The
// message appears once, before the turn's end in the event.
func TestEventEndsSilence(t *testing.T) {
	var said []string
	note := func(text string) { said = append(said, text) }
	a := &asker{Options: Options{WhySilent: func() string { return "it is silent" }}}
	a.hubHeard(note)
	assert.Empty(t, said)
	a.hubSilent(true, note)
	a.hubHeard(note)
	a.hubHeard(note)
	a.hubSilent(false, note)
	assert.Equal(t, []string{"it is silent", "the daemon answers again"}, said)
}
