package demoagent

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/google/uuid"
)

// The modes of a session, named as Claude Code names them.
const (
	modeDefault = "default"
	modeAccept  = "acceptEdits"
	modePlan    = "plan"
	modeBypass  = "bypassPermissions"
)

var modes = []acp.SessionMode{
	{Id: modeDefault, Name: "Default", Description: acp.Ptr("Asks before it edits")},
	{Id: modeAccept, Name: "Accept edits", Description: acp.Ptr("Edits without asking")},
	{Id: modePlan, Name: "Plan", Description: acp.Ptr("Makes a plan and edits nothing")},
	{Id: modeBypass, Name: "Bypass permissions", Description: acp.Ptr("Never asks permission")},
}

// pageSize is how many sessions session/list tells at once.
const pageSize = 100

// agent answers one client. Its methods are called concurrently.
type agent struct {
	ctx        context.Context // of the connection
	conn       *acp.AgentSideConnection
	lines      *lineWriter // to the client
	v2         *version2   // writes to lines
	out        io.Writer   // what the agent writes to: v2
	opts       Options
	store      *store
	registered chan struct{} // a turn can be cancelled from now on
	crashed    chan struct{} // a prompt asked for a crash
	turns      sync.WaitGroup

	mu       sync.Mutex
	client   acp.ClientCapabilities
	leaving  bool // no turn begins any more
	sessions map[string]*session
}

var _ acp.Agent = (*agent)(nil)

func newAgent(ctx context.Context, lines *lineWriter, opts Options) *agent {
	a := &agent{
		ctx: ctx, lines: lines, opts: opts,
		store: &store{dir: opts.StateDir, warn: func(err error) {
			fmt.Fprintf(opts.Stderr, "duet-rpc demo-agent: %v\n", err)
		}},
		registered: make(chan struct{}, 1),
		crashed:    make(chan struct{}, 1),
		sessions:   map[string]*session{},
	}
	a.v2 = newVersion2(cmp.Or(opts.Protocol, NewestProtocol), lines, a.modeOf)
	a.out = a.v2
	return a
}

// modeOf is the mode of a session that is open.
func (a *agent) modeOf(id string) (mode string) {
	if s, err := a.open(acp.SessionId(id)); err == nil {
		s.look(func(r *record) { mode = r.Mode })
	}
	return mode
}

func (a *agent) Initialize(_ context.Context, p acp.InitializeRequest) (acp.InitializeResponse, error) {
	a.mu.Lock()
	a.client = p.ClientCapabilities
	a.mu.Unlock()
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber,
		AgentInfo:       &acp.Implementation{Name: "duet-demo", Title: acp.Ptr("Duet demo agent"), Version: cmp.Or(a.opts.Version, "dev")},
		AuthMethods:     []acp.AuthMethod{},
		Meta:            map[string]any{"steering": map[string]any{"supported": true}},
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: acp.PromptCapabilities{Image: true, EmbeddedContext: true},
			Meta:               map[string]any{"duet": map[string]any{"updatedInput": true}},
			SessionCapabilities: acp.SessionCapabilities{
				Close: &acp.SessionCloseCapabilities{}, List: &acp.SessionListCapabilities{}, Resume: &acp.SessionResumeCapabilities{},
			},
		},
	}, nil
}

func (a *agent) capabilities() acp.ClientCapabilities {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.client
}

// Authenticate always succeeds: there is no account.
func (a *agent) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, nil
}

func (a *agent) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, refusal(-32602, "the demo agent has no configuration options")
}

func (a *agent) NewSession(_ context.Context, p acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	if err := requireAbsolute(p.Cwd); err != nil {
		return acp.NewSessionResponse{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return acp.NewSessionResponse{}, fmt.Errorf("making a session id: %w", err)
	}
	s := newSession(a.store, record{ID: id.String(), Cwd: p.Cwd, Mode: modeDefault})
	s.change(func(*record) {})
	a.mu.Lock()
	a.sessions[id.String()] = s
	a.mu.Unlock()
	return acp.NewSessionResponse{SessionId: acp.SessionId(id.String()), Modes: modeState(modeDefault)}, nil
}

func (a *agent) LoadSession(ctx context.Context, p acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	s, err := a.reopen(string(p.SessionId), p.Cwd)
	if err != nil {
		return acp.LoadSessionResponse{}, err
	}
	var updates []acp.SessionUpdate
	var mode string
	var first int // the number of the first turn that is kept
	s.look(func(r *record) { updates, mode, first = r.replay(), r.Mode, r.Count-len(r.Turns)+1 })
	a.v2.replay(p.SessionId, first)
	for _, u := range updates {
		if err := a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: p.SessionId, Update: u}); err != nil {
			return acp.LoadSessionResponse{}, fmt.Errorf("replaying the session: %w", err)
		}
	}
	return acp.LoadSessionResponse{Modes: modeState(mode)}, nil
}

