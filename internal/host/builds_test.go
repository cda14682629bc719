package host

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/server"
)

// An observer keeps no daemon running and replaces none, of whichever build it is.
func TestObserversAreNoClients(t *testing.T) {
	synctest.Test(t, observersAreNoClients)
}

func observersAreNoClients(t *testing.T) {
	connections := 0
	b := newBuilds("mine", func() int { return connections })
	assert.Equal(t, 0, b.clients())

	observer, end := context.WithCancel(t.Context())
	connections++
	conn := new(server.Conn)
	b.observe(observer, conn)
	b.observe(observer, conn)
	assert.Equal(t, 0, b.clients())
	assert.False(t, b.superseded())

	connections++ // a client of another build
	assert.True(t, b.add(t.Context(), new(server.Conn), "other", "2"))
	assert.Equal(t, 1, b.clients())
	assert.True(t, b.superseded(), "all clients are of another build: an observer does not count")

	connections-- // the observer
	end()
	synctest.Wait()
	assert.Equal(t, 1, b.clients())
}
