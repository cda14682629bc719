package handlers

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/terminal"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/passfd"
)

// A terminalInfo is a terminal as clients see it.
type terminalInfo struct {
	TerminalID  string    `json:"terminal_id"`
	PTYPID      int       `json:"pty_pid" doc:"The process in the terminal; 0 if that is not known."`
	Program     string    `json:"program"`
	Args        []string  `json:"args"`
	CWD         string    `json:"cwd"`
	Cols        int       `json:"cols,omitempty" doc:"Absent for an agent's terminal, which has no size."`
	Rows        int       `json:"rows,omitempty"`
	TmuxSession string    `json:"tmux_session,omitempty" doc:"The tmux session that it shows."`
	TaskID      string    `json:"task_id,omitempty" doc:"The task whose agent runs it."`
	SessionID   string    `json:"session_id,omitempty" doc:"The same, as a session."`
	ReadOnly    bool      `json:"read_only" doc:"It is an agent's: it can be watched, and no more."`
	Attached    int       `json:"attached" doc:"How many connections watch it."`
	Taken       bool      `json:"taken" doc:"A connection has its descriptor; nobody else can watch it."`
	StartedAt   time.Time `json:"started_at"`
}

func infoOf(t terminal.Info) terminalInfo {
	i := terminalInfo{
		TerminalID: t.ID, PTYPID: t.PID, Program: t.Program, Args: append([]string{}, t.Args...), CWD: t.CWD,
		Cols: t.Cols, Rows: t.Rows, TmuxSession: t.Tmux, ReadOnly: t.OfAgent, Attached: t.Views, Taken: t.Taken, StartedAt: t.Started.UTC(),
	}
	if t.Run != nil {
		i.TaskID, i.SessionID = domain.TaskName(t.Run.Task), t.Run.SessionID
	}
	return i
}

// texts implements shortenable.
func (i *terminalInfo) texts() []*string {
	list := []*string{&i.Program, &i.CWD}
	for n := range i.Args {
		list = append(list, &i.Args[n])
	}
	return list
}

type terminalListResult struct {
	Terminals []*terminalInfo `json:"terminals"`
}

func (terminals) list(ctx context.Context, h *hub.Hub, _ struct{}) (terminalListResult, error) {
	list := []*terminalInfo{}
	for _, t := range h.Terminals().List() {
		i := infoOf(t)
		list = append(list, &i)
	}
	return terminalListResult{fit(list, room(ctx))}, nil
}

type attachParams struct {
	TerminalID string `json:"terminal_id" doc:"The terminal."`
	Cols       *uint  `json:"cols,omitempty" doc:"With rows: the size that the terminal gets, for all who watch it; absent or 0: it stays."`
	Rows       *uint  `json:"rows,omitempty" doc:"See cols."`
	Descriptor bool   `json:"descriptor,omitempty" doc:"Pass the terminal's descriptor with the reply (SCM_RIGHTS, on a Unix socket alone): until terminal.detach, or its end, this connection reads and writes it, and no terminal_output comes. Refused while others watch."`
}

func (p attachParams) check() error {
	return first(need("terminal_id", p.TerminalID), cells("cols", p.Cols), cells("rows", p.Rows))
}

type attachResult struct {
	terminalInfo
	Recent         string   `json:"recent,omitempty" doc:"With the descriptor: what was printed lately, before it was handed over."`
	RecentEncoding encoding `json:"recent_encoding,omitempty" doc:"Of recent."`
}

func (t terminals) attach(ctx context.Context, h *hub.Hub, p attachParams) (attachResult, error) {
	if err := checkDescriptor(ctx, p.Descriptor); err != nil {
		return attachResult{}, err
	}
	params := terminal.AttachParams{Cols: orZero(p.Cols), Rows: orZero(p.Rows), Descriptor: p.Descriptor}
	if old := t.watching.find(server.ConnFrom(ctx), p.TerminalID); old != nil {
		params.Replaces = old.view
	}
	feed := t.newFeed(ctx)
	view, err := h.Terminals().Attach(ctx, p.TerminalID, params, feed.put)
	if err != nil {
		return attachResult{}, err
	}
	r := attachResult{terminalInfo: infoOf(view.Terminal)}
	if p.Descriptor {
		data, in := catalog.EncodeBytes(view.Recent)
		r.Recent, r.RecentEncoding = data, encoding(in)
	}
	return r, t.begin(ctx, view, feed)
}

