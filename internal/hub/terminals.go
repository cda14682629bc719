package hub

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A Terminal is what is known of a terminal.
type Terminal struct {
	ID      string
	PID     int    // of its program; 0 where that is not known
	Program string // as it was asked for, or the user's shell
	Args    []string
	CWD     string
	Cols    int // 0 for an agent's terminal, which has no size
	Rows    int
	Tmux    string // the tmux session, if it is one
	Agents  bool   // an agent runs it: people can watch, and do nothing else
	Run     *domain.Session
	Started time.Time
	Views   int  // how many watch it
	Taken   bool // somebody has its descriptor
}

// A terminal is one that runs, or has printed something before its start was
// answered. The hub's mu guards it.
type terminal struct {
	Terminal                             // ID is "" until the start is answered
	lease    Lease                       // nil for an agent's
	views    []*View                     // in the order in which they came
	holder   *View                       // that has the descriptor, or gives it back, or nil
	recent   recent                      // what it printed
	exit     *catalog.TerminalExitParams // it ended before its start was answered
}

// snapshot is what is known now.
func (t *terminal) snapshot() Terminal {
	s := t.Terminal
	s.Views, s.Taken = len(t.views), t.holder != nil
	return s
}

// SpawnTerminal starts a program in a terminal, which lives on when nobody
// watches it. tell is told what it prints and how it ends. While it is told of
// output whatever else the executor has to tell waits; it may block for none
// else, and not for long.
// With p.Descriptor the view has the terminal's descriptor, as of
// [Hub.AttachTerminal].
func (h *Hub) SpawnTerminal(ctx context.Context, p catalog.SpawnTerminalParams, tell func(Notice)) (*View, error) {
	var err error
	if p.CWD, err = h.directory(p.CWD); err != nil {
		return nil, err
	}
	lease, err := h.executors.Acquire(ctx, catalog.LeaseRequest{Driver: "command"})
	if err != nil {
		return nil, &domain.Error{Kind: domain.KindExecutor, Message: "no executor could be started: " + err.Error(), Err: err}
	}
	p.SessionToken = ""
	p.TmuxSessionName = tmuxName.Replace(p.TmuxSessionName)
	h.mu.Lock()
	h.spawning++
	h.mu.Unlock()
	// What was started must be known here, whoever has given up waiting.
	result, err := lease.SpawnTerminal(context.WithoutCancel(ctx), p)
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.doneSpawning()
	if err != nil {
		go lease.Release()
		return nil, err
	}
	term := h.terminals[result.TerminalID]
	if term == nil {
		term = &terminal{}
		h.terminals[result.TerminalID] = term
	}
	term.lease = lease
	term.Terminal = Terminal{
		ID: result.TerminalID, PID: result.PTYPID, CWD: p.CWD, Started: time.Now(),
		Program: cmp.Or(result.Program, p.Shell), Args: result.Args, Cols: cmp.Or(result.Cols, p.Cols), Rows: cmp.Or(result.Rows, p.Rows),
	}
	if result.Program == "" {
		term.Args = p.Args
	}
	if p.UseTmux {
		term.Tmux = cmp.Or(p.TmuxSessionName, "duet")
	}
	view := &View{hub: h, tell: tell, File: result.File}
	if p.Descriptor {
		term.holder = view
	}
	term.show(view, term.recent.bytes())
	if term.exit != nil {
		h.end(term, *term.exit)
	}
	return view, nil
}

// tmuxName makes a name what tmux would make it, so that it can be found by
// it.
var tmuxName = strings.NewReplacer(":", "_", ".", "_")

// doneSpawning counts the end of a start. What printed and is nobody's is
// forgotten; h.mu is held.
func (h *Hub) doneSpawning() {
	if h.spawning--; h.spawning > 0 {
		return
	}
	for id, term := range h.terminals {
		if term.ID == "" {
			delete(h.terminals, id)
		}
	}
}

// Terminals lists the terminals that run, the oldest first.
func (h *Hub) Terminals() []Terminal {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []Terminal{}
	for _, term := range h.terminals {
		if term.ID != "" {
			list = append(list, term.snapshot())
		}
	}
	slices.SortFunc(list, func(a, b Terminal) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) })
	return list
}

// terminal is the one with that id; h.mu is held.
func (h *Hub) terminal(id string) (*terminal, error) {
	if term := h.terminals[id]; term != nil && term.ID != "" {
		return term, nil
	}
	return nil, domain.Errorf(domain.KindTerminalNotFound, "no terminal has the id %q", id)
}

// terminalLease is the executor of a terminal that people may use.
func (h *Hub) terminalLease(id string) (Lease, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	term, err := h.terminal(id)
	if err != nil {
		return nil, err
	}
	return term.lease, term.usable()
}