func (a *agent) ResumeSession(_ context.Context, p acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	s, err := a.reopen(string(p.SessionId), p.Cwd)
	if err != nil {
		return acp.ResumeSessionResponse{}, err
	}
	var mode string
	s.look(func(r *record) { mode = r.Mode })
	return acp.ResumeSessionResponse{Modes: modeState(mode)}, nil
}

// reopen finds a session that is open or has a file.
func (a *agent) reopen(id, cwd string) (*session, error) {
	if err := requireAbsolute(cwd); err != nil {
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
	s.change(func(r *record) { r.Cwd = cwd })
	return s, nil
}

// open is the session that the client made, loaded or resumed in this process.
func (a *agent) open(id acp.SessionId) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[string(id)]; s != nil {
		return s, nil
	}
	return nil, sessionError(string(id), errNoSession)
}

func (a *agent) CloseSession(_ context.Context, p acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	s, err := a.open(p.SessionId)
	if err != nil {
		return acp.CloseSessionResponse{}, err
	}
	s.close()
	a.mu.Lock()
	delete(a.sessions, string(p.SessionId))
	a.mu.Unlock()
	return acp.CloseSessionResponse{}, nil
}

// ListSessions tells the sessions that have files, those made last first; the
// cursor is the last id of the page before.
func (a *agent) ListSessions(_ context.Context, p acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	resp := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
	for _, id := range a.store.ids() {
		if p.Cursor != nil && id >= *p.Cursor {
			continue
		}
		if len(resp.Sessions) == pageSize {
			resp.NextCursor = acp.Ptr(string(resp.Sessions[pageSize-1].SessionId))
			break
		}
		rec, err := a.store.load(id)
		if err != nil || p.Cwd != nil && filepath.Clean(*p.Cwd) != filepath.Clean(rec.Cwd) {
			continue
		}
		info := acp.SessionInfo{SessionId: acp.SessionId(id), Cwd: rec.Cwd, UpdatedAt: acp.Ptr(rec.Updated.Format("2006-01-02T15:04:05.000Z"))}
		if len(rec.Turns) > 0 {
			info.Title = acp.Ptr(quote(rec.Turns[0].Asked))
		}
		resp.Sessions = append(resp.Sessions, info)
	}
	return resp, nil
}

func (a *agent) SetSessionMode(_ context.Context, p acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	s, err := a.open(p.SessionId)
	if err != nil {
		return acp.SetSessionModeResponse{}, err
	}
	mode, err := findMode(string(p.ModeId))
	if err != nil {
		return acp.SetSessionModeResponse{}, err
	}
	s.change(func(r *record) { r.Mode = mode })
	return acp.SetSessionModeResponse{}, nil
}

// Cancel ends the session's turns. That of a session that is not open has
// none; a notification is not answered anyway.
func (a *agent) Cancel(_ context.Context, p acp.CancelNotification) error {
	if s, err := a.open(p.SessionId); err == nil {
		s.cancel()
	}
	return nil
}

func modeState(current string) *acp.SessionModeState {
	return &acp.SessionModeState{AvailableModes: slices.Clone(modes), CurrentModeId: acp.SessionModeId(current)}
}

func findMode(id string) (string, error) {
	for _, m := range modes {
		if strings.EqualFold(string(m.Id), id) {
			return string(m.Id), nil
		}
	}
	return "", refusal(-32602, fmt.Sprintf("there is no mode %q", id))
}

func requireAbsolute(cwd string) error {
	if !filepath.IsAbs(cwd) {
		return refusal(-32602, fmt.Sprintf("cwd must be an absolute path, got %q", cwd))
	}
	return nil
}

// sessionError is what the client is told; -32002 is the protocol's
// "resource not found".
func sessionError(id string, err error) error {
	if errors.Is(err, errNoSession) {
		return refusal(-32002, fmt.Sprintf("%v: %q", err, cut(id, 100)))
	}
	return err
}