type detachResult struct {
	Detached bool `json:"detached" doc:"False if this connection did not watch it."`
}

func (t terminals) detach(ctx context.Context, _ *hub.Hub, p closeParams) (detachResult, error) {
	w := t.watching.find(server.ConnFrom(ctx), p.TerminalID)
	if w == nil {
		return detachResult{}, nil
	}
	t.watching.remove(w)
	w.feed.finish()
	w.view.Close()
	return detachResult{true}, nil
}

// checkDescriptor refuses to pass a descriptor where that is not possible.
func checkDescriptor(ctx context.Context, wanted bool) error {
	if !wanted || passfd.CanReply(ctx) {
		return nil
	}
	return server.InvalidParam(server.ParamError{
		Param: "descriptor", Expected: "to be left out: only a single request on a Unix socket of the hub can get a descriptor", Received: "true",
	})
}

// newFeed makes a feed for the connection that asks.
func (t terminals) newFeed(ctx context.Context) *terminalFeed {
	conn := server.ConnFrom(ctx)
	return newTerminalFeed(dialect.Of(conn), conn.MaxMessage(), conn.Send, t.Logger)
}

// begin lets a view begin with the reply. It ends with the terminal, the
// connection or terminal.detach.
func (t terminals) begin(ctx context.Context, view *terminal.View, feed *terminalFeed) error {
	if view.File != nil {
		if err := passfd.Reply(ctx, view.File); err != nil {
			view.Close()
			return err
		}
	}
	w := &watch{conn: server.ConnFrom(ctx), id: view.Terminal.ID, view: view, feed: feed}
	t.watching.add(w)
	server.AfterReply(ctx, func() {
		if !w.conn.Go(func(ctx context.Context) { t.show(ctx, w) }) {
			feed.finish()
			view.Close()
			t.watching.remove(w)
		}
	})
	return nil
}

// show sends what a terminal prints until it, its connection or the watch ends.
func (t terminals) show(ctx context.Context, w *watch) {
	defer t.watching.remove(w)
	w.feed.run(ctx)
	w.view.Close()
	if w.feed.exitQueued() {
		select { // the log tells of the end, too, and is not to repeat it
		case <-ctx.Done():
		case <-time.After(exitEchoWithin):
		}
	}
}

// exitEchoWithin is how long the log's word of a terminal's end may come
// behind the terminal's own.
const exitEchoWithin = time.Minute

// watching is which connections watch which terminals.
type watching struct {
	mu   sync.Mutex // guards open
	open map[watchKey]*watch
}

type watchKey struct {
	conn *server.Conn
	id   string
}

// A watch is a connection that watches a terminal.
type watch struct {
	conn *server.Conn
	id   string
	view *terminal.View
	feed *terminalFeed
}

func newWatching() *watching { return &watching{open: make(map[watchKey]*watch)} }

func (w *watching) find(conn *server.Conn, id string) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[watchKey{conn, id}]
}

// add notes a watch, which takes the place of another of that connection and
// terminal.
func (w *watching) add(one *watch) {
	key := watchKey{one.conn, one.id}
	w.mu.Lock()
	old := w.open[key]
	w.open[key] = one
	w.mu.Unlock()
	if old != nil {
		old.feed.finish()
	}
}

func (w *watching) remove(one *watch) {
	key := watchKey{one.conn, one.id}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[key] == one {
		delete(w.open, key)
	}
}

// tells reports whether a connection is told of an event because it watches
// the terminal that it is of.
func (w *watching) tells(conn *server.Conn, n eventlog.Notice) bool {
	exit, ok := n.Payload.(domain.TerminalExited)
	return ok && w.find(conn, exit.TerminalID) != nil
}

// cells refuses a size that no terminal has.
func cells(param string, n *uint) error {
	if n == nil || *n <= mostCells {
		return nil
	}
	return server.InvalidParam(server.ParamError{
		Param: param, Expected: "integer up to " + strconv.Itoa(mostCells), Received: strconv.FormatUint(uint64(*n), 10),
	})
}

func orZero(n *uint) int {
	if n == nil {
		return 0
	}
	return int(*n)
}

// someCells refuses a size that no terminal has, and none.
func someCells(param string, n uint) error {
	if n == 0 {
		return server.InvalidParam(server.ParamError{Param: param, Expected: "integer from 1 on", Received: "0"})
	}
	return cells(param, &n)
}

// mostCells bounds a terminal's width and height.
const mostCells = 10_000
