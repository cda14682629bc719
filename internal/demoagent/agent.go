// Package demoagent is a scripted coding agent without a model. It speaks the Agent Client
// Protocol and follows words in the prompt, which [Help] lists: a plan, streamed
// text, an edit with a permission, a terminal, a question, and the faults of bad agents. It needs
// no account and no network.
//
// Sessions outlive the process: each is a small file in [Options.StateDir], which a client can
// load or resume.
package demoagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/acp"
)

// NewestProtocol is the newest version of the protocol that the agent speaks.
const NewestProtocol = acp.Version2

// The modes of a session, with Claude Code's names.
const (
	modeDefault = "default"
	modeAccept  = "acceptEdits"
	modePlan    = "plan"
	modeBypass  = "bypassPermissions"
)

func modes() []acp.SessionMode {
	return []acp.SessionMode{
		{ID: modeDefault, Name: "Default", Description: "Asks before it edits"},
		{ID: modeAccept, Name: "Accept edits", Description: "Edits without asking"},
		{ID: modePlan, Name: "Plan", Description: "Makes a plan and edits nothing"},
		{ID: modeBypass, Name: "Bypass permissions", Description: "Never asks permission"},
	}
}

// pageSize is the number of sessions in a page of session/list.
const pageSize = 100

// codeCancelled is the error of a prompt that was cancelled before it became part of the
// session.
const codeCancelled = -32800

// agent serves one client. Its methods are called concurrently.
type agent struct {
	ctx       context.Context // of the connection
	conn      *acp.Conn
	lines     *lineWriter // to the client
	opts      Options
	store     *store
	crashed   chan struct{} // a prompt asked for a crash
	turns     sync.WaitGroup
	terminals ownTerminals // for a client that shows them

	mu       sync.Mutex // guards the fields below
	client   acp.Client
	arriving chan struct{} // closed when the latest prompt is registered or refused
	leaving  bool          // no new turn begins
	sessions map[string]*session
}

func newAgent(ctx context.Context, lines *lineWriter, opts Options) *agent {
	a := &agent{
		ctx: ctx, lines: lines, opts: opts,
		store: &store{dir: opts.StateDir, warn: func(err error) {
			fmt.Fprintf(opts.Stderr, "duet-rpc demo-agent: %v\n", err)
		}},
		crashed:  make(chan struct{}, 1),
		sessions: map[string]*session{},
	}
	a.terminals.update = a.send
	a.conn = acp.NewConn(lines, acp.Handler{
		Request: func(method string, _ []byte) bool {
			a.afterPrompt(method == acp.MethodSessionPrompt)
			return true
		},
		Serve: a.serve,
		Notice: func(method string, params []byte) {
			a.afterPrompt(false)
			var p acp.SessionParams
			if method == acp.MethodSessionCancel && json.Unmarshal(params, &p) == nil {
				a.cancel(p)
			}
		},
		Update:   func(_, _ []byte, _ bool) {},
		Response: func(_, _ []byte) {},
		Garbage:  func([]byte) { fmt.Fprintln(opts.Stderr, "duet-rpc demo-agent: dropped a line that is no message") },
		TooLong:  func(n int64) { fmt.Fprintf(opts.Stderr, "duet-rpc demo-agent: dropped a line of %d bytes\n", n) },
	})
	return a
}

// afterPrompt waits until the latest prompt is registered. Requests are served concurrently, so a
// cancel right after its prompt could overtake it.
func (a *agent) afterPrompt(isPrompt bool) {
	a.mu.Lock()
	arriving := a.arriving
	a.mu.Unlock()
	if arriving != nil {
		<-arriving
	}
	if isPrompt {
		a.mu.Lock()
		a.arriving = make(chan struct{})
		a.mu.Unlock()
	}
}

// serve answers a request in the client's form.
func (a *agent) serve(_ context.Context, method string, params json.RawMessage) (any, error) {
	if !a.served().Knows(method) {
		return nil, acp.MethodNotFound(method)
	}
	result, err := a.answer(method, params)
	return a.served().Result(result), err
}

