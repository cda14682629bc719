package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The process goes on for others than its editor, and no longer.
func TestLinger(t *testing.T) {
	connections := 1 // the editor's
	l := linger{count: func() int { return connections }, alone: make(chan struct{})}
	assert.Zero(t, l.others())
	connections = 3
	assert.Equal(t, 2, l.others())
	connections = 2
	l.connectionEnded()
	assert.Equal(t, 1, l.others())
	connections = 1 // the editor's has ended
	l.connectionEnded()
	assert.True(t, l.editorGone(), "another is there")
	assert.Equal(t, 1, l.others())
	assert.False(t, isClosed(l.alone))
	connections = 2
	l.connectionEnded()
	assert.False(t, isClosed(l.alone))
	connections = 0
	l.connectionEnded()
	assert.True(t, isClosed(l.alone))
	l.connectionEnded() // of who came and went too late
	assert.False(t, l.editorGone())
}

func TestLingerOfAnEditorAlone(t *testing.T) {
	connections := 1
	l := linger{count: func() int { return connections }, alone: make(chan struct{})}
	connections = 0
	l.connectionEnded()
	assert.False(t, isClosed(l.alone), "who serves it has not said that it has gone")
	assert.False(t, l.editorGone())
	assert.True(t, isClosed(l.alone))
}
