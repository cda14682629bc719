//go:build linux && soak

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// Interval of the kills, and the longest stop of a hub.
const (
	killEvery   = 500 * time.Millisecond // on average
	longestStop = 1200 * time.Millisecond
)

// A killer kills processes of a project at random. It is safe for concurrent use.
type killer struct {
	project *project

	mu      sync.Mutex // guards the fields below
	rand    *rand.Rand
	done    map[string]int
	stopped bool
}

// live kills until ctx ends.
func (k *killer) live(ctx context.Context) {
	for {
		k.mu.Lock()
		pause, choice := rand.N(2*killEvery), k.rand.IntN(100)
		k.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		switch {
		case choice < 32:
			k.kill(aHub)
		case choice < 52:
			k.kill(anAgent)
		case choice < 68:
			k.kill(anExec)
		case choice < 82:
			k.kill(aRelay)
		case choice < 85:
			k.kill(aShell)
		case choice < 90:
			k.killAll()
		default:
			k.stop(ctx)
		}
	}
}

// afterAnAnswer kills a process that would have to carry out a just acknowledged answer.
func (k *killer) afterAnAnswer() {
	k.mu.Lock()
	choice := k.rand.IntN(4)
	k.mu.Unlock()
	switch choice {
	case 0, 1:
		k.kill(aHub)
	case 2:
		k.kill(anExec)
	case 3:
		k.kill(anAgent)
	}
}

// end prevents all further kills.
func (k *killer) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
}

// kill kills one process of a kind.
func (k *killer) kill(kind string) {
	if kind == aHub { // faster than a list of all processes
		if pid := k.project.hub(); pid > 0 {
			k.killOne(running{pid: pid, kind: aHub})
		}
		return
	}
	var fit []running
	for _, r := range k.project.running() {
		if r.kind == kind {
			fit = append(fit, r)
		}
	}
	if len(fit) > 0 {
		k.mu.Lock()
		one := fit[k.rand.IntN(len(fit))]
		k.mu.Unlock()
		k.killOne(one)
	}
}

func (k *killer) killOne(r running) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped && r.kill() == nil {
		k.done[r.kind]++
	}
}

// killAll kills all processes of the project, one after the other.
func (k *killer) killAll() {
	for _, r := range k.project.running() {
		k.killOne(r)
	}
}

// stop stops the hub for a moment with SIGSTOP.
func (k *killer) stop(ctx context.Context) {
	pid := k.project.hub()
	if pid <= 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return
	}
	k.mu.Lock()
	k.done[stoppedIt]++
	k.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(longestStop)):
	}
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

func (k *killer) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprint(k.done)
}