func refusal(code int, message string) error {
	return &acp.RequestError{Code: code, Message: message}
}

// DefaultDelay is a pace of streamed text that a human can watch.
const DefaultDelay = 15 * time.Millisecond

// leaveWithin is how long Serve waits for turns once its input has ended.
// Only a turn that writes to an output nobody reads needs it.
const leaveWithin = 200 * time.Millisecond

// registerWithin is how long the input waits for a prompt to be registered or refused. Only a
// prompt whose parameters the SDK refuses takes that long.
const registerWithin = 5 * time.Second

// ErrCrash is returned by Serve when a prompt asked for a crash. The process
// is meant to exit with [CrashStatus] at once.
var ErrCrash = errors.New("the demo agent was asked to crash")

// CrashStatus is the exit status of a process that was asked to crash.
const CrashStatus = 3

// Options say how an agent behaves. The zero value works: no pauses between
// chunks, sessions in memory only, nothing said on standard error.
type Options struct {
	StateDir string        // where sessions are kept, made with mode 0700; "" keeps them in memory only
	Delay    time.Duration // between chunks of text and of thoughts; 0 is as fast as possible
	Version  string        // told to the client; "" is told as "dev"
	Stderr   io.Writer     // diagnostics and the last line before a crash; nil drops them
	Protocol int           // the newest version of the protocol to speak, where the client asks for it; 0 is [NewestProtocol]
	OnHang   func()        // called when a prompt asked it to hang, so that the process can ignore signals; may be nil
}

// DefaultStateDir is where sessions are kept if nothing else is said:
// $DUET_STATE_HOME/demo, else $XDG_STATE_HOME/duet/demo, else ~/.local/state/duet/demo.
// It fails where there is no home directory.
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

// Serve is an agent for one client: it reads from in and writes whole lines to
// out until in ends (nil), reading fails, ctx is done (its error) or a prompt
// asks for a crash ([ErrCrash]). It is gone within 200 ms of that, also with a
// turn under way or hanging, and writes nothing to out afterwards. A goroutine
// that reads in stays until that read returns. A line of more than 10 MiB ends
// the connection.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts Options) error {
	if opts.Stderr == nil {
		opts.Stderr = io.Discard
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	lines := &lineWriter{w: out}
	defer lines.close()

	a := newAgent(ctx, lines, opts)
	peer, feed := io.Pipe()
	a.conn = acp.NewAgentSideConnection(a, a.v2, peer)
	a.conn.SetLogger(slog.New(slog.NewTextHandler(opts.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))

	// Only now may the connection read: it uses the logger and we use a.conn.
	ended := make(chan error, 1)
	go func() { ended <- a.forward(in, feed) }()
	var err error
	select {
	case err = <-ended:
	case <-a.conn.Done(): // a line that is too long
		err = errors.New("the connection broke")
	case <-a.crashed:
		fmt.Fprintf(opts.Stderr, "duet-rpc demo-agent: %v\n", ErrCrash)
		err = ErrCrash
	case <-ctx.Done():
		err = ctx.Err()
	}
	lines.close()
	end()
	feed.Close()
	peer.Close()
	a.v2.terminals.kill()
	left := make(chan struct{})
	go func() { a.endTurns(); a.v2.terminals.close(); close(left) }()
	select {
	case <-left:
	case <-time.After(leaveWithin):
	}
	return err
}

// forward copies lines from in to the connection. The connection handles
// requests beside each other, so that a cancel right behind its prompt could
// come before it: nothing follows a prompt until its turn is registered.
func (a *agent) forward(in io.Reader, feed io.Writer) error {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			var err error
			if line, err = a.v2.fromClient(line); err != nil {
				return err
			}
		}
		if len(line) > 0 {
			prompt := bytes.Contains(line, []byte(`"`+acp.AgentMethodSessionPrompt+`"`))
			if prompt {
				select {
				case <-a.registered: // one that came late
				default:
				}
			}
			if _, err := feed.Write(line); err != nil {
				return fmt.Errorf("reading the client's messages: %w", err)
			}
			if prompt {
				select {
				case <-a.registered:
				case <-time.After(registerWithin):
				case <-a.ctx.Done():
				}
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("reading the client's messages: %w", err)
		}
	}
}
