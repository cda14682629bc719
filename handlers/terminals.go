package handlers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

const (
	// terminalQueue bounds what a terminal printed and its connection has not
	// taken yet, in bytes; what is beyond it is lost, and the peer is told.
	terminalQueue = 256 << 10
	// terminalPart bounds the output in one event, in bytes.
	terminalPart = 64 << 10
	// mostCells bounds a terminal's width and height.
	mostCells = 10_000
)

// registerTerminals registers spawn_terminal (seed 002) and what belongs to it.
func registerTerminals(reg *server.Registry, d Domain) {
	t := terminals{d}
	f := executorFamily
	handle(reg, d, f, "spawn_terminal", t.spawn, server.LongRunning(),
		server.Doc("Starts a program in a terminal. What it prints comes as events terminal_output, its end as terminal_exit, to this connection without a subscription."))
	handle(reg, d, f, "terminal.write", t.write, server.Doc("Types into a terminal."))
	handle(reg, d, f, "terminal.resize", t.resize, server.Doc("Changes a terminal's size."))
	handle(reg, d, f, "terminal.close", t.close, server.Doc("Closes a terminal and ends what runs in it."))
}

type terminals struct{ Domain }

type spawnParams struct {
	SessionToken    string            `json:"session_token,omitempty" doc:"Optional; one that is wrong is refused."`
	CWD             string            `json:"cwd,omitempty" doc:"The directory in which it starts; absent: the project's root."`
	Shell           string            `json:"shell,omitempty" doc:"The program; absent: the user's shell."`
	Args            []string          `json:"args,omitempty" doc:"Arguments of the program."`
	Env             map[string]string `json:"env,omitempty" doc:"Its environment, beyond what every terminal gets."`
	UseTmux         bool              `json:"use_tmux,omitempty" doc:"Run tmux, so that the terminal outlives us."`
	TmuxSessionName string            `json:"tmux_session_name,omitempty" doc:"The tmux session: joined if it is there."`
	TmuxWindowName  string            `json:"tmux_window_name,omitempty" doc:"The tmux window."`
	Cols            *uint             `json:"cols,omitempty" doc:"Columns; 80 unless above 0."`
	Rows            *uint             `json:"rows,omitempty" doc:"Rows; 24 unless above 0."`
}

func (p spawnParams) check() error { return first(cells("cols", p.Cols), cells("rows", p.Rows)) }

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

type spawnResult struct {
	TerminalID string `json:"terminal_id"`
	PTYPID     int    `json:"pty_pid" doc:"The process in the terminal."`
}

func (t terminals) spawn(ctx context.Context, h *hub.Hub, p spawnParams) (spawnResult, error) {
	if err := checkToken(h, p.SessionToken); err != nil {
		return spawnResult{}, err
	}
	conn := server.ConnFrom(ctx)
	feed := newTerminalFeed(conn.Framing().String(), conn.MaxMessage(), conn.Send, t.Logger)
	r, err := h.SpawnTerminal(ctx, catalog.SpawnTerminalParams{
		SessionToken: p.SessionToken, CWD: p.CWD, Shell: p.Shell, Env: p.Env, UseTmux: p.UseTmux,
		TmuxSessionName: p.TmuxSessionName, TmuxWindowName: p.TmuxWindowName, Cols: orZero(p.Cols), Rows: orZero(p.Rows), Args: p.Args,
	}, feed.put)
	if err != nil {
		return spawnResult{}, err
	}
	alive := context.WithoutCancel(ctx) // the terminal outlives the request
	server.AfterReply(ctx, func() { go feed.run(alive, conn.Done()) })
	return spawnResult{r.TerminalID, r.PTYPID}, nil
}

// An encoding is how a terminal's bytes are written as a string.
type encoding string

// Accepted implements server.Enum.
func (encoding) Accepted() []string { return []string{"utf-8", "base64"} }

type writeParams struct {
	TerminalID string   `json:"terminal_id" doc:"The terminal."`
	Data       string   `json:"data" doc:"What to type."`
	Encoding   encoding `json:"encoding,omitempty" doc:"Of data; utf-8 unless told."`
}

func (p writeParams) check() error {
	if err := need("terminal_id", p.TerminalID); err != nil {
		return err
	}
	if p.Encoding == "base64" {
		if _, err := base64.StdEncoding.DecodeString(p.Data); err != nil {
			return server.InvalidParam(server.ParamError{Param: "data", Expected: "base64", Received: "something else"})
		}
	}
	return nil
}

func (terminals) write(ctx context.Context, h *hub.Hub, p writeParams) (success, error) {
	err := h.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: p.TerminalID, Data: p.Data, Encoding: string(p.Encoding)})
	return success{err == nil}, err
}

type resizeParams struct {
	TerminalID string `json:"terminal_id" doc:"The terminal."`
	Cols       uint   `json:"cols" doc:"Columns, from 1 on."`
	Rows       uint   `json:"rows" doc:"Rows, from 1 on."`
}

func (p resizeParams) check() error {
	if err := need("terminal_id", p.TerminalID); err != nil {
		return err
	}
	return first(someCells("cols", p.Cols), someCells("rows", p.Rows))
}

