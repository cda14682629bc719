package cli

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
	xterm "golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const attachHelp = `Work in a terminal of the project's daemon as if it were this one: what you type
goes there, and what it prints appears here. C-] detaches; the program continues.
Any number of people can attach to a terminal; its size is that of the one who
attached, or resized, last.

Without TERMINAL the terminals are listed. An agent's terminal can only be
watched.

--new starts a program in a new terminal, and a daemon if none runs: the given
command, else your shell. With
--tmux NAME it runs in a tmux session, which others join with the same flags. The
program gets TERM, EDITOR, SSH_AUTH_SOCK and similar variables from here.

First you see what the terminal printed last. If standard input is not a
terminal, its contents are typed there, followed by C-d.

Exit status: that of the program; 128 or more if a signal ended it; 0 if you
detached; 1 if there is no such terminal, or the daemon ended.`

func newAttachCommand(s *settings) *cobra.Command {
	var o attachOptions
	cmd := &cobra.Command{
		Use: "attach [TERMINAL] | attach --new [COMMAND...]", Annotations: begins(),
		Short:   "Work in a terminal of the project's daemon",
		Long:    attachHelp,
		Example: "  duet-rpc attach --new\n  duet-rpc attach --new -- ls -la\n  duet-rpc attach --new --tmux work",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.New || len(args) == 0 {
				return nil
			}
			return exactly("TERMINAL (or --new)")(cmd, args)
		},
		ValidArgsFunction: completeFirst(s, terminalCandidates),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.CWD == "" && s.Host == "" {
				o.CWD = "."
			}
			if o.CWD, err = s.fullPath(o.CWD); err != nil {
				return err
			}
			if o.New {
				o.Command = args
			} else if len(args) > 0 {
				o.Terminal = args[0]
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				if !o.New && o.Terminal == "" {
					return listTerminals(ctx, cmd, s, c)
				}
				status, err := attachTo(ctx, c, cmd.ErrOrStderr(), o)
				if err == nil && status != 0 {
					err = exitStatus(status)
				}
				return err
			}, client.WithQueue(attachQueue))
		},
	}
	cmd.Flags().BoolVar(&o.New, "new", false, "start a program in a new terminal")
	cmd.Flags().StringVar(&o.CWD, "cwd", "", "the directory in which a new terminal starts (default: this one)")
	cmd.Flags().StringVar(&o.Tmux, "tmux", "", "the tmux session in which a new terminal runs")
	cmd.Flags().SetInterspersed(false) // flags after the command belong to the command
	return cmd
}

// listTerminals prints the terminals of the hub.
func listTerminals(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client) error {
	terminals, raw, err := hubclient.Terminals(ctx, c)
	if err != nil {
		return err
	}
	if s.JSON {
		return term.Raw(cmd.OutOrStdout(), raw)
	}
	if len(terminals) == 0 {
		progress(cmd, s, "no terminal runs; duet-rpc attach --new starts one")
		return nil
	}
	return printTerminals(cmd.OutOrStdout(), terminals)
}

// Attaching this terminal to a terminal of the hub.

// ofTerminal are the variables that describe this terminal and its emulator to programs. The
// size is not one of them, because other clients may be attached.
var ofTerminal = []string{
	"TERM", "TERMINFO", "TERMINFO_DIRS", "TERMCAP", "COLORTERM",
	"INSIDE_EMACS", "EMACS_VTERM_PATH", "EAT_SHELL_INTEGRATION_DIR",
}

// ofUser are variables with the same value in all terminals of a user. The hub may lack them
// if an editor or a daemon has started it.
var ofUser = []string{
	"USER", "LOGNAME", "EDITOR", "VISUAL", "PAGER", "SSH_AUTH_SOCK",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "LANG",
}

// passedOn returns the variables of environ (NAME=VALUE each) that a new terminal gets: those
// of the user, and those of this terminal if isTerminal.
func passedOn(environ []string, isTerminal bool) map[string]string {
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

// detachKey is C-], as in telnet.
const detachKey = "\x1d"

// read reads standard input until the process ends, because nothing else interrupts a read
// from a terminal.
func (w *window) read(detached chan<- struct{}) {
	defer close(w.keys)
	keys := detachKey
	if w.watch {
		keys += "\x03" // an agent's terminal takes no input, so C-c detaches, too
	}
	buffer := make([]byte, 16<<10)
	for {
		n, err := w.in.Read(buffer)
		data := buffer[:n]
		if at := bytes.IndexAny(data, keys); w.raw && at >= 0 {
			if at > 0 {
				w.keys <- bytes.Clone(data[:at])
			}
			close(detached)
			return
		}
		if n > 0 {
			w.keys <- bytes.Clone(data)
		}
		if err != nil {
			if !w.raw {
				w.keys <- []byte{4} // C-d: programs see the end of their input
			}
			return
		}
	}
}

// write sends typed keys to the terminal.
func (w *window) write(ctx context.Context, refused chan<- error) {
	for {
		select {
		case <-ctx.Done():
			return
		case data, more := <-w.keys:
			if !more {
				return
			}
			if w.watch {
				continue
			}
			err := w.c.Call(ctx, "terminal.write", map[string]string{
				"terminal_id": w.id, "data": base64.StdEncoding.EncodeToString(data), "encoding": "base64",
			}, nil)
			if err != nil && ctx.Err() == nil {
				refused <- err
				return
			}
		}
	}
}

// printTerminals prints terminals as a table.
func printTerminals(out io.Writer, terminals []protocol.Terminal) error {
	t := term.NewTable(out, "TERMINAL", "SIZE", "AGE", "COMMAND", "")
	t.Below("")
	for _, one := range terminals {
		t.Row(one.TerminalID, size(one), term.Age(one.StartedAt), command(one), users(one))
	}
	return t.Flush()
}

// describeTerminal describes a terminal in one line.
func describeTerminal(t protocol.Terminal) string {
	return strings.Trim(command(t)+" · "+users(t), " ·")
}

// size returns columns and rows, or - for a terminal that has no size.
func size(t protocol.Terminal) string {
	if t.Cols == 0 {
		return "-"
	}
	return fmt.Sprintf("%d×%d", t.Cols, t.Rows)
}

// users returns who owns the terminal and how many clients are attached.
func users(t protocol.Terminal) string {
	var list []string
	if t.ReadOnly {
		list = append(list, strings.TrimSpace("the agent of "+t.Turn))
	}
	if t.TmuxSession != "" {
		list = append(list, "tmux "+t.TmuxSession)
	}
	switch {
	case t.Taken:
		list = append(list, "taken")
	case t.Attached > 0:
		list = append(list, fmt.Sprint(t.Attached, " attached"))
	}
	return strings.Join(list, ", ")
}

func command(t protocol.Terminal) string {
	return term.Short(strings.Join(append([]string{t.Program}, t.Args...), " "))
}

// modes are terminal modes that the program has set. They are reset before this terminal
// returns to the shell.
type modes struct {
	set   []string // in the order in which they were set
	begun []byte   // an incomplete escape sequence at the end of the output so far
}

// resets maps modes to the sequences that undo them: application cursor keys, the mouse, the
// alternate screen, focus events, bracketed paste and the cursor, which is shown unless hidden
// (xterm, "DEC Private Mode Set").
var resets = map[string]string{
	"1": "l", "9": "l", "47": "l", "1000": "l", "1002": "l", "1003": "l", "1004": "l", "1005": "l", "1006": "l", "1015": "l",
	"1047": "l", "1049": "l", "2004": "l", "25": "h",
}

var (
	modeChange = lazyregexp.New(`\x1b\[\?([0-9;]+)([hl])`)
	modeBegun  = lazyregexp.New(`\x1b(\[(\?[0-9;]{0,100})?)?$`)
)

// note looks for mode changes in the output.
func (m *modes) note(output []byte) {
	output = append(m.begun, output...)
	m.begun = bytes.Clone(modeBegun().Find(output))
	for _, change := range modeChange().FindAllSubmatch(output, -1) {
		for mode := range strings.SplitSeq(string(change[1]), ";") {
			undone, known := resets[mode]
			if !known {
				continue
			}
			m.set = slices.DeleteFunc(m.set, func(other string) bool { return other == mode })
			if string(change[2]) != undone {
				m.set = append(m.set, mode)
			}
		}
	}
}

// undo returns the sequences that reset the modes, the last mode first.
func (m *modes) undo() string {
	if len(m.set) == 0 {
		return ""
	}
	var b strings.Builder
	for _, mode := range slices.Backward(m.set) {
		b.WriteString("\x1b[?" + mode + resets[mode])
	}
	b.WriteString("\x1b[m")
	return b.String()
}

// attachOptions say which terminal to attach to.
type attachOptions struct {
	Terminal string // its id; empty for a new one

	New     bool
	Command []string // of a new one; empty: the user's shell
	CWD     string   // its working directory
	Tmux    string   // the tmux session in which it runs, or ""
}

// attachQueue is how many chunks of output the client may buffer.
const attachQueue = 1 << 16

// window is this terminal while it shows a terminal of the hub.
type window struct {
	c     *client.Client
	in    *os.File
	out   *os.File
	side  io.Writer
	named chan struct{} // closed when id is set
	id    string
	watch bool // it is an agent's terminal, which takes no input
	raw   bool // standard input is a terminal, and in raw mode
	modes modes

	lost    atomic.Bool // some output was dropped
	showing sync.Mutex  // locked while output is shown; guards modes and over
	over    bool        // no more output is shown
	ended   chan int    // takes the program's exit code, once
	keys    chan []byte // typed keys; closed at the end of input
}

// errDetached says that the user has detached.
var errDetached = errors.New("detached")

// attachTo shows a terminal of the hub on this one (standard input and output). It returns the
// program's exit status when the program ends, or 0 when the user detaches. Messages go to
// side.
func attachTo(ctx context.Context, c *client.Client, side io.Writer, o attachOptions) (status int, err error) {
	w := &window{
		c: c, in: os.Stdin, out: os.Stdout, side: side,
		named: make(chan struct{}), ended: make(chan int, 1), keys: make(chan []byte, 256),
	}
	return w.run(ctx, o)
}

func (w *window) run(ctx context.Context, o attachOptions) (status int, err error) {
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
	close(w.named) // buffered output is shown from here on
	status, err = w.work(ctx, disconnected)
	stop()
	if w.raw {
		fmt.Fprint(w.out, w.modes.undo(), "\r\n")
	}
	if errors.Is(err, errDetached) {
		fmt.Fprintf(w.side, "— detached; the program is still running; come back with: duet-rpc attach %s\r\n", term.Line(w.id))
		return 0, nil
	}
	if w.c.Dropped() > 0 || w.lost.Load() {
		fmt.Fprint(w.side, "— some output is lost: it came faster than it could be shown\r\n")
	}
	return status, err
}

// greet prints which terminal this is and how to detach.
func (w *window) greet() {
	about := ""
	if w.watch {
		about = ", an agent's terminal: it takes no input"
	}
	fmt.Fprintf(w.side, "— %s%s; C-] detaches\r\n", term.Line(w.id), about)
}

// work sends typed keys until the program ends and returns its exit status.
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
			// If the terminal has ended, its exit event comes in a moment.
			if !errors.Is(err, client.Kind("terminal_not_found")) {
				return 0, err
			}
		case <-disconnected:
			return 0, errors.New("the daemon has gone")
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// start runs a program in a new terminal.
func (w *window) start(ctx context.Context, o attachOptions) error {
	params := protocol.StartTerminalParams{
		CWD: o.CWD, Env: passedOn(os.Environ(), term.IsTerminal(w.out)), UseTmux: o.Tmux != "", TmuxSessionName: o.Tmux,
	}
	params.Cols, params.Rows = w.size()
	if len(o.Command) > 0 {
		params.Program, params.Args = o.Command[0], o.Command[1:]
	}
	r, _, err := hubclient.TerminalStart(ctx, w.c, params)
	w.id = r.TerminalID
	return err
}

// join attaches to an existing terminal.
func (w *window) join(ctx context.Context, id string) error {
	params := protocol.AttachTerminalParams{TerminalID: id}
	params.Cols, params.Rows = w.size()
	r, _, err := hubclient.Call[protocol.Terminal](ctx, w.c, "terminal.attach", params)
	w.id, w.watch = id, r.ReadOnly
	return err
}

// size returns the size of this terminal; nil if it has none.
func (w *window) size() (columns, rows *uint) {
	c, r, ok := term.Size(w.out)
	if !ok {
		return nil, nil
	}
	return new(uint(c)), new(uint(r))
}

// resize gives the hub's terminal the size of this one.
func (w *window) resize(ctx context.Context) error {
	columns, rows := w.size()
	if w.watch || columns == nil {
		return nil
	}
	return w.c.Call(ctx, "terminal.resize", protocol.ResizeTerminalParams{TerminalID: w.id, Cols: *columns, Rows: *rows}, nil)
}

// listen subscribes to the terminal's events. stop ends the subscription and waits until the
// current output is shown.
func (w *window) listen(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	off := w.c.On("event", func(params json.RawMessage) {
		var n struct {
			Subscription string `json:"subscription_id"`
			eventstream.Event
		}
		if json.Unmarshal(params, &n) == nil && n.Subscription == "" {
			w.show(ctx, n.Event)
		}
	})
	// The exit event in the log arrives even if this terminal is so slow that output is
	// dropped. But it may arrive before the last output.
	_, err = eventstream.Subscribe(ctx, w.c, eventstream.Options{Kinds: []string{protocol.KindTerminalExited}}, func(e eventstream.Event) {
		time.AfterFunc(lastOutputWithin, func() { w.show(ctx, e) })
	})
	return func() {
		off()
		cancel()
		w.showing.Lock()
		defer w.showing.Unlock()
		w.over = true
	}, err
}

// lastOutputWithin is how long after the exit event a terminal's last output may arrive.
const lastOutputWithin = time.Second

// show prints the terminal's output unchanged, because the program controls the screen.
func (w *window) show(ctx context.Context, e eventstream.Event) {
	select {
	case <-w.named:
	case <-ctx.Done():
		return
	}
	switch d := hubclient.DataOf(e).(type) {
	case *protocol.TerminalOutputEvent:
		if d.TerminalID != w.id {
			return
		}
		data := []byte(d.Data)
		if d.Encoding == "base64" {
			data, _ = base64.StdEncoding.DecodeString(d.Data) // the hub encodes it correctly
		}
		w.print(data)
	case *protocol.TerminalLaggedEvent:
		if d.TerminalID == w.id {
			w.lost.Store(true)
		}
	case *protocol.TerminalExitedEvent:
		if d.TerminalID != w.id {
			return
		}
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
	if w.watch && w.raw { // a pipe, whose lines end in \n alone
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	}
	_, _ = w.out.Write(data)
}
