package handlers

import (
	"cmp"
	"context"
	"encoding/base64"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/terminal"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerTerminals registers the methods of terminals.
func registerTerminals(reg *server.Registry, d Domain, w *watching) {
	t := terminals{d, w}
	f := nativeFamily
	handle(reg, d, f, "terminal.start", t.start, server.LongRunning(),
		server.Doc("Starts a program in a terminal, and watches it as terminal.attach does. The terminal ends with the daemon, unless it is "+
			"one of tmux."))
	handle(reg, d, f, "terminal.list", t.list, server.Doc("Lists the running terminals, also those of agents, the oldest first."))
	handle(reg, d, f, "terminal.attach", t.attach, server.LongRunning(),
		server.Doc("Watches a terminal: this connection gets its recent output, further output and its end as events. Any number of "+
			"connections can watch a terminal. An agent's terminal can only be watched."))
	handle(reg, d, f, "terminal.detach", t.detach, server.LongRunning(),
		server.Doc("Ends the watch that terminal.start or terminal.attach started for this connection. The program continues. If the client "+
			"has the descriptor, it must stop reading it before this call."))
	handle(reg, d, f, "terminal.write", t.write, server.Doc("Sends input to a terminal. The connection need not watch it."))
	handle(reg, d, f, "terminal.resize", t.resize, server.Doc("Changes a terminal's size for all connections that watch it."))
	handle(reg, d, f, "terminal.close", t.close, server.Doc("Closes a terminal and ends its program."))
}

type terminals struct {
	Domain
	watching *watching
}

func checkTerminal(p protocol.StartTerminalParams) error {
	return cmp.Or(cells("cols", p.Cols), cells("rows", p.Rows), checkEnv(p.Env))
}

// checkEnv refuses variables that no environment can have.
func checkEnv(env map[string]string) error {
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return server.InvalidParam(server.ParamError{
				Param: "env", Expected: "names that are not empty and have no =, and nothing with a NUL",
				Received: strconv.Quote(protocol.Headline(name, promptShown)),
			})
		}
	}
	return nil
}

func (t terminals) start(ctx context.Context, h *hub.Hub, p protocol.StartTerminalParams) (protocol.StartTerminalResult, error) {
	if err := checkDescriptor(ctx, p.Descriptor); err != nil {
		return protocol.StartTerminalResult{}, err
	}
	feed := t.newFeed(ctx, cmp.Or(p.Form, protocol.Native))
	view, err := h.Terminals().Spawn(ctx, catalog.SpawnTerminalParams{
		CWD: p.CWD, Shell: p.Program, Env: p.Env, UseTmux: p.UseTmux,
		TmuxSessionName: p.TmuxSessionName, TmuxWindowName: p.TmuxWindowName, Cols: orZero(p.Cols), Rows: orZero(p.Rows), Args: p.Args,
		Descriptor: p.Descriptor,
	}, feed.put)
	if err != nil {
		return protocol.StartTerminalResult{}, err
	}
	return protocol.StartTerminalResult{TerminalID: view.Terminal.ID, PTYPID: view.Terminal.PID}, t.begin(ctx, view, feed)
}

func checkWrite(p protocol.WriteTerminalParams) error {
	if err := protocol.NotEmpty("terminal_id", p.TerminalID); err != nil {
		return err
	}
	if _, err := catalog.DecodeBytes(p.Data, string(p.Encoding)); err != nil {
		return server.InvalidParam(server.ParamError{Param: "data", Expected: "base64", Received: "something else"})
	}
	return nil
}

func (terminals) write(ctx context.Context, h *hub.Hub, p protocol.WriteTerminalParams) (protocol.Success, error) {
	err := h.Terminals().Write(ctx, catalog.TerminalWriteParams{TerminalID: p.TerminalID, Data: p.Data, Encoding: string(p.Encoding)})
	return protocol.Success{Success: err == nil}, err
}

func checkResize(p protocol.ResizeTerminalParams) error {
	if err := protocol.NotEmpty("terminal_id", p.TerminalID); err != nil {
		return err
	}
	return cmp.Or(someCells("cols", p.Cols), someCells("rows", p.Rows))
}