func (a *agent) answer(method string, params json.RawMessage) (any, error) {
	switch method {
	case acp.MethodInitialize:
		return handle(params, a.initialize)
	case acp.MethodSessionNew:
		return handle(params, a.newSession)
	case acp.MethodSessionResume:
		return handle(params, a.resumeSession)
	case acp.MethodSessionClose:
		return handle(params, a.closeSession)
	case acp.MethodSessionList:
		return handle(params, a.listSessions)
	case acp.MethodSessionSetValue:
		return handle(params, a.setOption)
	case acp.MethodSessionSteering:
		return handle(params, a.steer)
	case acp.MethodSessionPrompt:
		a.mu.Lock()
		arriving := a.arriving
		a.mu.Unlock()
		registered := sync.OnceFunc(func() { close(arriving) })
		defer registered() // also for a refused prompt
		return handle(params, func(p acp.PromptRequest) (any, error) { return a.prompt(p, registered) })
	case acp.MethodAuthenticate: // there is no account
		return acp.Empty{}, nil
	case acp.MethodSessionLoad:
		return handle(params, a.loadSession)
	case acp.MethodSessionSetMode:
		return handle(params, a.setMode)
	}
	return nil, acp.MethodNotFound(method)
}

func handle[P any](params json.RawMessage, f func(P) (any, error)) (any, error) {
	var p P
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, acp.InvalidParams(err)
	}
	return f(p)
}

func (a *agent) initialize(p acp.InitializeRequest) (any, error) {
	client := p.Accept(a.opts.Protocol)
	a.mu.Lock()
	a.client = client
	a.mu.Unlock()
	r := acp.InitializeResponse{
		AgentInfo:   acp.Implementation{Name: "duet-demo", Title: "Duet demo agent", Version: cmp.Or(a.opts.Version, "dev")},
		AuthMethods: []acp.AuthMethod{},
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession:         true,
			PromptCapabilities:  acp.PromptCapabilities{Image: true, EmbeddedContext: true},
			SessionCapabilities: acp.SessionCapabilities{Close: acp.Supported, List: acp.Supported, Resume: acp.Supported},
			Meta:                map[string]any{"duet": map[string]any{"updatedInput": true}},
		},
	}
	r.Meta.Steering.Supported = true
	return r, nil
}

// served returns the client.
func (a *agent) served() acp.Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.client
}

// askClient sends a request to the client. If the client has gone, it returns when the turn has
// been ended: else the turn would take that for an answer, and go on.
func askClient[R any](ctx context.Context, a *agent, method string, params any) (R, error) {
	result, err := acp.Call[R](ctx, a.conn, method, params)
	if errors.Is(err, acp.ErrClosed) {
		<-ctx.Done() // Serve ends it
		err = ctx.Err()
	}
	return result, err
}

// send sends an update of a session in the client's form. If the client has disconnected, the reader
// notices that.
func (a *agent) send(session string, update any) {
	client := a.served()
	if call, ok := update.(acp.ToolCall); ok && !client.HasToolNames() {
		call.Name = ""
		update = call
	}
	for _, u := range client.Updates(update) {
		_ = a.conn.Notify(acp.MethodSessionUpdate, acp.UpdateNotification{SessionID: session, Update: u})
	}
}

func (a *agent) newSession(p acp.NewSessionRequest) (any, error) {
	if err := requireAbsolute(p.CWD); err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("making a session id: %w", err)
	}
	s := newSession(a.store, record{ID: id.String(), Cwd: p.CWD, Mode: modeDefault})
	s.change(func(*record) { s.servers = p.MCPServers })
	a.mu.Lock()
	a.sessions[id.String()] = s
	a.mu.Unlock()
	return a.opened(id.String(), s), nil
}

// opened returns the response to a request that made or opened a session.
func (a *agent) opened(id string, s *session) any {
	if !a.served().HasModes() {
		return acp.OpenedSession{SessionID: id, ConfigOptions: modeOptions(s.mode())}
	}
	return acp.OpenedSession{SessionID: id, Modes: &acp.SessionModes{Current: s.mode(), Available: modes()}}
}

// loadSession opens a session and sends its whole history to the client.
func (a *agent) loadSession(p acp.OpenSessionRequest) (any, error) {
	s, err := a.reopen(p.SessionID, p.Workspace)
	if err != nil {
		return nil, err
	}
	a.replay(p.SessionID, s)
	return a.opened("", s), nil
}

func (a *agent) resumeSession(p acp.OpenSessionRequest) (any, error) {
	from := a.served().Replays(p)
	if from != nil && from.Type != acp.ReplayFromStart {
		return nil, refusal(jsonrpc2.CodeInvalidParams, "the demo agent replays a session from its start only")
	}
	s, err := a.reopen(p.SessionID, p.Workspace)
	if err != nil {
		return nil, err
	}
	if from != nil {
		a.replay(p.SessionID, s)
	}
	a.sendState(p.SessionID, s, nil)
	return a.opened("", s), nil
}

