package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
)

const attachHelp = `Work in a terminal of the project's hub, as if it were this one: what you type
goes there, what it prints comes here, and it has this one's size. C-] detaches,
and the program goes on. Any number of people may be attached to a terminal; it
has the size of whoever came, or changed theirs, last.

Without TERMINAL the terminals are listed. An agent's can be watched, and no more.

--new starts a program in a new terminal, your shell unless a command is given;
with --tmux NAME in a tmux session, which another attach --new --tmux NAME joins.
It gets TERM, EDITOR, SSH_AUTH_SOCK and the like as they are here.

You first see what the terminal printed lately. If standard input is no
terminal, it is typed, and then C-d.

Exit status: that of the program; 128 and more if a signal ended it; 0 if you
detached; 1 if there is no such terminal, or no hub runs here, or it has gone.`

// detachKey is C-], as telnet has it.
const detachKey = "\x1d"

// attachOptions are the flags of the command.
type attachOptions struct {
	start bool
	cwd   string
	tmux  string
}

func newAttachCommand(s *settings) *cobra.Command {
	var o attachOptions
	cmd := &cobra.Command{
		Use:     "attach [TERMINAL] | attach --new [COMMAND...]",
		Short:   "Work in a terminal of the project's hub",
		Long:    attachHelp,
		Example: "  duet-rpc attach --new\n  duet-rpc attach --new -- ls -la\n  duet-rpc attach --new --tmux work",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.start || len(args) == 0 {
				return nil
			}
			return exactly("TERMINAL (or --new)")(cmd, args)
		},
		ValidArgsFunction: completeFirst(s, terminalIDs),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.cwd == "" {
				o.cwd = "."
			}
			if o.cwd, err = fullPath(o.cwd); err != nil {
				return err
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				if !o.start && len(args) == 0 {
					return listTerminals(ctx, cmd, s, c)
				}
				a := &attached{c: c, out: os.Stdout, named: make(chan struct{}), ended: make(chan int, 1), keys: make(chan []byte, 256)}
				return a.run(ctx, cmd, o, args)
			}, client.WithQueue(outputQueue))
		},
	}
	cmd.Flags().BoolVar(&o.start, "new", false, "start a program in a new terminal")
	cmd.Flags().StringVar(&o.cwd, "cwd", "", "the directory in which a new one starts (default: this one)")
	cmd.Flags().StringVar(&o.tmux, "tmux", "", "the tmux session in which a new one runs")
	cmd.Flags().SetInterspersed(false) // flags behind the command are the command's
	return cmd
}