// someCells refuses a size that no terminal has, and none.
func someCells(param string, n uint) error {
	if n == 0 {
		return server.InvalidParam(server.ParamError{Param: param, Expected: "integer from 1 on", Received: "0"})
	}
	return cells(param, &n)
}

func (terminals) resize(ctx context.Context, h *hub.Hub, p resizeParams) (success, error) {
	err := h.TerminalResize(ctx, catalog.TerminalResizeParams{TerminalID: p.TerminalID, Cols: int(p.Cols), Rows: int(p.Rows)})
	return success{err == nil}, err
}

type closeParams struct {
	TerminalID string `json:"terminal_id" doc:"The terminal."`
}

func (p closeParams) check() error { return need("terminal_id", p.TerminalID) }

type closeResult struct {
	Closed bool `json:"closed"`
}

func (terminals) close(ctx context.Context, h *hub.Hub, p closeParams) (closeResult, error) {
	r, err := h.TerminalClose(ctx, catalog.TerminalCloseParams{TerminalID: p.TerminalID})
	return closeResult{r.Closed}, err
}

// A terminalFeed is what one terminal has to tell its connection: a bounded
// queue in which adjacent output is joined, and a goroutine (run) that sends
// from it at the pace of the peer.
type terminalFeed struct {
	dialect string
	room    int // of a message, in bytes; 0: no limit
	send    func(ctx context.Context, message any) error
	log     *slog.Logger

	wake chan struct{} // something was queued

	mu    sync.Mutex // guards the fields below
	queue []terminalPiece
	bytes int // of output in queue
	ended bool
}

// A terminalPiece is output, or a gap in it, or another event as it is.
type terminalPiece struct {
	id       string
	encoding string
	output   []byte
	dropped  int
	time     time.Time
	event    *hub.Notice
}

func newTerminalFeed(dialect string, room int, send func(context.Context, any) error, log *slog.Logger) *terminalFeed {
	return &terminalFeed{dialect: dialect, room: room, send: send, log: log, wake: make(chan struct{}, 1)}
}

// put queues an event of the terminal, without waiting.
func (f *terminalFeed) put(n hub.Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	if n.Type == hub.EventTerminal {
		f.putOutput(n)
	} else {
		f.queue = append(f.queue, terminalPiece{event: &n})
		f.ended = n.Type == hub.EventTerminalExit
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *terminalFeed) putOutput(n hub.Notice) {
	var p catalog.TerminalOutputParams
	if json.Unmarshal(n.Data, &p) != nil {
		return
	}
	output := []byte(p.Data)
	if p.Encoding == "base64" {
		decoded, err := base64.StdEncoding.DecodeString(p.Data)
		if err != nil {
			return
		}
		output = decoded
	} else {
		p.Encoding = "utf-8"
	}
	last := f.last()
	if f.bytes+len(output) > terminalQueue {
		if last == nil || last.dropped == 0 {
			f.queue = append(f.queue, terminalPiece{id: p.TerminalID, time: n.Time})
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
	f.queue = append(f.queue, terminalPiece{id: p.TerminalID, encoding: p.Encoding, output: output, time: n.Time})
}

func (f *terminalFeed) last() *terminalPiece {
	if len(f.queue) == 0 {
		return nil
	}
	return &f.queue[len(f.queue)-1]
}

// run sends until the terminal has ended or the connection has.
func (f *terminalFeed) run(ctx context.Context, done <-chan struct{}) {
	defer f.finish()
	for {
		piece, more := f.take()
		if piece == nil {
			if !more {
				return
			}
			select {
			case <-f.wake:
			case <-done:
				return
			}
			continue
		}
		if sendEvent(ctx, f.send, f.dialect, "", f.room, piece.notice()) != nil {
			return
		}
	}
}

// take takes the first piece off the queue; if there is none, more says
// whether one may come.
func (f *terminalFeed) take() (piece *terminalPiece, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return nil, !f.ended
	}
	first := f.queue[0]
	f.queue = f.queue[1:]
	f.bytes -= len(first.output)
	return &first, true
}

// finish lets go of what nobody will take.
func (f *terminalFeed) finish() {
	f.mu.Lock()
	f.ended, f.queue = true, nil
	f.mu.Unlock()
}

// terminalLag tells of output that was lost.
type terminalLag struct {
	TerminalID   string `json:"terminal_id"`
	DroppedBytes int    `json:"dropped_bytes"`
}

// notice is the piece as an event.
func (p terminalPiece) notice() hub.Notice {
	if p.event != nil {
		return *p.event
	}
	n := hub.Notice{Type: hub.EventTerminal, Time: p.time}
	var data any = catalog.TerminalOutputParams{TerminalID: p.id, Data: string(p.output), Encoding: p.encoding}
	switch {
	case p.dropped > 0:
		n.Type, data = hub.EventLagged, terminalLag{p.id, p.dropped}
	case p.encoding == "base64":
		data = catalog.TerminalOutputParams{TerminalID: p.id, Data: base64.StdEncoding.EncodeToString(p.output), Encoding: p.encoding}
	}
	n.Data, _ = json.Marshal(data) // strings and numbers: it cannot fail
	return n
}
