// Package attach makes this terminal a window on one of the hub's: what is typed
// here goes there, and what is printed there is shown here.
package attach

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	xterm "golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Options say which terminal is attached.
type Options struct {
	Terminal string // its id; unless New

	New     bool
	Command []string // what a new one runs; empty: the user's shell
	CWD     string   // where
	Tmux    string   // the tmux session in which it runs, or ""
}

// Queue is how many pieces of output the client may keep that wait to be shown.
const Queue = 1 << 16

// A window is this terminal, while it shows another one.
type window struct {
	c     *client.Client
	in    *os.File
	out   *os.File
	side  io.Writer
	named chan struct{} // closed when id is set
	id    string
	watch bool // it is an agent's: nothing can be typed
	raw   bool // standard input is a terminal, and in raw mode
	modes modes

	lost    atomic.Bool // some output was
	showing sync.Mutex  // held while something is shown; guards modes and over
	over    bool        // nothing more is shown
	ended   chan int    // takes the program's exit code, once
	keys    chan []byte // what was typed; closed at its end
}

// errDetached says that the user has gone.
var errDetached = errors.New("detached")

// Run shows a terminal on this one (standard input and output) until its program
// ends, whose exit status it returns, or the user detaches, which is 0. What else
// there is to say goes to side.
func Run(ctx context.Context, c *client.Client, side io.Writer, o Options) (status int, err error) {
	w := &window{
		c: c, in: os.Stdin, out: os.Stdout, side: side,
		named: make(chan struct{}), ended: make(chan int, 1), keys: make(chan []byte, 256),
	}
	return w.run(ctx, o)
}

func (w *window) run(ctx context.Context, o Options) (status int, err error) {
	disconnected := make(chan struct{}, 1)
	defer w.c.OnState(func(state client.State) {
		if state != client.Connected {
			select {
			case disconnected <- struct{}{}:
			default:
			}
		}
	})()
	stop, err := w.listen(ctx)
	if err != nil {
		return 0, err
	}
	defer stop()
	if o.New {
		err = w.start(ctx, o)
	} else {
		err = w.join(ctx, o.Terminal)
	}
	if err != nil {
		return 0, err
	}
	if w.raw = term.IsTerminal(w.in); w.raw {
		before, err := xterm.MakeRaw(int(w.in.Fd()))
		if err != nil {
			return 0, fmt.Errorf("preparing the terminal: %w", err)
		}
		defer xterm.Restore(int(w.in.Fd()), before)
		w.greet()
	}
	close(w.named) // what came is shown from here on
	status, err = w.work(ctx, disconnected)
	stop()
	if w.raw {
		fmt.Fprint(w.out, w.modes.undo(), "\r\n")
	}
	if errors.Is(err, errDetached) {
		fmt.Fprintf(w.side, "— detached; the program goes on; come back with: duet-rpc attach %s\r\n", term.Line(w.id))
		return 0, nil
	}
	if w.c.Dropped() > 0 || w.lost.Load() {
		fmt.Fprint(w.side, "— some output came faster than it could be shown, and is lost\r\n")
	}
	return status, err
}

// greet says which terminal this is now, and how to leave it.
func (w *window) greet() {
	about := ""
	if w.watch {
		about = ", an agent's: what you type goes nowhere"
	}
	fmt.Fprintf(w.side, "— %s%s; C-] detaches\r\n", term.Line(w.id), about)
}