// attached is this terminal, while it is a window on another one.
type attached struct {
	c     *client.Client
	out   io.Writer
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

// outputQueue is how many pieces of output may wait to be shown.
const outputQueue = 1 << 16

// errDetached says that the user has gone.
var errDetached = errors.New("detached")

func (a *attached) run(ctx context.Context, cmd *cobra.Command, o attachOptions, args []string) error {
	gone := make(chan struct{}, 1)
	defer a.c.OnState(func(state client.State) {
		if state != client.Connected {
			select {
			case gone <- struct{}{}:
			default:
			}
		}
	})()
	raw := term.IsTerminal(int(os.Stdin.Fd()))
	stop, err := a.listen(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if o.start {
		err = a.start(ctx, o, args)
	} else {
		err = a.join(ctx, args[0])
	}
	if err != nil {
		return err
	}
	if raw {
		before, err := term.MakeRaw(int(os.Stdin.Fd()))
		if err != nil {
			return fmt.Errorf("preparing the terminal: %w", err)
		}
		defer term.Restore(int(os.Stdin.Fd()), before)
		a.greet(cmd.ErrOrStderr())
	}
	a.raw = raw
	close(a.named) // what came is shown from here on
	err = a.work(ctx, gone, raw)
	stop()
	if raw {
		fmt.Fprint(a.out, a.modes.undo(), "\r\n")
	}
	if errors.Is(err, errDetached) {
		fmt.Fprintf(cmd.ErrOrStderr(), "— detached; it goes on: duet-rpc attach %s\r\n", oneLine(a.id))
		return nil
	}
	if a.c.Dropped() > 0 || a.lost.Load() {
		fmt.Fprint(cmd.ErrOrStderr(), "— some output came faster than it could be shown, and is lost\r\n")
	}
	return err
}

// work passes on what is typed until the program ends.
func (a *attached) work(ctx context.Context, gone <-chan struct{}, raw bool) error {
	resized, stop := windowChanges()
	defer stop()
	detached := make(chan struct{})
	go a.read(os.Stdin, raw, detached)
	typing, cancel := context.WithCancel(ctx)
	refused := make(chan error, 1)
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		a.write(typing, refused)
	}()
	defer func() {
		cancel()
		<-typed
	}()
	for {
		select {
		case code := <-a.ended:
			if code != 0 {
				return exitStatus(code)
			}
			return nil
		case <-detached:
			return errDetached
		case <-resized:
			if err := a.resize(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, client.Kind("terminal_not_found")) {
				return err
			}
		case err := <-refused:
			// A terminal that has ended tells how in a moment.
			if !errors.Is(err, client.Kind("terminal_not_found")) {
				return err
			}
		case <-gone:
			return errors.New("the hub has gone")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// start starts a program in a new terminal.
func (a *attached) start(ctx context.Context, o attachOptions, args []string) error {
	params := map[string]any{"cwd": o.cwd}
	if cols, rows, err := term.GetSize(int(os.Stdout.Fd())); err == nil && cols > 0 && rows > 0 {
		params["cols"], params["rows"] = cols, rows
	}
	params["env"] = newTerminalEnvironment(os.Environ(), term.IsTerminal(int(os.Stdout.Fd())))
	if len(args) > 0 {
		params["shell"], params["args"] = args[0], args[1:]
	}
	if o.tmux != "" {
		params["use_tmux"], params["tmux_session_name"] = true, o.tmux
	}
	r, _, err := ask[struct {
		TerminalID string `json:"terminal_id"`
	}](ctx, a.c, "spawn_terminal", params)
	if err != nil {
		return err
	}
	a.id = r.TerminalID
	return nil
}

// ofTerminal are the variables that tell programs what this terminal can do, and
// which emulator it is. Its size is not among them: others may be attached.
var ofTerminal = []string{
	"TERM", "TERMINFO", "TERMINFO_DIRS", "TERMCAP", "COLORTERM",
	"INSIDE_EMACS", "EMACS_VTERM_PATH", "EAT_SHELL_INTEGRATION_DIR",
}

// ofUser are the variables that are the same in all terminals of a user. The
// hub may lack them: an editor or a daemon has started it.
var ofUser = []string{
	"USER", "LOGNAME", "EDITOR", "VISUAL", "PAGER", "SSH_AUTH_SOCK",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "LANG",
}

// newTerminalEnvironment is what of this environment, NAME=VALUE each, a
// terminal gets that somebody starts by hand; more if this is a terminal.
func newTerminalEnvironment(environ []string, isTerminal bool) map[string]string {
	env := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		passed := slices.Contains(ofUser, name) || strings.HasPrefix(name, "LC_") ||
			isTerminal && slices.Contains(ofTerminal, name)
		if passed && value != "" {
			env[name] = value
		}
	}
	return env
}

// listen takes what the hub tells of the terminal, until stop, which waits for
// what is being shown.
func (a *attached) listen(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	off := a.c.On("event", func(params json.RawMessage) {
		var n struct {
			Subscription string `json:"subscription_id"`
			Event        struct {
				Type string          `json:"type"`
				Data json.RawMessage `json:"data"`
			} `json:"event"`
		}
		if json.Unmarshal(params, &n) == nil && n.Subscription == "" {
			a.show(ctx, n.Event.Type, n.Event.Data)
		}
	})
	// Beside the terminal's own events the log has its end, which comes even
	// where this terminal is so slow that output is lost; but it may come
	// before the last output.
	_, err = a.c.Subscribe(ctx, client.SubscribeOptions{Types: []string{dialect.TypeTerminalExit}}, func(e client.Event) {
		time.AfterFunc(lastOutputWithin, func() { a.show(ctx, e.Type, e.Data) })
	})
	return func() {
		off()
		cancel()
		a.showing.Lock()
		defer a.showing.Unlock()
		a.over = true
	}, err
}

// lastOutputWithin is how long a terminal's last output may come behind the
// log's word of its end.
const lastOutputWithin = time.Second

// join watches a terminal that is there.
func (a *attached) join(ctx context.Context, id string) error {
	params := map[string]any{"terminal_id": id}
	if cols, rows, err := term.GetSize(int(os.Stdout.Fd())); err == nil && cols > 0 && rows > 0 {
		params["cols"], params["rows"] = cols, rows
	}
	r, _, err := ask[listedTerminal](ctx, a.c, "terminal.attach", params)
	a.id, a.watch = id, r.ReadOnly
	return err
}

// resize gives the terminal the size of this one.
func (a *attached) resize(ctx context.Context) error {
	cols, rows, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || cols <= 0 || rows <= 0 || a.watch {
		return nil
	}
	return a.c.Call(ctx, "terminal.resize", map[string]any{"terminal_id": a.id, "cols": cols, "rows": rows}, nil)
}

// show prints what the terminal printed, as it is: what it shows is up to the
// program in it.
func (a *attached) show(ctx context.Context, kind string, raw json.RawMessage) {
	select {
	case <-a.named:
	case <-ctx.Done():
		return
	}
	var d struct {
		TerminalID string `json:"terminal_id"`
		Data       string `json:"data"`
		Encoding   string `json:"encoding"`
		ExitCode   int    `json:"exit_code"`
	}
	if json.Unmarshal(raw, &d) != nil || d.TerminalID != a.id {
		return
	}
	switch kind {
	case dialect.TypeTerminal:
		data := []byte(d.Data)
		if d.Encoding == "base64" {
			data, _ = base64.StdEncoding.DecodeString(d.Data) // the hub's own
		}
		a.print(data)
	case dialect.TypeLagged:
		a.lost.Store(true)
	case dialect.TypeTerminalExit:
		select {
		case a.ended <- d.ExitCode:
		default:
		}
	}
}

func (a *attached) print(data []byte) {
	a.showing.Lock()
	defer a.showing.Unlock()
	if a.over {
		return
	}
	a.modes.note(data)
	if a.watch && a.raw { // it is a pipe, whose lines end in \n alone
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	}
	_, _ = a.out.Write(data)
}

// read reads what is typed. It ends with the process: nothing else ends a read
// of a terminal.
func (a *attached) read(in io.Reader, raw bool, detached chan<- struct{}) {
	defer close(a.keys)
	keys := detachKey
	if a.watch {
		keys += "\x03" // C-c has nothing else to end
	}
	buffer := make([]byte, 16<<10)
	for {
		n, err := in.Read(buffer)
		data := buffer[:n]
		if at := bytes.IndexAny(data, keys); raw && at >= 0 {
			if at > 0 {
				a.keys <- bytes.Clone(data[:at])
			}
			close(detached)
			return
		}
		if n > 0 {
			a.keys <- bytes.Clone(data)
		}
		if err != nil {
			if !raw {
				a.keys <- []byte{4} // C-d: programs see the end of their input
			}
			return
		}
	}
}

// write types into the terminal what was typed here.
func (a *attached) write(ctx context.Context, refused chan<- error) {
	for {
		select {
		case <-ctx.Done():
			return
		case data, more := <-a.keys:
			if !more {
				return
			}
			if a.watch {
				continue
			}
			err := a.c.Call(ctx, "terminal.write", map[string]string{
				"terminal_id": a.id, "data": base64.StdEncoding.EncodeToString(data), "encoding": "base64",
			}, nil)
			if err != nil && ctx.Err() == nil {
				refused <- err
				return
			}
		}
	}
}
