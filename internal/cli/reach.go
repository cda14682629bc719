package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Connecting commands to the project's hub. If none is running, a daemon is started.

// logGrace is how long a command waits at its end for its log to be written.
const logGrace = 400 * time.Millisecond

// withClient runs do with a connection to the project's hub. do handles signals. begins says
// that the command can be the first in a project.
func withClient(ctx context.Context, s *hubprocess.Settings, begins bool, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	if logging.LogsMessages(os.Getenv) {
		log := s.OpenLog()
		defer log.Close(logGrace)
		messages := log.Messages()
		opts = append(opts, client.WithTrace(func(sent bool, message []byte) { messages("hub", sent, message) }))
	}
	c, err := dialHub(ctx, s, begins, opts...)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(ctx, c)
}

// dialHub connects to the project's hub. If none is running, it starts a daemon, except when
// the project has no state and begins is false.
func dialHub(ctx context.Context, s *hubprocess.Settings, begins bool, opts ...client.Option) (*client.Client, error) {
	h, err := s.Remote()
	if err != nil {
		return nil, err
	}
	if h != nil {
		return dialHost(ctx, h, begins, opts...)
	}
	p, err := s.Project()
	if err != nil {
		return nil, err
	}
	c, err := hubprocess.Dial(ctx, s, p, opts...)
	if err == nil || !hubprocess.MayComeYet(err) {
		return c, err
	}
	if !begins && hubprocess.IsNone(err) && !p.HasDatabase() {
		return nil, fmt.Errorf("%w; `duet-rpc prompt` starts one", project.ErrNoDatabase)
	}
	if err := hubprocess.EnsureDaemon(ctx, s, p); err != nil {
		return nil, err
	}
	return hubprocess.Dial(ctx, s, p, opts...)
}

// attended is a connection to the project's hub for a command that handles signals itself and
// reconnects after the hub has ended.
type attended struct {
	*client.Client
	Interrupts <-chan os.Signal

	note        func(text string) // for the user; may be nil
	place       place
	settings    *hubprocess.Settings
	host        *hubprocess.Host // nil: this machine
	ctx         context.Context
	cancel      context.CancelFunc
	giveSignals func()
}

// openAttended connects to the hub. note, which may be nil, gets what the user should know of the project's choice and
// of a host that cannot be reached. It returns [term.ErrInterrupted] if a signal arrives
// first.
func openAttended(ctx context.Context, s *hubprocess.Settings, note func(text string)) (*attended, error) {
	a := &attended{settings: s, note: note}
	a.Interrupts, a.giveSignals = term.Interrupts()
	a.ctx, a.cancel = context.WithCancel(ctx)
	if err := a.open(); err != nil {
		a.end()
		return nil, err
	}
	return a, nil
}

// open connects, and notes how the project was chosen: on this machine before a daemon starts, which makes the
// directory a project.
func (a *attended) open() (err error) {
	if a.host, err = a.settings.Remote(); err != nil {
		return err
	}
	if a.host == nil {
		p, err := a.settings.Project()
		if err != nil {
			return err
		}
		a.place = place{name: term.HomePath(p.Root), root: p.Root, stopped: p.Stopped}
		a.tell(p.Notes)
	}
	if err := a.connect(); err != nil || a.host == nil {
		return err
	}
	root, notes := a.host.Project()
	a.place = place{name: a.host.Name + ":" + root, stopped: func() bool { return false }}
	a.tell(notes)
	return nil
}

func (a *attended) tell(notes []string) {
	for _, text := range notes {
		if a.note != nil {
			a.note(term.Line(text))
		}
	}
}

// place is where the project of a connection is.
type place struct {
	name    string // for the user
	root    string // on this machine; "": it is on a host
	stopped func() bool
}

// Context returns a context that ends with the connection, or with a signal during connecting.
func (a *attended) Context() context.Context { return a.ctx }

// Again reconnects after the hub has ended. While a host cannot be reached it tries again until a
// signal arrives: the agents there go on.
func (a *attended) Again() error {
	if a.Client != nil {
		a.Client.Close()
	}
	return a.connect()
}

// redial is Again for [turn.AttendAll], which handles signals itself: it tries until ctx ends. goOn then continues what
// ended with the daemon.
func (a *attended) redial(ctx context.Context, note func(text string), goOn func(*client.Client) error) (*client.Client, error) {
	if a.place.stopped() {
		return nil, hubclient.ErrHubGone
	}
	was := a.Client
	was.Close()
	err := a.dial(ctx, true, note)
	if err != nil {
		a.Client = was // for Close
		return nil, err
	}
	return a.Client, goOn(a.Client)
}

