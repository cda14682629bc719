package query

import (
	"strings"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/stretchr/testify/assert"
)

// The cache holds few megabytes, however long prompts and results are.
func TestRecentSessionsAreBounded(t *testing.T) {
	r := newRecentTurns()
	large := strings.Repeat("x", 1<<20)
	for turn := range int64(100) {
		s := domain.TurnInSession{Turn: domain.Turn{ID: turn, Prompt: large, Result: large}}
		r.keep(s)
		r.keep(s) // counts once
		known, there := r.of(turn)
		assert.True(t, there, "the last is")
		assert.Equal(t, turn, known.Turn.ID)
		assert.LessOrEqual(t, len(r.byTurn), sessionsKeptBytes/(2<<20))
		assert.Equal(t, len(r.byTurn)*(2<<20), r.bytes)
	}
	r.drop(99)
	_, there := r.of(99)
	assert.False(t, there)
	for turn := range int64(3 * sessionsKept) {
		r.keep(domain.TurnInSession{Turn: domain.Turn{ID: turn}})
		assert.LessOrEqual(t, len(r.byTurn), sessionsKept)
	}
	for turn := range int64(3 * sessionsKept) {
		r.drop(turn)
	}
	assert.Zero(t, r.bytes)
}
