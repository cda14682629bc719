package hub

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A View is one that watches a terminal.
type View struct {
	// Terminal is what was known when the view began.
	Terminal Terminal
	// File is the terminal's descriptor, if it was asked for; it is the
	// caller's.
	File *os.File
	// Recent is what the terminal printed before the descriptor was handed
	// over.
	Recent []byte

	hub   *Hub
	tell  func(Notice)
	close sync.Once
}

// AttachParams say how a terminal is to be watched.
type AttachParams struct {
	Cols, Rows int  // the size it gets; 0: it stays
	Descriptor bool // read and write it oneself
	// Instead, if not nil, is a view of the same terminal that ends where the
	// new one begins. If there is no new one it stays.
	Instead *View
}

// AttachTerminal lets one more watch a terminal: tell is told what it printed
// lately, at once and without waiting, and then as of [Hub.SpawnTerminal],
// until the view is closed.
//
// With p.Descriptor the view has the terminal's descriptor, and nobody else
// is told what it prints: tell hears of the end alone. Nobody else may watch
// it then.
func (h *Hub) AttachTerminal(ctx context.Context, id string, p AttachParams, tell func(Notice)) (*View, error) {
	view := &View{hub: h, tell: tell}
	if p.Descriptor {
		if err := h.handOver(ctx, id, p, view); err != nil {
			return nil, err
		}
		return view, nil
	}
	h.mu.Lock()
	term, err := h.admit(id, p)
	sized := err == nil && term.lease != nil && p.Cols > 0 && p.Rows > 0
	h.mu.Unlock()
	if sized { // before it is watched: what comes of it belongs to the past
		err = h.TerminalResize(ctx, catalog.TerminalResizeParams{TerminalID: id, Cols: p.Cols, Rows: p.Rows})
	}
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if term, err = h.admit(id, p); err != nil {
		return nil, err
	}
	term.leave(p.Instead)
	term.show(view, unasked(term.recent.bytes()))
	return view, nil
}

// admit is the terminal with that id, if it may be watched so; h.mu is held.
func (h *Hub) admit(id string, p AttachParams) (*terminal, error) {
	term, err := h.terminal(id)
	switch {
	case err != nil:
		return nil, err
	case term.holder != nil:
		return nil, domain.Errorf(domain.KindTerminalTaken, "somebody has the descriptor of the terminal %s; it can be watched when they have given it back", id)
	case !p.Descriptor:
		return term, nil
	}
	others := len(term.views)
	if slices.Contains(term.views, p.Instead) {
		others--
	}
	if others > 0 {
		return nil, domain.Errorf(domain.KindTerminalTaken, "others watch the terminal %s, so its descriptor is not handed over", id)
	}
	return term, term.usable()
}