// lost says that the daemon has ended the connection, and what happens now.
func (a *attended) lost() string {
	if a.host != nil {
		return "the line to " + a.host.Name + " broke; going on over a new one"
	}
	return "the daemon has gone; going on with another one"
}

// Close ends the connection.
func (a *attended) Close() {
	a.Client.Close()
	a.end()
}

func (a *attended) connect() error {
	again := a.Client != nil
	return term.OrInterrupted(a.Interrupts, a.cancel, func() error {
		return a.dial(a.ctx, again, func(text string) { a.tell([]string{text}) })
	})
}

// dial connects. again says that it was connected before: then it tries until ctx ends if a host cannot be reached, and
// tell gets why.
func (a *attended) dial(ctx context.Context, again bool, tell func(text string)) (err error) {
	if a.host == nil {
		a.Client, err = dialHub(ctx, a.settings, true)
		return err
	}
	var pause hubprocess.Pause
	for said := !again; ; {
		a.Client, err = a.host.Dial(ctx, startOf(again))
		if !again || !hubprocess.IsBroken(err) || pause.Wait(ctx) != nil {
			return err
		}
		if !said {
			tell(err.Error() + "; trying again until you press C-c, and the agents there go on")
		}
		said = true
	}
}

// startOf says whether a command that begins sessions may start a daemon on a host. One that was
// connected before does not start a daemon that the user has stopped.
func startOf(again bool) hubprocess.Start {
	if again {
		return hubprocess.StartUnlessStopped
	}
	return hubprocess.StartAlways
}

// dialHost connects to the daemon on a host. begins says that the command can be the first in a project.
func dialHost(ctx context.Context, h *hubprocess.Host, begins bool, opts ...client.Option) (*client.Client, error) {
	start := hubprocess.StartIfUsed
	if begins {
		start = hubprocess.StartAlways
	}
	c, err := h.Dial(ctx, start, opts...)
	if hubprocess.IsNeverUsed(err) {
		return nil, fmt.Errorf("%w; `duet-rpc prompt` starts one", err)
	}
	return c, err
}

func (a *attended) end() {
	a.cancel()
	a.giveSignals()
}

// whySilent explains why a hub that answered before does not answer now.
func whySilent(ctx context.Context, s *settings) string {
	if h, err := s.Remote(); err == nil && h != nil {
		return h.Silent()
	}
	silent := &hubprocess.SilentError{Held: true}
	if p, err := s.Project(); err == nil {
		silent.PID, _ = p.Holder(ctx)
	}
	return silent.Error()
}

// newView returns a view of turns.
func (s *settings) newView(out, side io.Writer, asJSON bool) *turn.View {
	v := turn.NewView(out, side, s.NoColor, asJSON)
	v.Named = s.named
	return v
}

// named returns a text for the user in which the commands of duet-rpc name the host, so that they can be copied.
func (s *settings) named(text string) string {
	if s.Host == "" || !strings.Contains(text, "duet-rpc ") {
		return text
	}
	known := commands()
	parts := strings.SplitAfter(text, "duet-rpc ")
	for i, part := range parts[1:] {
		word, _, _ := strings.Cut(part, " ")
		line, _, _ := strings.Cut(part, "`")
		isNamed := strings.Contains(line, "@"+s.Host) || strings.Contains(line, "--on "+s.Host)
		if word = strings.Trim(word, "`.,;:)"); known[word] != nil && word != "hosts" && !isNamed {
			parts[i] += "--host " + s.Host + " "
		}
	}
	return strings.Join(parts, "")
}

// gatesFail is the exit status of work whose gates still fail.
const gatesFail = 4

// statusOf returns the outcome of an attended turn as an error with the exit status.
func statusOf(session protocol.Turn, interrupted bool) error {
	switch {
	case session.Gates != nil && session.Gates.State == domain.LoopStopped && interrupted:
		return term.ErrInterrupted
	case session.Gates.Failed():
		return exitStatus(gatesFail)
	case session.State == domain.Completed && (session.Gates == nil || session.Gates.State == domain.LoopPassed):
		return nil
	case (session.State == domain.Interrupted || session.State == domain.Cancelled) && interrupted:
		return term.ErrInterrupted
	}
	return exitStatus(1)
}

