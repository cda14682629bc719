package mcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestARecentSetForgetsTheOldest(t *testing.T) {
	r := newRecent[int](3)
	for i := range 10 {
		r.add(i)
		r.add(i)
		assert.Len(t, r.known, min(i+1, 3))
		for j := range 10 {
			assert.Equal(t, j <= i && j > i-3, r.has(j), "%d after %d", j, i)
		}
	}
}