// handOver gives a view the descriptor of a terminal.
func (h *Hub) handOver(ctx context.Context, id string, p AttachParams, view *View) error {
	h.mu.Lock()
	term, err := h.admit(id, p)
	if err != nil {
		h.mu.Unlock()
		return err
	}
	term.views, term.holder = append(term.views, view), view
	h.mu.Unlock()
	if p.Cols > 0 && p.Rows > 0 {
		err = h.TerminalResize(ctx, catalog.TerminalResizeParams{TerminalID: id, Cols: p.Cols, Rows: p.Rows})
	}
	if err == nil {
		view.File, err = h.descriptor(ctx, term, view)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if isLate(err) { // its executor will say whether it has handed it over
		term.leave(view)
		return ctx.Err()
	}
	if err != nil {
		term.leave(view)
		term.holder = nil
		return err
	}
	term.leave(p.Instead)
	view.Recent = term.recent.bytes()
	view.Terminal = term.snapshot()
	return nil
}

// errLate says that a descriptor has not come before the end of a context.
var errLate = errors.New("the descriptor of the terminal has not come yet")

func isLate(err error) bool { return errors.Is(err, errLate) }

// descriptor asks a terminal's executor for its descriptor. It does not wait for
// it longer than ctx lasts: what comes later is closed, and the terminal given
// back, which is taken until then.
func (h *Hub) descriptor(ctx context.Context, term *terminal, view *View) (*os.File, error) {
	type answer struct {
		file *os.File
		err  error
	}
	answered := make(chan answer, 1)
	h.active.Go(func() {
		file, err := term.lease.TerminalDescriptor(context.WithoutCancel(ctx), catalog.TerminalDescriptorParams{TerminalID: term.ID})
		answered <- answer{file, err}
	})
	select {
	case a := <-answered:
		return a.file, a.err
	case <-ctx.Done():
	}
	h.active.Go(func() {
		a := <-answered
		if a.err == nil {
			a.file.Close()
			h.giveBack(term)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if term.holder == view {
			term.holder = nil
		}
	})
	return nil, errLate
}

// giveBack has a terminal's executor read it again.
func (h *Hub) giveBack(term *terminal) {
	ctx, cancel := context.WithTimeout(h.ctx, returnWithin)
	defer cancel()
	err := term.lease.TerminalReturn(ctx, catalog.TerminalReturnParams{TerminalID: term.ID})
	if err != nil {
		h.log.Debug("a terminal could not be given back", "terminal", term.ID, "err", err)
	}
}

// returnWithin is how long an executor may take to read a terminal again.
const returnWithin = 10 * time.Second

// Close ends a view; nothing is told any more. If it had the descriptor, the
// executor reads the terminal again when Close returns, and what is left of
// the descriptor must not be used.
//
// It may be called more than once; each call returns when it is done.
func (v *View) Close() { v.close.Do(v.end) }

func (v *View) end() {
	h := v.hub
	h.mu.Lock()
	term := h.terminals[v.Terminal.ID]
	if term == nil || !term.leave(v) || term.holder != v {
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	h.giveBack(term)
	h.mu.Lock()
	defer h.mu.Unlock()
	term.holder = nil
}

// show lets a view begin, with what was printed before; the hub's mu is held.
func (t *terminal) show(v *View, past []byte) {
	t.views = append(t.views, v)
	v.Terminal = t.snapshot()
	if len(past) > 0 {
		v.tell(Notice{Type: EventTerminal, Time: time.Now(), Data: encode(outputParams(t.ID, past))})
	}
}

// leave ends a view, and reports whether it was one; the hub's mu is held.
func (t *terminal) leave(v *View) bool {
	i := slices.Index(t.views, v)
	if i >= 0 {
		t.views = slices.Delete(t.views, i, i+1)
	}
	return i >= 0
}

// tellViews tells views of an event, if there are any.
func tellViews(views []*View, kind string, data any) {
	if len(views) == 0 {
		return
	}
	n := Notice{Type: kind, Time: time.Now(), Data: encode(data)}
	for _, v := range views {
		v.tell(n)
	}
}

func outputBytes(p catalog.TerminalOutputParams) []byte {
	if p.Encoding != "base64" {
		return []byte(p.Data)
	}
	b, _ := base64.StdEncoding.DecodeString(p.Data) // what is not base64 is nothing
	return b
}

func outputParams(id string, b []byte) catalog.TerminalOutputParams {
	if utf8.Valid(b) {
		return catalog.TerminalOutputParams{TerminalID: id, Data: string(b), Encoding: "utf-8"}
	}
	return catalog.TerminalOutputParams{TerminalID: id, Data: base64.StdEncoding.EncodeToString(b), Encoding: "base64"}
}

const (
	// recentMost is how much of its output is kept for who comes later, in
	// bytes.
	recentMost = 64 << 10
	// recentLine is how far the cut is moved to the end of a line.
	recentLine = 4 << 10
)

// recent is the end of what a terminal printed.
type recent struct{ kept []byte }

func (r *recent) add(b []byte) {
	if r.kept = append(r.kept, b...); len(r.kept) > 2*recentMost {
		r.kept = append(r.kept[:0], cutRecent(r.kept)...)
	}
}

// bytes is a copy of it.
func (r *recent) bytes() []byte { return slices.Clone(cutRecent(r.kept)) }

// cutRecent is the end of b, from the beginning of a line or at least of a
// character on.
func cutRecent(b []byte) []byte {
	if len(b) <= recentMost {
		return b
	}
	b = b[len(b)-recentMost:]
	for i, c := range b[:recentLine] {
		if c == '\n' {
			return b[i+1:]
		}
	}
	for i := range utf8.UTFMax {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}

// questions are what programs ask a terminal: its kind, its state and where
// the cursor is (DA, DSR, DECRQM, XTVERSION, the kitty keyboard), colours
// (OSC) and settings (DECRQSS, XTGETTCAP).
var questions = regexp.MustCompile(`\x1b\[[0-9;?>=]*[cn]|\x1b\[\?[0-9;]*\$p|\x1b\[>[0-9]*q|\x1b\[\?u|` +
	`\x1b\][0-9;]*;\?(?:\x07|\x1b\\)|\x1bP[+$]q[^\x1b]*\x1b\\`)

// unasked is old output without its questions: they were answered when they
// were asked, and a second answer would be typed into the program.
func unasked(b []byte) []byte { return questions.ReplaceAll(b, nil) }
