package turn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestASilentHubIsToldOf(t *testing.T) {
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
		said := make(chan string)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watchSilence(ctx, ping, 4*time.Second, func() string { return "it is silent" }, said)
		}()
		next := func() string {
			select {
			case text := <-said:
				return text
			case <-time.After(time.Hour):
				return "nothing"
			}
		}
		began := time.Now()
		assert.Equal(t, "it is silent", next())
		assert.Equal(t, 4*time.Second+5*time.Second, time.Since(began), "the second ping, and a quarter more")
		close(silentUntil)
		assert.Equal(t, "the hub answers again", next())
		cancel()
		<-ended
	})
}

// Where the hub answers late, but not too late, nothing is said: the end of ctx
// comes first.
func TestAHubThatAnswersLateIsNotToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		said := make(chan string, 1)
		slow := func(context.Context) { time.Sleep(4900 * time.Millisecond) }
		watchSilence(ctx, slow, 4*time.Second, func() string { return "it is silent" }, said)
		assert.Empty(t, said)
	})
}