// attending returns the options for attending a turn.
func attending(ctx context.Context, s *settings, signals <-chan os.Signal) turn.Options {
	return turn.Options{
		Signals: signals, EndNow: func() { os.Exit(term.Status) },
		SilentAfter: s.AnswerWithin, WhySilent: func() string { return whySilent(ctx, s) },
		KeptBack: s.keptBack,
	}
}

// keptBack returns the names of this process's variables with keys that the agent does not get.
func (s *settings) keptBack(agent string) []string {
	c, err := s.Config()
	if err != nil {
		return nil
	}
	a, err := c.Resolve(agent)
	if err != nil {
		return nil
	}
	return a.KeptBack(os.Environ())
}

// sendDecision answers a question and prints the outcome.
func sendDecision(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, d protocol.DecisionParams) error {
	r, raw, err := hubclient.Decide(ctx, c, d)
	if err != nil {
		return err
	}
	if s.JSON {
		if err := term.Raw(cmd.OutOrStdout(), raw); err != nil || r.Success {
			return err
		}
		return exitStatus(1)
	}
	if !r.Success {
		return errors.New(term.Line(cmp.Or(r.Error, "the question could not be answered")))
	}
	progress(cmd, s, "%s: %s", turn.ShortID(d.ApprovalID), r.Status.Words())
	if r.ToldTurn != "" {
		progress(cmd, s, "the agent receives the comment with its next prompt: %s", r.ToldTurn)
	}
	return nil
}

const callHelp = `Call any method of the project's daemon and print its result as JSON. The second
argument has the parameters; - means that standard input has them.
` + "`duet-rpc call listMethods`" + ` lists the methods.

If the daemon refuses the call, the error is printed as

  duet-rpc: MESSAGE (code N, kind K)

on standard error; with --json as the JSON error object.

Exit status: 0 if there is a result; 1 if it was refused or failed; 130 if you
interrupted it, which cancels the request.`

func newCallCommand(s *settings) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "call METHOD [JSON|-]", Annotations: begins(),
		Short:   "Call any method of the project's daemon",
		Long:    callHelp,
		Example: "  duet-rpc call daemon.status\n  duet-rpc call turn.get '{\"turn\":\"12.3\"}'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return fmt.Errorf("%q takes METHOD and JSON and nothing more, got %q: quote the JSON", cmd.CommandPath(), args[2])
			}
			return atLeast("METHOD")(cmd, args)
		},
		ValidArgsFunction: completeFirst(s, methodCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			params, err := callParams(cmd.InOrStdin(), args[1:])
			if err != nil {
				return err
			}
			if timeout < 0 {
				return errors.New("--timeout must not be negative")
			}
			var raw json.RawMessage
			err = connected(cmd, s, func(ctx context.Context, c *client.Client) error {
				return c.Call(ctx, args[0], params, &raw, client.WithTimeout(timeout))
			})
			if err != nil {
				return errorOf(cmd, s, err)
			}
			if s.JSON {
				return term.Raw(cmd.OutOrStdout(), raw)
			}
			var indented bytes.Buffer
			if err := json.Indent(&indented, raw, "", "  "); err != nil {
				return fmt.Errorf("reading the daemon's answer: %w", err)
			}
			return term.Raw(cmd.OutOrStdout(), indented.Bytes())
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long the call may take, such as 30s (0: no limit)")
	return cmd
}

// callParams returns the parameters from the argument or standard input; nil if there are
// none.
func callParams(in io.Reader, args []string) (any, error) {
	if len(args) == 0 {
		return nil, nil
	}
	text := []byte(args[0])
	if args[0] == "-" {
		const most = 64 << 20 // more than a client can send
		var err error
		if text, err = io.ReadAll(io.LimitReader(in, most)); err != nil {
			return nil, fmt.Errorf("reading the parameters from standard input: %w", err)
		}
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, nil
	}
	var wrong *json.SyntaxError
	var value json.RawMessage
	if err := json.Unmarshal(text, &value); errors.As(err, &wrong) {
		return nil, fmt.Errorf("the parameters are not JSON: %w (byte %d)", wrong, wrong.Offset)
	} else if err != nil {
		return nil, fmt.Errorf("the parameters are not JSON: %w", err)
	}
	if text[0] != '{' && text[0] != '[' {
		return nil, fmt.Errorf("the parameters must be a JSON object or array, got %s", term.Short(string(text)))
	}
	return value, nil
}

