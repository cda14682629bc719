package hubprocess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/visible"
	"github.com/duet-rpc/duet-rpc/server"
)

// This file has the near end of a line to a daemon on another machine: it runs `duet-rpc connect`
// there (bridge.go) and asks it to connect. After its answer the daemon is at the other end.

// LineWithin is how long a host may take to answer: a line is made, a program starts, and perhaps a
// daemon.
const LineWithin = 30 * time.Second

// A Start says whether a process may start a daemon to reach one.
type Start string

// The values of Start.
const (
	StartNever         Start = ""               // only a running daemon counts
	StartIfUsed        Start = "if_used"        // unless the project has no sessions
	StartUnlessStopped Start = "unless_stopped" // unless the user has stopped the daemon since
	StartAlways        Start = "always"
)

// Kinds of a [LineError].
const (
	lineNone      = "none"       // no daemon runs there, and none should start
	lineNeverUsed = "never_used" // the project there has no sessions
	lineNoProject = "no_project" // there is no such directory
	lineFailed    = "failed"     // the daemon there cannot be reached, or cannot start
	lineBroken    = "broken"     // nothing that understands the request answered
	lineMissing   = "missing"    // there is no duet-rpc on the host
	lineOther     = "other"      // duet-rpc there speaks another version of the protocol
)

// A LineError reports that the daemon on a host cannot be reached.
type LineError struct {
	Host string
	Kind string // one of the kinds of a line
	Text string // what the host says; third-party text
}

func (e *LineError) Error() string { return e.Host + ": " + visible.ForTerminal().Line(e.Text) }

// connectRequest is the first message on a line, and connectAnswer the answer.
type (
	connectRequest struct {
		Start       Start                 `json:"start"`
		Notices     bool                  `json:"notices"`            // the user sees notices
		Observes    bool                  `json:"observes,omitempty"` // as in [Settings]
		Environment clientenv.Environment `json:"environment,omitempty"`
	}
	connectAnswer struct {
		Version  string   `json:"version"`
		Protocol int      `json:"protocol"`
		Root     string   `json:"root"`  // of the project, absolute
		Notes    []string `json:"notes"` // on the choice of the project
		Notice   string   `json:"notice"`
	}
	connectRefusal struct {
		Message string `json:"message"`
		Data    struct {
			Kind string `json:"kind"`
		} `json:"data"`
	}
)

// The requests of a line.
const (
	connectMethod  = "host.connect"
	DescribeMethod = "host.describe" // params: none; result: [Description]
	ListMethod     = "host.list"     // params: those of turn.list; result: the turns of the host's projects
	// ApprovalsMethod asks for the open questions of the host's projects; with the param begun only of those whose daemon runs.
	ApprovalsMethod = "host.approvals"
)

// A Description is what a host says of itself. It is third-party text.
type Description struct {
	Version    string   `json:"version"` // of duet-rpc
	Protocol   int      `json:"protocol"`
	System     string   `json:"system"` // such as linux/amd64
	Processors int      `json:"processors"`
	Load       *float64 `json:"load,omitempty"` // of the last minute; absent: unknown
	Projects   int      `json:"projects"`
	Sessions   int      `json:"sessions"`
	Git        string   `json:"git"`    // its version; "": it is missing
	Agents     []string `json:"agents"` // those that are installed
}

// A Host connects a process to the project's daemon on a host, by one line at a time. One goroutine at a time
// may connect; any may call its other methods.
type Host struct {
	config.Host
	settings *Settings
	copied   string // the last copy of this program there, perhaps of another build; "": none is known
	root     string // as the host gets it
	here     string // the root of the project of this machine for which it is made
	process  *client.Process
	said     *said

	mu       sync.Mutex
	answered connectAnswer // the last one
}

// Remote returns the host of --host; nil if the project is on this machine.
func (s *Settings) Remote() (*Host, error) {
	if s.Host == "" {
		return nil, nil
	}
	h, err := config.HostNamed(s.Host, os.Getenv)
	if err != nil {
		return nil, err
	}
	return s.On(h)
}

