package hub

import (
	"time"
)

// lookEvery is how often a hub to which nothing is written looks whether its
// database is still there, where nothing tells it.
const lookEvery = time.Second

// forgetEvery is how often is looked which keys are needed no more, while any are
// known.
const forgetEvery = time.Minute

// lostIssue is what users are told.
const lostIssue = "the project's .duet was removed or replaced while duet-rpc used it, and what ran has ended"

// watchStore looks whether the database is still there, and forgets what is needed
// no more, until it is not or the hub ends. An idle hub does neither: it is told.
func (h *Hub) watchStore() {
	var look <-chan time.Time
	if h.opts.Removed == nil {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	var forget <-chan time.Time // nil while no key is known
	for {
		if forget == nil && h.keys.known() {
			forget = time.After(forgetEvery)
		}
		select {
		case <-h.ctx.Done():
			return
		case <-look:
		case <-h.opts.Removed:
		case <-h.keys.added:
			continue
		case <-forget:
			h.keys.forget(time.Now())
			forget = nil
			continue
		}
		if err := h.store.Valid(); err != nil {
			h.storeIsLost(err)
			return
		}
	}
}

// Lost reports whether nothing is kept any more; see Options.Lost.
func (h *Hub) Lost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// storeIsLost tells once that nothing is kept any more.
func (h *Hub) storeIsLost(err error) {
	h.mu.Lock()
	first := !h.lost && !h.closing
	h.lost = true
	h.mu.Unlock()
	if !first {
		return
	}
	h.setIssue("store", lostIssue)
	h.log.Error(lostIssue, "err", err)
	if h.opts.Lost != nil {
		go h.opts.Lost(err)
	}
}
