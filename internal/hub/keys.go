package hub

import (
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/redact"
)

const (
	// keysKept is how long the keys of a thread are known after anything was
	// heard of it: far longer than an agent lives that has nothing to do.
	keysKept = 15 * time.Minute
	// keysMost is of how many threads that have nothing to do keys are known.
	keysMost = 1000
)

// agentKeys are the keys that agents were given, so that they can be taken out of
// what agents say. They are in memory alone, as long as there may be an agent that
// has them. It may be used by any goroutine.
type agentKeys struct {
	added chan struct{} // has one in it when a first key may be known

	mu      sync.Mutex // guards threads
	threads map[int64]*threadKeys
}

type threadKeys struct {
	secrets *redact.Secrets
	runs    int // that are live
	used    time.Time
}

func newAgentKeys() *agentKeys {
	return &agentKeys{added: make(chan struct{}, 1), threads: make(map[int64]*threadKeys)}
}

// hold is Of for a run of the thread, which releases it when it has ended and
// all that it reported was taken in: until then they are known.
func (k *agentKeys) hold(thread int64) *redact.Secrets {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.entry(thread)
	keys.runs++
	return keys.secrets
}

func (k *agentKeys) release(thread int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.entry(thread)
	keys.runs--
	if keys.runs == 0 && keys.secrets.None() {
		delete(k.threads, thread)
	}
}

// add notes that an agent of a thread was given a key.
func (k *agentKeys) add(thread int64, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entry(thread).secrets.Add(key)
}

// Of are the keys that agents of a thread were given. An agent lives longer than
// a run.
func (k *agentKeys) Of(thread int64) *redact.Secrets {
	k.mu.Lock()
	defer k.mu.Unlock()
	if keys := k.threads[thread]; keys != nil {
		keys.used = time.Now()
		return keys.secrets
	}
	return &redact.Secrets{}
}

// entry is a thread's, which is made if need be; k.mu is held.
func (k *agentKeys) entry(thread int64) *threadKeys {
	keys := k.threads[thread]
	if keys == nil {
		keys = &threadKeys{secrets: &redact.Secrets{}}
		k.threads[thread] = keys
		if len(k.threads) == 1 {
			select {
			case k.added <- struct{}{}:
			default:
			}
		}
	}
	keys.used = time.Now()
	return keys
}

// known reports whether any thread is known.
func (k *agentKeys) known() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.threads) > 0
}

// forget forgets the keys of threads that have had nothing to do for long, or
// longer than many others.
func (k *agentKeys) forget(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var idle []int64
	for thread, keys := range k.threads {
		switch {
		case keys.runs > 0:
		case now.Sub(keys.used) >= keysKept:
			delete(k.threads, thread)
		default:
			idle = append(idle, thread)
		}
	}
	if len(idle) <= keysMost {
		return
	}
	slices.SortFunc(idle, func(a, b int64) int { return k.threads[a].used.Compare(k.threads[b].used) })
	for _, thread := range idle[:len(idle)-keysMost] {
		delete(k.threads, thread)
	}
}
