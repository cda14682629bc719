package hub

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// earlyMost is how much of a terminal's output is kept before it is known who
// asked for it.
const earlyMost = 64

// A terminal is one that somebody watches.
type terminal struct {
	lease Lease // nil until it is known
	watch func(Notice)
	early []Notice
}

// SpawnTerminal starts a program in a terminal. watch is told what it prints
// and how it ends; it must not block.
func (h *Hub) SpawnTerminal(ctx context.Context, p catalog.SpawnTerminalParams, watch func(Notice)) (catalog.SpawnTerminalResult, error) {
	var result catalog.SpawnTerminalResult
	var err error
	if p.CWD, err = h.directory(p.CWD); err != nil {
		return result, err
	}
	lease, err := h.executors.Acquire(ctx, Want{Agent: config.Agent{Driver: "command"}})
	if err != nil {
		return result, &Error{Kind: KindExecutor, Message: "no executor could be started: " + err.Error(), Err: err}
	}
	p.SessionToken = ""
	if result, err = lease.SpawnTerminal(ctx, p); err != nil {
		lease.Release()
		return result, err
	}
	h.mu.Lock()
	term := h.terminals[result.TerminalID]
	if term == nil {
		term = &terminal{}
		h.terminals[result.TerminalID] = term
	}
	term.lease, term.watch = lease, watch
	early := term.early
	term.early = nil
	for _, n := range early {
		watch(n)
	}
	ended := len(early) > 0 && early[len(early)-1].Type == EventTerminalExit
	if ended {
		delete(h.terminals, result.TerminalID)
	}
	h.mu.Unlock()
	if ended {
		lease.Release()
	}
	return result, nil
}

// lease is the executor of a terminal.
func (h *Hub) terminalLease(id string) (Lease, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if term := h.terminals[id]; term != nil && term.lease != nil {
		return term.lease, nil
	}
	return nil, errorf(KindTerminalNotFound, "no terminal has the id %q", id)
}

// TerminalWrite types into a terminal.
func (h *Hub) TerminalWrite(ctx context.Context, p catalog.TerminalWriteParams) error {
	lease, err := h.terminalLease(p.TerminalID)
	if err != nil {
		return err
	}
	return lease.TerminalWrite(ctx, p)
}

// TerminalResize changes a terminal's size.
func (h *Hub) TerminalResize(ctx context.Context, p catalog.TerminalResizeParams) error {
	lease, err := h.terminalLease(p.TerminalID)
	if err != nil {
		return err
	}
	return lease.TerminalResize(ctx, p)
}

// TerminalClose ends a terminal's program.
func (h *Hub) TerminalClose(ctx context.Context, p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	lease, err := h.terminalLease(p.TerminalID)
	if err != nil {
		return catalog.TerminalCloseResult{}, err
	}
	return lease.TerminalClose(ctx, p)
}

// TerminalOutput takes what a terminal printed. It is not kept.
func (h *Hub) TerminalOutput(_ context.Context, p catalog.TerminalOutputParams) error {
	h.tellTerminal(p.TerminalID, p.TaskID, EventTerminal, p)
	return nil
}

// TerminalExit takes that a terminal's program has ended.
func (h *Hub) TerminalExit(_ context.Context, p catalog.TerminalExitParams) error {
	h.tellTerminal(p.TerminalID, p.TaskID, EventTerminalExit, p)
	h.store.Enqueue(func(t *store.Tx) error {
		e := Event{Type: EventTerminalExit, Data: encode(p)}
		if run, err := h.find(t, p.TaskID); err == nil {
			e.Run, e.Thread = run.ID, run.Thread
		}
		_, err := t.Append(e)
		return err
	}, func(err error) {
		if err != nil && !isClosed(err) {
			h.log.Warn("the end of a terminal could not be kept", "err", err)
		}
	})
	return nil
}

// tellTerminal tells who watches a terminal: who asked for it, or, where an
// agent did, the subscribers.
func (h *Hub) tellTerminal(id, task, kind string, data any) {
	if task != "" {
		if session, err := h.Session(h.ctx, task); err == nil && kind == EventTerminal {
			h.announceBeside(kind, session, data)
		}
		return
	}
	n := Notice{Type: kind, Time: time.Now(), Data: encode(data)}
	h.mu.Lock()
	defer h.mu.Unlock()
	term := h.terminals[id]
	if term == nil {
		term = &terminal{}
		h.terminals[id] = term
	}
	if term.watch == nil {
		if len(term.early) < earlyMost || kind == EventTerminalExit {
			term.early = append(term.early, n)
		}
		return
	}
	term.watch(n)
	if kind == EventTerminalExit {
		delete(h.terminals, id)
		lease := term.lease
		go lease.Release()
	}
}