// usable is an error for a terminal that people may only watch.
func (t *terminal) usable() error {
	if t.lease == nil {
		return domain.Errorf(domain.KindTerminalReadOnly, "the terminal %s is an agent's: it can be watched, and no more; stop its task to end it", t.ID)
	}
	return nil
}

// TerminalWrite types into a terminal.
func (h *Hub) TerminalWrite(ctx context.Context, p catalog.TerminalWriteParams) error {
	lease, err := h.terminalLease(p.TerminalID)
	if err != nil {
		return err
	}
	h.mu.Lock()
	term := h.terminals[p.TerminalID]
	taken := term != nil && term.holder != nil
	h.mu.Unlock()
	if taken {
		return domain.Errorf(domain.KindTerminalTaken, "somebody has the descriptor of the terminal %s, and types on it", p.TerminalID)
	}
	return lease.TerminalWrite(ctx, p)
}

// TerminalResize changes a terminal's size, for all who watch it.
func (h *Hub) TerminalResize(ctx context.Context, p catalog.TerminalResizeParams) error {
	lease, err := h.terminalLease(p.TerminalID)
	if err != nil {
		return err
	}
	if err := lease.TerminalResize(ctx, p); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if term := h.terminals[p.TerminalID]; term != nil {
		term.Cols, term.Rows = p.Cols, p.Rows
	}
	return nil
}

// TerminalClose ends a terminal's program.
func (h *Hub) TerminalClose(ctx context.Context, p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	lease, err := h.terminalLease(p.TerminalID)
	if err != nil {
		return catalog.TerminalCloseResult{}, err
	}
	return lease.TerminalClose(ctx, p)
}

// TerminalStarted takes that an agent runs a program in a terminal.
func (h *Hub) TerminalStarted(_ context.Context, p catalog.TerminalStartedParams) error {
	term := &terminal{Terminal: Terminal{
		ID: p.TerminalID, PID: p.PID, Program: p.Program, Args: p.Args, CWD: p.CWD, Agents: true, Started: time.Now(),
	}}
	if p.TaskID != "" {
		if session, err := h.Session(h.ctx, p.TaskID); err == nil {
			term.Run = &session
			term.Args = slices.Clone(p.Args)
			for i, arg := range term.Args {
				term.Args[i] = h.keys.of(session.Run.Thread).Piece(arg)
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.terminals[p.TerminalID] == nil {
		h.terminals[p.TerminalID] = term
	}
	return nil
}

// TerminalOutput takes what a terminal printed. The log does not keep it.
func (h *Hub) TerminalOutput(_ context.Context, p catalog.TerminalOutputParams) error {
	h.show(p, false)
	return nil
}

// show shows what a terminal printed, and at its end also what was held back
// of it.
func (h *Hub) show(p catalog.TerminalOutputParams, end bool) {
	if p.TaskID != "" {
		if session, err := h.Session(h.ctx, p.TaskID); err == nil {
			if p = h.withoutPrinted(p, session.Run.Thread, end); p.Data == "" {
				return
			}
			h.announceBeside(EventTerminal, session, p)
		}
	}
	output := outputBytes(p)
	var views []*View
	h.mu.Lock()
	if term := h.printing(p.TerminalID); term != nil {
		term.recent.add(output)
		if term.holder == nil {
			views = slices.Clone(term.views)
		}
	}
	h.mu.Unlock()
	// Beside the lock: others need it, and who comes now has been told.
	tellViews(views, EventTerminal, p)
}

// printing is the terminal of which something is told, or nil; h.mu is held.
func (h *Hub) printing(id string) *terminal {
	term := h.terminals[id]
	if term == nil && h.spawning > 0 {
		term = &terminal{}
		h.terminals[id] = term
	}
	return term
}

// TerminalExit takes that a terminal's program has ended.
func (h *Hub) TerminalExit(_ context.Context, p catalog.TerminalExitParams) error {
	if h.keys.holds(p.TerminalID) {
		h.show(catalog.TerminalOutputParams{TerminalID: p.TerminalID, TaskID: p.TaskID, Encoding: "utf-8"}, true)
	}
	h.mu.Lock()
	if term := h.printing(p.TerminalID); term != nil {
		if term.ID == "" {
			term.exit = &p
		} else {
			h.end(term, p)
		}
	}
	h.mu.Unlock()
	h.store.Enqueue(func(t store.Tx) error {
		e := domain.Event{Type: EventTerminalExit, Data: encode(p)}
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

// end tells who watches a terminal that it has ended, and forgets it; h.mu is
// held.
func (h *Hub) end(term *terminal, p catalog.TerminalExitParams) {
	tellViews(term.views, EventTerminalExit, p)
	delete(h.terminals, term.ID)
	if term.lease != nil {
		go term.lease.Release()
	}
}
