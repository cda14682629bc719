//go:build unix && soak

package main_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// A thousand idle clients cost other clients nothing, are answered when
// they ask, and leave nothing behind.
func TestIdleClients(t *testing.T) {
	limit, err := socket.RaiseFileLimit()
	require.NoError(t, err)
	if limit < idleClients+200 {
		t.Skipf("%d clients need more than the %d files that this system lets a process have", idleClients, limit)
	}
	s := newSite(t)
	s.agents("[agents.said]\ndriver = \"command\"\ncommand = [\"echo\", \"{prompt}\"]\nhistory = \"none\"\n")
	hub := s.foreground(watchdog)
	path := s.socketPath()
	l := loadOf()
	before := hub.memory(t, "VmRSS")
	worker := newCaller(t, path, promptCaller, l)
	measured := func() latencies {
		var took latencies
		for n := range 8 {
			began := time.Now()
			_, task, _, err := worker.submit(fmt.Sprintf("task %d", n))
			require.NoError(t, err)
			took = append(took, time.Since(began))
			require.NoError(t, worker.look(task, n))
		}
		slices.Sort(took)
		return took
	}
	alone := measured()

	conns := make([]net.Conn, idleClients)
	var group sync.WaitGroup
	began := time.Now()
	for i := range conns {
		group.Go(func() {
			conn, err := net.Dial("unix", path)
			if assert.NoError(t, err) {
				conns[i] = conn
			}
		})
	}
	group.Wait()
	require.False(t, t.Failed())
	connected := time.Since(began)
	clients := make([]*lineClient, idleClients)
	for i, conn := range conns {
		t.Cleanup(func() { conn.Close() })
		clients[i] = linesOn(t, conn)
	}
	count := func() int {
		var status struct {
			Subsystems struct {
				IPC struct{ Clients int } `json:"ipc"`
			} `json:"subsystems"`
		}
		require.NoError(t, worker.try("daemon.status", object{}, &status))
		return status.Subsystems.IPC.Clients
	}
	for i, c := range clients { // who has said nothing yet does not count, but is there
		if i%10 != 0 {
			c.say(`{"jsonrpc":"2.0","method":"ping"}`)
		}
	}
	require.Eventually(t, func() bool { return count() == idleClients*9/10+1 }, watchdog/3, pollEvery, "not all are served")
	idle := hub.memory(t, "VmRSS")
	crowded := measured()
	for i := range idleClients / 10 { // some listen
		require.NoError(t, clients[i*10+1].try("Subscribe", object{}, nil))
	}
	watch := startStopwatch(t)
	for _, i := range rand.Perm(idleClients) {
		group.Go(func() {
			method := []string{"ping", "task.stats", "listSessions"}[i%3]
			assert.NoError(t, clients[i].try(method, object{}, nil), "client %d", i)
		})
	}
	group.Wait()
	answered := time.Since(watch.began)
	watch.assertWithin(t, 15*time.Second)
	peak := hub.memory(t, "VmHWM")
	for _, c := range clients {
		c.conn.Close()
	}
	require.Eventually(t, func() bool { return count() == 1 }, watchdog/3, pollEvery, "clients that have gone are still served")
	after := 0
	require.Eventually(t, func() bool { after = hub.memory(t, "VmRSS"); return after <= l.rest }, watchdog/3, 50*time.Millisecond, "the memory does not come back")
	t.Logf("%d clients connected in %v; a prompt took %v before and %v beside them; all answered in %v", idleClients,
		connected.Round(time.Millisecond), alone.at(50), crowded.at(50), answered.Round(time.Millisecond))
	t.Logf("memory: %d MiB at first, %d MiB while they wait, %d MiB at most, %d MiB afterwards", before>>20, idle>>20, peak>>20, after>>20)
	assert.LessOrEqual(t, peak, l.peak)
	again := measured() // what else the machine does may have changed meanwhile
	assert.Less(t, ratio(crowded.at(50), max(alone.at(50), again.at(50))), float64(deafRatio), "who only waits delays the others")
	s.end(hub)
}
