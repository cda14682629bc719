package agentlink

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// Gemini CLI loads a session only in a later minute than the one in which it may have begun;
// other agents load at once.
func TestGeminiLoadsInTheNextMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10*time.Hour + 17*time.Second + 300*time.Millisecond)
		before := time.Now()
		assert.NoError(t, (&sessionLink{agentName: "opencode"}).awaitLoadable(t.Context()))
		assert.Equal(t, before, time.Now())
		gemini := &sessionLink{agentName: geminiCLI}
		assert.NoError(t, gemini.awaitLoadable(t.Context()))
		assert.Equal(t, before.Truncate(time.Minute).Add(time.Minute), time.Now().Truncate(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, gemini.awaitLoadable(ctx), context.DeadlineExceeded)
	})
}