// On is Remote for a host of the user's configuration.
func (s *Settings) On(h config.Host) (*Host, error) {
	here, below := "", ""
	project := ""
	if s.Root == "" || h.IsMade() {
		p, err := s.here()
		if err != nil {
			return nil, err
		}
		project = p.Root
		here = filepath.ToSlash(p.Root)
		if repo, found := git.Find(p.Root); found { // a clone there has the whole repository
			top := filepath.ToSlash(repo.Top)
			here, below = top, strings.TrimPrefix(here, top)
		}
	}
	switch {
	case h.NeedsSession():
		return nil, &NeedsSessionError{Name: h.Name, Known: s.instances(h.Name)}
	case h.IsMade() && h.Of == "":
		h = h.ForProject(project)
	}
	if s.Root != "" {
		below = ""
	}
	host := &Host{Host: h, settings: s, root: path.Join(h.Root(s.Root, here), below), here: project, said: &said{}}
	host.use(h.Program)
	if copied := host.recall().Program; copied != "" {
		self, err := os.Executable()
		if err == nil && strings.HasSuffix(copied, "/"+copyName(self)) {
			host.use(copied)
		}
		host.copied = copied
	}
	return host, nil
}

// use sets the program that runs on the host.
func (h *Host) use(program string) {
	h.Program = program
	line := h.CommandLine("connect")
	h.process = client.Command(line[0], line[1:]...)
	h.process.Stderr = h.said
	h.process.SysProcAttr = ownSession() // a C-c on this terminal is not for the line
}

// CommandLine returns the command of this machine that runs a command of duet-rpc for the project
// there.
func (h *Host) CommandLine(args ...string) []string {
	// Whatever variables the line passes on, the project is on the host itself.
	return h.Host.CommandLine(h.Program, append([]string{"--host=", "--root", h.root}, args...)...)
}

// Project returns the root of the project there and notes on its choice, as the host answered last.
// Both are third-party text.
func (h *Host) Project() (root string, notes []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered.Root, h.answered.Notes
}

