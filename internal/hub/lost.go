package hub

import (
	"time"
)

// lookEvery is how often a hub to which nothing is written looks whether its
// database is still there.
const lookEvery = time.Second

// lostIssue is what users are told.
const lostIssue = "the project's .duet was removed or replaced while duet-rpc used it, and what ran has ended"

// watchStore looks whether the database is still there, until it is not or the hub
// ends.
func (h *Hub) watchStore() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-look.C:
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