// work passes on what is typed until the program ends, with its exit status.
func (w *window) work(ctx context.Context, disconnected <-chan struct{}) (status int, err error) {
	resized, stop := term.Resized()
	defer stop()
	detached := make(chan struct{})
	go w.read(detached)
	typing, cancel := context.WithCancel(ctx)
	refused := make(chan error, 1)
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		w.write(typing, refused)
	}()
	defer func() {
		cancel()
		<-typed
	}()
	for {
		select {
		case status := <-w.ended:
			return status, nil
		case <-detached:
			return 0, errDetached
		case <-resized:
			if err := w.resize(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, client.Kind("terminal_not_found")) {
				return 0, err
			}
		case err := <-refused:
			// A terminal that has ended tells how in a moment.
			if !errors.Is(err, client.Kind("terminal_not_found")) {
				return 0, err
			}
		case <-disconnected:
			return 0, errors.New("the hub has gone")
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// start starts a program in a new terminal.
func (w *window) start(ctx context.Context, o Options) error {
	params := w.size(map[string]any{"cwd": o.CWD, "env": passedOn(os.Environ(), term.IsTerminal(w.out))})
	if len(o.Command) > 0 {
		params["shell"], params["args"] = o.Command[0], o.Command[1:]
	}
	if o.Tmux != "" {
		params["use_tmux"], params["tmux_session_name"] = true, o.Tmux
	}
	r, _, err := wire.Call[wire.Terminal](ctx, w.c, "spawn_terminal", params)
	w.id = r.ID
	return err
}

// join watches a terminal that is there.
func (w *window) join(ctx context.Context, id string) error {
	r, _, err := wire.Call[wire.Terminal](ctx, w.c, "terminal.attach", w.size(map[string]any{"terminal_id": id}))
	w.id, w.watch = id, r.ReadOnly
	return err
}

// size adds the size of this terminal to parameters, if it has one.
func (w *window) size(params map[string]any) map[string]any {
	if columns, rows, ok := term.Size(w.out); ok {
		params["cols"], params["rows"] = columns, rows
	}
	return params
}

// resize gives the terminal the size of this one.
func (w *window) resize(ctx context.Context) error {
	params := w.size(map[string]any{"terminal_id": w.id})
	if w.watch || params["cols"] == nil {
		return nil
	}
	return w.c.Call(ctx, "terminal.resize", params, nil)
}

// listen takes what the hub tells of the terminal, until stop, which waits for
// what is being shown.
func (w *window) listen(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	off := w.c.On("event", func(params json.RawMessage) {
		var n struct {
			Subscription string `json:"subscription_id"`
			Event        struct {
				Type string          `json:"type"`
				Data json.RawMessage `json:"data"`
			} `json:"event"`
		}
		if json.Unmarshal(params, &n) == nil && n.Subscription == "" {
			w.show(ctx, n.Event.Type, n.Event.Data)
		}
	})
	// Beside the terminal's own events the log has its end, which comes even
	// where this terminal is so slow that output is lost; but it may come
	// before the last output.
	_, err = w.c.Subscribe(ctx, client.SubscribeOptions{Types: []string{wire.EventTerminalExit}}, func(e client.Event) {
		time.AfterFunc(lastOutputWithin, func() { w.show(ctx, e.Type, e.Data) })
	})
	return func() {
		off()
		cancel()
		w.showing.Lock()
		defer w.showing.Unlock()
		w.over = true
	}, err
}

// lastOutputWithin is how long a terminal's last output may come behind the
// log's word of its end.
const lastOutputWithin = time.Second

// show prints what the terminal printed, as it is: what it shows is up to the
// program in it.
func (w *window) show(ctx context.Context, kind string, raw json.RawMessage) {
	select {
	case <-w.named:
	case <-ctx.Done():
		return
	}
	d := wire.DataOf(client.Event{Data: raw})
	if d.TerminalID != w.id {
		return
	}
	switch kind {
	case wire.EventTerminal:
		data := []byte(d.Data)
		if d.Encoding == "base64" {
			data, _ = base64.StdEncoding.DecodeString(d.Data) // the hub's own
		}
		w.print(data)
	case client.TypeLagged:
		w.lost.Store(true)
	case wire.EventTerminalExit:
		select {
		case w.ended <- d.ExitCode:
		default:
		}
	}
}

func (w *window) print(data []byte) {
	w.showing.Lock()
	defer w.showing.Unlock()
	if w.over {
		return
	}
	w.modes.note(data)
	if w.watch && w.raw { // it is a pipe, whose lines end in \n alone
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	}
	_, _ = w.out.Write(data)
}
