package query

import (
	"strings"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/stretchr/testify/assert"
)

// The cache holds few megabytes, however long prompts and results are.
func TestRecentSessionsAreBounded(t *testing.T) {
	r := newRecentSessions()
	large := strings.Repeat("x", 1<<20)
	for run := range int64(100) {
		s := domain.Session{Run: domain.Run{ID: run, Prompt: large, Result: large}}
		r.keep(s)
		r.keep(s) // counts once
		known, there := r.of(run)
		assert.True(t, there, "the last is")
		assert.Equal(t, run, known.Run.ID)
		assert.LessOrEqual(t, len(r.byRun), sessionsKeptBytes/(2<<20))
		assert.Equal(t, len(r.byRun)*(2<<20), r.bytes)
	}
	r.drop(99)
	_, there := r.of(99)
	assert.False(t, there)
	for run := range int64(3 * sessionsKept) {
		r.keep(domain.Session{Run: domain.Run{ID: run}})
		assert.LessOrEqual(t, len(r.byRun), sessionsKept)
	}
	for run := range int64(3 * sessionsKept) {
		r.drop(run)
	}
	assert.Zero(t, r.bytes)
}