func (terminals) resize(ctx context.Context, h *hub.Hub, p protocol.ResizeTerminalParams) (protocol.Success, error) {
	err := h.Terminals().Resize(ctx, catalog.TerminalResizeParams{TerminalID: p.TerminalID, Cols: int(p.Cols), Rows: int(p.Rows)})
	return protocol.Success{Success: err == nil}, err
}

func (terminals) close(ctx context.Context, h *hub.Hub, p protocol.CloseTerminalParams) (protocol.CloseTerminalResult, error) {
	r, err := h.Terminals().End(ctx, catalog.TerminalCloseParams{TerminalID: p.TerminalID})
	return protocol.CloseTerminalResult{Closed: r.Closed}, err
}

func infoOf(t terminal.Info) protocol.Terminal {
	i := protocol.Terminal{
		TerminalID: t.ID, PTYPID: t.PID, Program: t.Program, Args: append([]string{}, t.Args...), CWD: t.CWD,
		Cols: t.Cols, Rows: t.Rows, TmuxSession: t.Tmux, ReadOnly: t.OfAgent, Attached: t.Views, Taken: t.Taken, StartedAt: t.Started.UTC(),
	}
	if t.Turn != nil {
		i.Turn, i.TurnUUID = t.Turn.Name(), t.Turn.HumanLayerSession
	}
	return i
}

func (terminals) list(ctx context.Context, h *hub.Hub, _ struct{}) (protocol.TerminalList, error) {
	list := []*protocol.Terminal{}
	for _, t := range h.Terminals().List() {
		i := infoOf(t)
		list = append(list, &i)
	}
	return protocol.TerminalList{Terminals: protocol.Fit(list, protocol.Room(ctx))}, nil
}

func checkAttach(p protocol.AttachTerminalParams) error {
	return cmp.Or(protocol.NotEmpty("terminal_id", p.TerminalID), cells("cols", p.Cols), cells("rows", p.Rows))
}

func (t terminals) attach(ctx context.Context, h *hub.Hub, p protocol.AttachTerminalParams) (protocol.AttachTerminalResult, error) {
	if err := checkDescriptor(ctx, p.Descriptor); err != nil {
		return protocol.AttachTerminalResult{}, err
	}
	params := terminal.AttachParams{Cols: orZero(p.Cols), Rows: orZero(p.Rows), Descriptor: p.Descriptor}
	if old := t.watching.find(server.ConnFrom(ctx), p.TerminalID); old != nil {
		params.Replaces = old.view
	}
	feed := t.newFeed(ctx, protocol.Native)
	view, err := h.Terminals().Attach(ctx, p.TerminalID, params, feed.put)
	if err != nil {
		return protocol.AttachTerminalResult{}, err
	}
	r := protocol.AttachTerminalResult{Terminal: infoOf(view.Terminal)}
	if p.Descriptor {
		data, in := catalog.EncodeBytes(view.Recent)
		r.Recent, r.RecentEncoding = data, protocol.Encoding(in)
	}
	return r, t.begin(ctx, view, feed)
}

func (t terminals) detach(ctx context.Context, _ *hub.Hub, p protocol.CloseTerminalParams) (protocol.DetachTerminalResult, error) {
	w := t.watching.find(server.ConnFrom(ctx), p.TerminalID)
	if w == nil {
		return protocol.DetachTerminalResult{}, nil
	}
	t.watching.remove(w)
	w.feed.finish()
	w.view.Close()
	return protocol.DetachTerminalResult{Detached: true}, nil
}

// checkDescriptor refuses a request for a descriptor on a connection that cannot pass one.
func checkDescriptor(ctx context.Context, wanted bool) error {
	if !wanted || server.CanReplyFile(ctx) {
		return nil
	}
	return server.InvalidParam(server.ParamError{
		Param: "descriptor", Expected: "to be left out: only a single request on a Unix socket of the hub can get a descriptor", Received: "true",
	})
}