// replay sends the history of a session.
func (a *agent) replay(id string, s *session) {
	var updates []any
	s.look(func(r *record) { updates = r.replay(a.served().HasStates()) })
	for _, u := range updates {
		a.send(id, u)
	}
}

// reopen returns a session that is open or has a file.
func (a *agent) reopen(id string, w acp.Workspace) (*session, error) {
	if err := requireAbsolute(w.CWD); err != nil {
		return nil, err
	}
	a.mu.Lock()
	s := a.sessions[id]
	if s == nil {
		rec, err := a.store.load(id)
		if err != nil {
			a.mu.Unlock()
			return nil, sessionError(id, err)
		}
		s = newSession(a.store, rec)
		a.sessions[id] = s
	}
	a.mu.Unlock()
	s.change(func(r *record) { r.Cwd, s.servers = w.CWD, w.MCPServers })
	return s, nil
}

// open returns a session that the client made, loaded or resumed in this process.
func (a *agent) open(id string) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil {
		return s, nil
	}
	return nil, sessionError(id, errNoSession)
}

// closeSession ends the work of a session. For a client with states the session is idle before the response.
func (a *agent) closeSession(p acp.SessionParams) (any, error) {
	s, err := a.open(p.SessionID)
	if err != nil {
		return nil, err
	}
	s.close()
	if a.served().HasStates() {
		select {
		case s.running <- struct{}{}:
			<-s.running
		case <-a.ctx.Done():
		}
	}
	a.mu.Lock()
	delete(a.sessions, p.SessionID)
	a.mu.Unlock()
	return acp.Empty{}, nil
}

// listSessions lists the sessions with files, the newest first. The cursor is the last id of the
// previous page.
func (a *agent) listSessions(p acp.ListSessionsRequest) (any, error) {
	list := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
	for _, id := range a.store.ids() {
		if p.Cursor != nil && id >= *p.Cursor {
			continue
		}
		if len(list.Sessions) == pageSize {
			list.NextCursor = list.Sessions[pageSize-1].SessionID
			break
		}
		rec, err := a.store.load(id)
		if err != nil || p.CWD != nil && filepath.Clean(*p.CWD) != filepath.Clean(rec.Cwd) {
			continue
		}
		info := acp.SessionInfo{SessionID: id, CWD: rec.Cwd, UpdatedAt: rec.Updated.Format("2006-01-02T15:04:05.000Z")}
		if len(rec.Turns) > 0 {
			info.Title = quote(rec.Turns[0].Asked)
		}
		list.Sessions = append(list.Sessions, info)
	}
	return list, nil
}

func (a *agent) setMode(p acp.SetModeRequest) (any, error) {
	s, err := a.open(p.SessionID)
	if err != nil {
		return nil, err
	}
	mode, err := findMode(p.ModeID)
	if err != nil {
		return nil, err
	}
	s.change(func(r *record) { r.Mode = mode })
	return acp.Empty{}, nil
}

// modeOption is the id of the option that is the mode, for a client without modes.
const modeOption = "mode"

// modeOptions returns the options of a session in a mode.
func modeOptions(current string) []acp.ConfigOption {
	var values []acp.ConfigValue
	for _, m := range modes() {
		values = append(values, acp.ConfigValue{Value: m.ID, Name: m.Name, Description: m.Description})
	}
	return []acp.ConfigOption{{ID: modeOption, Name: "Mode", Category: "mode", Type: "select", CurrentValue: current, Options: values}}
}

func (a *agent) setOption(p acp.SetConfigOptionRequest) (any, error) {
	if p.ConfigID != modeOption || a.served().HasModes() {
		return nil, refusal(jsonrpc2.CodeInvalidParams, fmt.Sprintf("there is no option %q", p.ConfigID))
	}
	var mode string
	_ = json.Unmarshal(p.Value, &mode) // on failure there is no such mode
	if _, err := a.setMode(acp.SetModeRequest{SessionID: p.SessionID, ModeID: mode}); err != nil {
		return nil, err
	}
	s, err := a.open(p.SessionID)
	if err != nil {
		return nil, err
	}
	return acp.ConfigOptions{ConfigOptions: modeOptions(s.mode())}, nil
}

// cancel ends the session's turns. An unknown session is ignored, because a notification has no
// response.
func (a *agent) cancel(p acp.SessionParams) {
	if s, err := a.open(p.SessionID); err == nil {
		s.cancel()
	}
}