// Dial returns a client of the daemon there. It reconnects as one of [Dial] does.
func (h *Host) Dial(ctx context.Context, start Start, opts ...client.Option) (*client.Client, error) {
	var problem error
	open := func(ctx context.Context) (server.Transport, error) {
		t, err := h.Connect(ctx, start)
		problem = err
		return t, err
	}
	c, err := client.Dial(ctx, client.Opener(open), append(opts, client.WithFraming(frame.LSP), client.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil && problem != nil {
		err = problem
	}
	return c, err
}

// Connect makes a line and connects it to the daemon there. With [StartAlways] it makes the host if that is made for a
// project and is not there. The error is a [*LineError] if that fails.
func (h *Host) Connect(ctx context.Context, start Start) (t server.Transport, err error) {
	reach := func() error {
		t, err = h.connect(ctx, start)
		return err
	}
	switch start {
	case StartAlways:
		err = h.orMade(ctx, reach)
	case StartIfUsed:
		err = h.orGone(reach())
	default:
		err = reach()
	}
	return t, err
}

func (h *Host) connect(ctx context.Context, start Start) (server.Transport, error) {
	request := connectRequest{Start: start, Notices: h.settings.Notice != nil, Observes: h.settings.Observes, Environment: clientenv.Only(os.Environ(), h.EnvFrom)}
	var answer connectAnswer
	t, err := h.askOwn(ctx, connectMethod, request, func() (string, int) { return answer.Version, answer.Protocol }, &answer)
	if err != nil {
		return nil, err
	}
	if answer.Notice != "" && h.settings.Notice != nil {
		h.settings.Notice(answer.Notice)
	}
	h.mu.Lock()
	h.answered = answer
	h.mu.Unlock()
	return t, nil
}

// Look is Describe without a copy of this program to the host: one of another build may answer.
func (h *Host) Look(ctx context.Context) (d Description, err error) {
	if err := h.Ask(ctx, DescribeMethod, struct{}{}, &d); err != nil {
		return d, err
	}
	h.remember(func(k *known) { k.Seen, k.At = &d, time.Now() })
	return d, nil
}

// Ask sends a request that ends with its answer. It copies nothing there.
func (h *Host) Ask(ctx context.Context, method string, request, answer any) error {
	if h.copied != "" {
		h.use(h.copied)
	}
	t, err := h.ask(ctx, method, request, answer)
	if !errors.Is(ctx.Err(), context.Canceled) { // which says nothing of the host
		h.remember(func(k *known) { k.Failed = err != nil })
	}
	if err != nil {
		return err
	}
	return t.Close()
}

// HasFailed reports whether the last [Host.Ask] failed.
func (h *Host) HasFailed() bool { return h.recall().Failed }

// Describe asks the host for a description of itself. The error is a [*LineError].
func (h *Host) Describe(ctx context.Context) (d Description, err error) {
	t, err := h.askOwn(ctx, DescribeMethod, struct{}{}, func() (string, int) { return d.Version, d.Protocol }, &d)
	if err == nil {
		t.Close()
		h.remember(func(k *known) { k.Seen, k.At = &d, time.Now() })
	}
	return d, err
}

// askOwn is ask of a duet-rpc that speaks this version of the protocol: it copies this program to the host if
// there is none. version returns what the answer says.
func (h *Host) askOwn(ctx context.Context, method string, request any, version func() (string, int), answer any) (server.Transport, error) {
	for copied := false; ; copied = true {
		t, err := h.ask(ctx, method, request, answer)
		if err == nil {
			its, protocol := version()
			if protocol == Protocol {
				return t, nil
			}
			t.Close()
			err = &LineError{Host: h.Name, Kind: lineOther, Text: fmt.Sprintf("duet-rpc %s there speaks protocol %d, this duet-rpc %s protocol %d",
				its, protocol, h.settings.Version, Protocol)}
		}
		if copied || !isLine(err, lineMissing) && !isLine(err, lineOther) {
			return nil, err
		}
		if failed := h.install(ctx); failed != nil {
			line, _ := errors.AsType[*LineError](err)
			return nil, &LineError{Host: h.Name, Kind: line.Kind, Text: line.Text + "; it was not copied there: " + failed.Error()}
		}
	}
}

// ask makes a line, sends its request and reads the answer, within [LineWithin].
func (h *Host) ask(ctx context.Context, method string, request, answer any) (server.Transport, error) {
	within, cancel := context.WithTimeout(ctx, LineWithin)
	defer cancel()
	h.said.forget()
	t, err := h.process.Open(within)
	if err != nil {
		return nil, &LineError{Host: h.Name, Kind: lineBroken, Text: err.Error()}
	}
	stop := context.AfterFunc(within, func() { t.Close() })
	err = h.exchange(t, method, request, answer)
	if !stop() && err == nil {
		err = within.Err()
	}
	if err == nil {
		err = t.SetReadDeadline(time.Time{})
	}
	if err == nil {
		return t, nil
	}
	t.Close()
	refused, isRefused := errors.AsType[*LineError](err)
	switch {
	case ctx.Err() != nil:
		_ = t.Kill() // this process may end before a silent line would
		return nil, ctx.Err()
	case isRefused:
		return nil, refused
	case within.Err() != nil:
		err = fmt.Errorf("no answer within %v", LineWithin)
	}
	return nil, h.broken(err, t.Wait())
}

func (h *Host) exchange(t server.Transport, method string, request, answer any) error {
	params, err := json.Marshal(request)
	if err != nil {
		return err
	}
	message := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0,"method":%q,"params":%s}`, method, params)
	// A command that never reads blocks the write, or breaks it: what the command wrote says more.
	sent := make(chan struct{})
	go func() { // until the caller closes t
		defer close(sent)
		_, _ = t.Write(frame.Append(nil, frame.LSP, message))
	}()
	var m frame.Message
	begin := &beginning{Reader: t}
	if err := frame.NewReader(begin, frame.LSP, frame.Limits{}).Next(&m); err != nil {
		if len(begin.kept) > 0 && !bytes.HasPrefix(begin.kept, []byte("Content-")) {
			return fmt.Errorf("the host writes %.60q before an answer: let its start files write nothing", begin.kept)
		}
		return err
	}
	if m.Error != nil {
		var refusal connectRefusal
		_ = json.Unmarshal(m.Error, &refusal) // whatever it is, it is a refusal
		kind := refusal.Data.Kind
		if kind != lineNone && kind != lineNeverUsed && kind != lineNoProject {
			kind = lineFailed
		}
		return &LineError{Host: h.Name, Kind: kind, Text: refusal.Message}
	}
	<-sent // the next writer begins after it
	return json.Unmarshal(m.Result, answer)
}

// isNotFound reports whether a command line failed because its program does not exist there: shells and
// env end with 127 then, containers with 126 or 127, and kubectl says so.
func isNotFound(status error, said string) bool {
	exit, ok := errors.AsType[*exec.ExitError](status)
	return ok && (exit.ExitCode() == 126 || exit.ExitCode() == 127 || strings.Contains(said, "executable file not found"))
}

// broken returns why a line broke before there was an answer.
func (h *Host) broken(err, status error) *LineError {
	e := &LineError{Host: h.Name, Kind: lineBroken, Text: h.said.last()}
	switch {
	case isNotFound(status, e.Text):
		e.Kind, e.Text = lineMissing, fmt.Sprintf("there is no program %s", h.Program)
	case e.Text != "":
	case status != nil && errors.Is(err, io.EOF):
		e.Text = fmt.Sprintf("%s ended without an answer (%v)", h.Command[0], status)
	default:
		e.Text = err.Error()
	}
	return e
}

// Lost is the reason in the error of a request that was on a line when it broke.
func (h *Host) Lost() string {
	return "the line to " + h.Name + " broke before an answer came; the request may have been carried out there, so look before you send it again"
}

// Broke describes a line that broke.
func (h *Host) Broke() string {
	return "the line to " + h.Name + " broke; the agents there go on"
}

// Silent describes a line on which nothing comes.
func (h *Host) Silent() string {
	return "the line to " + h.Name + " is silent; the agents there go on"
}

// IsBroken reports whether an error means that a host could not be reached at all: the next attempt may.
func IsBroken(err error) bool { return isLine(err, lineBroken) }

// IsNeverUsed reports whether an error means that a project on a host has no sessions yet.
func IsNeverUsed(err error) bool { return isLine(err, lineNeverUsed) }

// LacksProject reports whether an error means that a host has no directory for the project.
func LacksProject(err error) bool { return isLine(err, lineNoProject) }

func isLine(err error, kind string) bool {
	line, ok := errors.AsType[*LineError](err)
	return ok && line.Kind == kind
}

// beginning keeps the first bytes that are read.
type beginning struct {
	io.Reader
	kept []byte
}

func (b *beginning) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.kept = append(b.kept, p[:min(n, max(0, 100-len(b.kept)))]...)
	return n, err
}

// said keeps the end of what a line's command writes to its standard error.
type said struct {
	mu   sync.Mutex
	kept []byte
}

const mostSaid = 4 << 10

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, p...)
	if over := len(s.kept) - mostSaid; over > 0 {
		s.kept = append(s.kept[:0], s.kept[over:]...)
	}
	return len(p), nil
}

func (s *said) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = nil
}

// last returns the last line.
func (s *said) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(s.kept), []byte("\n"))
	return strings.ToValidUTF8(string(bytes.TrimSpace(lines[len(lines)-1])), "\uFFFD")
}
