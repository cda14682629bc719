package preview

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPagesMaySayOnlySoMuch(t *testing.T) {
	var l limiter
	now := time.Unix(1000, 0)
	for i := range burst {
		lost, ok := l.take(now)
		assert.True(t, ok, "%d", i)
		assert.Zero(t, lost)
	}
	for range 5 {
		_, ok := l.take(now)
		assert.False(t, ok)
	}
	lost, ok := l.take(now.Add(everyPart))
	assert.True(t, ok)
	assert.Equal(t, 5, lost, "which is reported with the next one")
	_, ok = l.take(now.Add(everyPart))
	assert.False(t, ok)
	now = now.Add(time.Hour)
	for range burst {
		_, ok := l.take(now)
		assert.True(t, ok, "there is room for a burst again, and for no more")
	}
	_, ok = l.take(now)
	assert.False(t, ok)
}