// errorOf returns the error of the call command, with everything that the hub has sent.
func errorOf(cmd *cobra.Command, s *settings, err error) error {
	var e *client.Error
	if !errors.As(err, &e) {
		return err
	}
	if s.JSON {
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_ = term.Raw(cmd.ErrOrStderr(), raw)
		return exitStatus(1)
	}
	text := fmt.Sprintf("%s (code %d", term.Line(e.Message), e.Code)
	if kind := e.Kind(); kind != "" {
		text += ", kind " + term.Line(string(kind))
	}
	return errors.New(strings.TrimSpace(text) + ")")
}

// printStarted prints the number of a started turn, or waits for its end.
func printStarted(
	ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, r protocol.Started, wait bool,
) error {
	if !s.JSON {
		state := domain.State(r.State).Words()
		switch r.Delivered {
		case protocol.DeliveredInjected:
			state = "sent while it works"
		case protocol.DeliveredQueued:
			state = "queued"
		}
		progress(cmd, s, "%s · agent %s · %s", r.Name, r.Agent, state)
	}
	switch {
	case wait:
		return waitFor(ctx, cmd, s, c, r)
	case s.JSON:
		return printLine(cmd.OutOrStdout(), r)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), r.Name)
	return err
}

// waitFor shows a turn to its end and returns its outcome as the exit status. With --json it only
// prints the result. The turn continues if the command is interrupted.
func waitFor(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, started protocol.Started) error {
	ctx, cancel := hubclient.WhileConnected(ctx, c)
	defer cancel()
	out, side := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if s.JSON {
		out, side = io.Discard, io.Discard
	}
	last, err := turn.Watch(ctx, c, s.newView(out, side, false), started.ID)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		progress(cmd, s, "%s is still running; interrupt it with: duet-rpc session interrupt %s", started.Name, started.Name)
	}
	if err != nil {
		return hubclient.OrGone(ctx, err)
	}
	t, _, err := hubclient.Turn(ctx, c, last)
	if err != nil {
		return hubclient.OrGone(ctx, err)
	}
	if s.JSON {
		err = printResult(cmd.OutOrStdout(), t)
	} else {
		progress(cmd, s, "%s %s; go on with: duet-rpc prompt --continue %d \"…\"", t.Name, t.Outcome(), t.Session)
	}
	if err != nil {
		return err
	}
	return statusOf(t, false)
}

// A turnResult is the last line that prompt --json prints: the turn at its end.
type turnResult struct {
	Kind        string          `json:"kind"`
	Turn        string          `json:"turn"`
	Host        string          `json:"host,omitempty"` // of one of several attempts
	Session     int64           `json:"session"`
	TurnUUID    string          `json:"turn_uuid"`
	SessionUUID string          `json:"session_uuid"`
	Agent       string          `json:"agent"`
	State       domain.State    `json:"state"`
	Text        string          `json:"text"`
	Error       string          `json:"error,omitempty"`
	ErrorCode   string          `json:"error_code,omitempty"`
	StopReason  string          `json:"stop_reason,omitempty"`
	Usage       resultUsage     `json:"usage"`
	CostUSD     *float64        `json:"cost_usd,omitempty"`
	Gates       *protocol.Gates `json:"gates,omitempty"`
}

// resultUsage is what a turn used, as far as its agent reports it.
type resultUsage struct {
	InputTokens      *int64 `json:"input_tokens,omitempty"`
	OutputTokens     *int64 `json:"output_tokens,omitempty"`
	CacheReadTokens  *int64 `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens *int64 `json:"cache_write_tokens,omitempty"`
	DurationMS       *int64 `json:"duration_ms,omitempty"`
}

// printResult prints a turn that has ended, as one line of JSON.
func printResult(out io.Writer, t protocol.Turn) error { return printLine(out, resultOf(t)) }

func resultOf(t protocol.Turn) turnResult {
	return turnResult{
		Kind: "result", Turn: t.Name, Session: t.Session, TurnUUID: t.ID, SessionUUID: t.SessionUUID, Agent: t.Agent, State: t.State,
		Text: t.Result, Error: t.Error, ErrorCode: t.ErrorCode, StopReason: t.StopReason, CostUSD: t.CostUSD, Gates: t.Gates,
		Usage: resultUsage{t.InputTokens, t.OutputTokens, t.CacheReadTokens, t.CacheWriteTokens, t.DurationMS},
	}
}

// printLine prints a value as one line of JSON.
func printLine(out io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return term.Raw(out, line)
}