func findMode(id string) (string, error) {
	for _, m := range modes() {
		if strings.EqualFold(m.ID, id) {
			return m.ID, nil
		}
	}
	return "", refusal(jsonrpc2.CodeInvalidParams, fmt.Sprintf("there is no mode %q", id))
}

func requireAbsolute(cwd string) error {
	if !filepath.IsAbs(cwd) {
		return refusal(jsonrpc2.CodeInvalidParams, fmt.Sprintf("cwd must be an absolute path, got %q", cwd))
	}
	return nil
}

// sessionError converts an error for the client.
func sessionError(id string, err error) error {
	if errors.Is(err, errNoSession) {
		return refusal(acp.CodeResourceNotFound, fmt.Sprintf("%v: %q", err, cut(id, 100)))
	}
	return err
}

func refusal(code int, message string) error {
	return &acp.Error{Code: code, Message: message}
}

// sendState sends the state of a session, after change has changed it.
func (a *agent) sendState(id string, s *session, change func(*acp.StateUpdate)) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	u := acp.StateUpdate{Kind: acp.KindState, State: s.state, Background: s.background}
	if change != nil {
		change(&u)
	}
	s.state, s.background = u.State, u.Background
	a.send(id, u)
}

// DefaultDelay is a rate of streamed text that a human can watch.
const DefaultDelay = 15 * time.Millisecond

// leaveWithin is how long Serve waits for turns after its input has ended. Only a turn that
// writes to an unread output needs it.
const leaveWithin = 200 * time.Millisecond

// ErrCrash is the error of Serve when a prompt requested a crash. The process should exit with
// [CrashStatus] at once.
var ErrCrash = errors.New("the demo agent was asked to crash")

// CrashStatus is the exit status of a process with a requested crash.
const CrashStatus = 3

// Options configure an agent. The zero value works: no pauses between chunks, sessions in memory
// only, no diagnostics.
type Options struct {
	StateDir string        // directory of the sessions, made with mode 0700; "": in memory only
	Delay    time.Duration // between chunks of text and of thoughts; 0: none
	Version  string        // sent to the client; "" means "dev"
	Stderr   io.Writer     // diagnostics and the last line before a crash; nil drops them
	Protocol int           // the newest version of the protocol to accept; 0: [NewestProtocol]
	OnHang   func()        // called when a prompt requests a hang, so that the process can ignore signals; may be nil
}

// DefaultStateDir returns the default directory of the sessions: $DUET_STATE_HOME/demo, else
// $XDG_STATE_HOME/duet/demo, else ~/.local/state/duet/demo. It fails if there is no home
// directory.
func DefaultStateDir() (string, error) {
	if dir := os.Getenv("DUET_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "demo"), nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "duet", "demo"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding a place for the demo agent's sessions: %w", err)
	}
	return filepath.Join(home, ".local", "state", "duet", "demo"), nil
}

// Serve serves one client: it reads from in and writes whole lines to out until in ends (nil),
// reading fails, ctx is done (its error) or a prompt requests a crash ([ErrCrash]). It returns
// within 200 ms of that, even with a running or hanging turn, and writes nothing to out
// afterwards. A goroutine that reads in stays until that read returns.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts Options) error {
	if opts.Stderr == nil {
		opts.Stderr = io.Discard
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	lines := &lineWriter{w: out}
	a := newAgent(ctx, lines, opts)
	input := &input{r: in}
	go a.conn.Read(input)
	var err error
	select {
	case <-a.conn.Done():
		if input.err != nil {
			err = fmt.Errorf("reading the client's messages: %w", input.err)
		}
	case <-a.crashed:
		fmt.Fprintf(opts.Stderr, "duet-rpc demo-agent: %v\n", ErrCrash)
		err = ErrCrash
	case <-ctx.Done():
		err = ctx.Err()
	}
	lines.close()
	end()
	a.terminals.kill()
	left := make(chan struct{})
	go func() { a.endTurns(); a.terminals.close(); close(left) }()
	select {
	case <-left:
	case <-time.After(leaveWithin):
	}
	return err
}

// input stores the error of its reader.
type input struct {
	r   io.Reader
	err error // read when the connection is done
}

func (in *input) Read(p []byte) (int, error) {
	n, err := in.r.Read(p)
	if err != nil && err != io.EOF {
		in.err = err
	}
	return n, err
}