// newFeed returns a feed for the connection of the request.
func (t terminals) newFeed(ctx context.Context, form *protocol.EventForm) *terminalFeed {
	conn := server.ConnFrom(ctx)
	return newTerminalFeed(form, conn.MaxMessage(), conn.Send, t.Logger)
}

// begin starts a watch after the reply. It ends with the terminal, the connection or terminal.detach.
func (t terminals) begin(ctx context.Context, view *terminal.View, feed *terminalFeed) error {
	if view.File != nil {
		if err := server.ReplyFile(ctx, view.File); err != nil {
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

// show sends a terminal's output until the terminal, the connection or the watch ends.
func (t terminals) show(ctx context.Context, w *watch) {
	defer t.watching.remove(w)
	w.feed.run(ctx)
	w.view.Close()
	if w.feed.exitQueued() {
		select { // the event of the log must not repeat the terminal's end, see watching.covers
		case <-ctx.Done():
		case <-time.After(exitEchoWithin):
		}
	}
}

// exitEchoWithin is how much later than the terminal's end the log's event of it may come.
const exitEchoWithin = time.Minute

// watching stores which connections watch which terminals.
type watching struct {
	mu   sync.Mutex // guards open
	open map[watchKey]*watch
}

type watchKey struct {
	conn *server.Conn
	id   string
}

// A watch is one connection's watch of a terminal.
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

// add stores a watch. It ends and replaces another one of the same connection and terminal.
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

// covers reports whether a connection gets an event by its watch of the terminal.
func (w *watching) covers(conn *server.Conn, n eventlog.Notice) bool {
	exit, ok := n.Payload.(domain.TerminalExited)
	return ok && w.find(conn, exit.TerminalID) != nil
}

// cells refuses a width or height over mostCells.
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

// someCells refuses 0, and a width or height over mostCells.
func someCells(param string, n uint) error {
	if n == 0 {
		return server.InvalidParam(server.ParamError{Param: param, Expected: "integer from 1 on", Received: "0"})
	}
	return cells(param, &n)
}

// mostCells limits a terminal's width and height, in cells.
const mostCells = 10_000

const (
	// terminalQueue limits the queued output of a terminal, in bytes. Further output is lost, and the
	// client gets the event lagged.
	terminalQueue = 256 << 10
	// terminalPatience is how long the terminal waits for a connection with a full queue. After that,
	// it does not wait again until the queue is empty. All reports of its executor wait meanwhile.
	terminalPatience = 250 * time.Millisecond
	// terminalPart limits the output in one event, in bytes.
	terminalPart = 64 << 10
)

// A terminalFeed sends the events of a terminal to one connection: a bounded queue, in which adjacent
// output is joined, and a goroutine (run) that sends as fast as the peer reads.
type terminalFeed struct {
	form *protocol.EventForm
	room int // of a message, in bytes; 0: no limit
	send func(ctx context.Context, messages ...any) error
	log  *slog.Logger

	wake  chan struct{} // signals a new piece in the queue
	space chan struct{} // signals free space in the queue, or the end of the feed

	mu     sync.Mutex // guards the fields below
	queue  []terminalPiece
	bytes  int  // of output in queue
	behind bool // the wait for space timed out; false again when the queue is empty
	ended  bool
	exit   bool // the last piece that was queued is the terminal's end
}

// A terminalPiece is output, a gap in it, or another event.
type terminalPiece struct {
	id       string
	encoding string
	output   []byte
	dropped  int
	time     time.Time
	event    *domain.Event
}

func newTerminalFeed(form *protocol.EventForm, room int, send func(context.Context, ...any) error, log *slog.Logger) *terminalFeed {
	return &terminalFeed{form: form, room: room, send: send, log: log, wake: make(chan struct{}, 1), space: make(chan struct{}, 1)}
}

// put queues an event of the terminal. It waits for space for output, at most terminalPatience.
func (f *terminalFeed) put(e domain.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	if p, ok := e.Payload.(domain.TerminalPrinted); ok {
		f.putOutput(p, e.Time)
	} else {
		f.queue = append(f.queue, terminalPiece{event: &e})
		f.exit = e.Payload.Kind() == domain.EventTerminalExit
		f.ended = f.exit
	}
	nudge(f.wake)
}

func (f *terminalFeed) putOutput(p domain.TerminalPrinted, at time.Time) {
	output, err := catalog.DecodeBytes(p.Data, p.Encoding)
	if p.Encoding != catalog.EncodingBase64 {
		p.Encoding = catalog.EncodingUTF8
	} else if err != nil {
		return
	}
	f.waitForRoom(len(output))
	last := f.last()
	if f.bytes+len(output) > terminalQueue {
		if last == nil || last.dropped == 0 {
			f.queue = append(f.queue, terminalPiece{id: p.TerminalID, time: at})
			last = f.last()
			f.log.Warn("output of a terminal is lost: the peer does not read", "terminal", p.TerminalID)
		}
		last.dropped += len(output)
		return
	}
	f.bytes += len(output)
	if last != nil && last.event == nil && last.dropped == 0 && last.encoding == p.Encoding && len(last.output)+len(output) <= terminalPart {
		last.output = append(last.output, output...)
		return
	}
	f.queue = append(f.queue, terminalPiece{id: p.TerminalID, encoding: p.Encoding, output: output, time: at})
}

// waitForRoom waits until n bytes fit into the queue. It does not wait if the peer is behind. The
// caller holds f.mu, which is released during the wait.
func (f *terminalFeed) waitForRoom(n int) {
	if f.behind || f.bytes+n <= terminalQueue {
		return
	}
	patience := time.NewTimer(terminalPatience)
	defer patience.Stop()
	for !f.ended && !f.behind && f.bytes+n > terminalQueue {
		late := false
		f.mu.Unlock()
		select {
		case <-f.space:
		case <-patience.C:
			late = true
		}
		f.mu.Lock()
		f.behind = late
	}
}

func (f *terminalFeed) last() *terminalPiece {
	if len(f.queue) == 0 {
		return nil
	}
	return &f.queue[len(f.queue)-1]
}

// run sends until the terminal or the connection ends.
func (f *terminalFeed) run(ctx context.Context) {
	defer f.finish()
	for {
		piece, more := f.take()
		if piece == nil {
			if !more {
				return
			}
			select {
			case <-f.wake:
			case <-ctx.Done():
				return
			}
			continue
		}
		if sendEvent(ctx, f.send, f.form, "", f.room, piece.asEvent()) != nil {
			return
		}
	}
}

// exitQueued reports whether the terminal's end was sent or is queued.
func (f *terminalFeed) exitQueued() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.exit
}

// take removes and returns the first piece of the queue. If there is none, piece is nil, and more
// reports whether one may come.
func (f *terminalFeed) take() (piece *terminalPiece, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		f.behind = false
		return nil, !f.ended
	}
	first := f.queue[0]
	f.queue = f.queue[1:]
	f.bytes -= len(first.output)
	nudge(f.space)
	return &first, true
}

// finish drops the queue and ends run.
func (f *terminalFeed) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.queue = true, nil
	nudge(f.wake)
	nudge(f.space)
}

// nudge wakes a goroutine that waits on c, or the next one that will.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// asEvent converts the piece to an event.
func (p terminalPiece) asEvent() domain.Event {
	if p.event != nil {
		return *p.event
	}
	e := domain.Event{Time: p.time}
	switch {
	case p.dropped > 0:
		e.Payload = domain.TerminalLagged{TerminalID: p.id, Dropped: p.dropped}
	case p.encoding == catalog.EncodingBase64: // even if the joined output is UTF-8
		e.Payload = domain.TerminalPrinted{TerminalID: p.id, Data: base64.StdEncoding.EncodeToString(p.output), Encoding: p.encoding}
	default:
		e.Payload = domain.TerminalPrinted{TerminalID: p.id, Data: string(p.output), Encoding: p.encoding}
	}
	return e
}

func provideSecret(_ context.Context, h *hub.Hub, p protocol.ProvideSecretParams) (protocol.Success, error) {
	err := h.Keys().Provide(p.RequestID, p.Secret)
	return protocol.Success{Success: err == nil}, err
}
