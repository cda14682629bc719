//go:build unix

package supervisor

import (
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// idleAfter is when, in a bubble, an idle agent and an unused executor are ended.
const idleAfter = time.Minute

// memory runs executors in memory instead of processes.
type memory struct {
	programsEnded atomic.Bool // programs of agents in terminals

	mu    sync.Mutex
	last  int
	alive map[string]bool // by fake pid
}

func (m *memory) launch([]string) (*child, error) {
	near, far := net.Pipe()
	m.mu.Lock()
	m.last++
	pid := strconv.Itoa(m.last)
	m.alive[pid] = true
	m.mu.Unlock()
	ended := make(chan struct{})
	go func() { // child.wait waits for it
		defer close(ended)
		serve(far, tiny{pid: pid, crash: func() { far.Close() }, works: func() bool { return !m.programsEnded.Load() }})
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.alive, pid)
	}()
	return &child{link: near, wait: func() error { <-ended; return nil }, kill: func() { far.Close() }}, nil
}

func (m *memory) has(pid string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.alive[pid]
}

// inBubble runs a test with a supervisor whose executors run in memory, and whose clock advances
// when all goroutines wait for it.
func inBubble(t *testing.T, change func(*Options), test func(*testing.T, *Supervisor, *memory)) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{alive: make(map[string]bool)}
		s := newSupervisor(t, func(o *Options) { o.IdleAfter = idleAfter }, change)
		s.launch = m.launch
		test(t, s, m)
	})
}

// requireCount requires a number of executors, once nothing runs.
func requireCount(t *testing.T, s *Supervisor, want int, why string) {
	t.Helper()
	synctest.Wait()
	require.Equal(t, want, s.Count(), why)
}
