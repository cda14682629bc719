package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

const within = time.Minute

// must returns the value of a call that may not fail: must(f(x))(t).
func must[T any](value T, err error) func(t testing.TB, why ...any) T {
	return func(t testing.TB, why ...any) T {
		t.Helper()
		require.NoError(t, err, why...)
		return value
	}
}

type play = func(context.Context, *fakeTurn) catalog.ExecutePromptResult

// agents knows one agent, called fake.
type agents struct{ driver string }

func (a agents) Resolve(name string) (config.Agent, error) {
	if name != "" && name != "fake" {
		return config.Agent{}, &config.UnknownAgentError{Name: name, Known: []string{"fake"}}
	}
	driver := a.driver
	if driver == "" {
		driver = "acp"
	}
	return config.Agent{Name: "fake", Driver: driver, Command: []string{"fake"}}, nil
}

// executors runs prompts in the test process; play is the agent.
type executors struct {
	daemon catalog.Daemon
	play   func(context.Context, *fakeTurn) catalog.ExecutePromptResult

	set func(catalog.SetSessionParams) catalog.SetSessionResult // nil: unsupported

	release func(catalog.ReleaseSessionParams) catalog.ReleaseSessionResult

	yield func(catalog.YieldTurnParams) string // nil: no agent accepts prompts while it works

	commands func(context.Context, catalog.Daemon, catalog.RunCommandParams) (catalog.RunCommandResult, error) // nil: unsupported

	// hub, if set, is the hub whose checkpoints the agent lets finish before it begins, as a real one does
	// while its model works.
	hub atomic.Pointer[Hub]

	mu    sync.Mutex
	stops map[string]context.CancelFunc
}

func (x *executors) Acquire(context.Context, catalog.LeaseRequest) (catalog.Lease, error) {
	return &leased{executors: x}, nil
}
func (x *executors) Count() int                        { return 1 }
func (x *executors) HasRoom(catalog.LeaseRequest) bool { return true }

// leased is the executor that all agents share.
type leased struct {
	catalog.Executor
	*executors
}

func (l *leased) Release() {}
func (l *leased) Kill()    {}

func (l *leased) PauseNotifications(context.Context) error  { return nil }
func (l *leased) ResumeNotifications(context.Context) error { return nil }

func (l *leased) SetSession(_ context.Context, p catalog.SetSessionParams) (catalog.SetSessionResult, error) {
	if l.set == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}, nil
	}
	return l.set(p), nil
}

func (l *leased) ReleaseSession(_ context.Context, p catalog.ReleaseSessionParams) (catalog.ReleaseSessionResult, error) {
	return l.release(p), nil
}

func (l *leased) YieldTurn(_ context.Context, p catalog.YieldTurnParams) (catalog.YieldTurnResult, error) {
	if l.yield == nil {
		return catalog.YieldTurnResult{Outcome: catalog.YieldRefused}, nil
	}
	return catalog.YieldTurnResult{Outcome: l.yield(p)}, nil
}

// RunCommand runs a command until it ends or is stopped.
func (l *leased) RunCommand(ctx context.Context, p catalog.RunCommandParams) (catalog.RunCommandResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.stops[p.CommandID] = cancel
	l.mu.Unlock()
	return l.executors.commands(ctx, l.daemon, p)
}

func (l *leased) StopCommand(_ context.Context, p catalog.StopCommandParams) (catalog.StopCommandResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stops[p.CommandID]()
	return catalog.StopCommandResult{}, nil
}

func (l *leased) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.stops[p.TaskID] = cancel
	l.mu.Unlock()
	if h := l.hub.Load(); h != nil {
		_ = h.checkpoints.settle(ctx, p.CWD)
	}
	result := l.play(ctx, &fakeTurn{p: p, daemon: l.daemon})
	if result.Status == lost.Status {
		return catalog.ExecutePromptResult{}, errors.New("the link is gone")
	}
	return result, nil
}

// lost is the result of an agent whose executor dies.
var lost = catalog.ExecutePromptResult{Status: "lost"}

func (l *leased) StopTask(_ context.Context, p catalog.StopTaskParams) (catalog.StopTaskResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cancel := l.stops[p.TaskID]
	if cancel == nil {
		return catalog.StopTaskResult{}, nil
	}
	cancel()
	return catalog.StopTaskResult{Stopped: true}, nil
}

// turn is one prompt, as the agent of a test sees it.
type fakeTurn struct {
	p      catalog.ExecutePromptParams
	daemon catalog.Daemon
	n      int64
}

func (x *fakeTurn) report(kind string, data any) {
	x.n++
	_ = x.daemon.ReportMessage(context.Background(), catalog.ReportMessageParams{
		SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, Sequence: x.n, EventType: kind, EventData: encode(data),
	})
}

func (x *fakeTurn) say(text string) {
	x.report(catalog.EventContentDelta, catalog.ContentDelta{Delta: catalog.Delta{Text: text}})
}

func (x *fakeTurn) ask(ctx context.Context, tool string, input any) catalog.RequestPermissionResult {
	r, err := x.request(ctx, catalog.RequestPermissionParams{
		SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, ToolName: tool, ToolInput: encode(input), ToolUseID: "call-" + x.p.TaskID, ToolKind: "edit",
	})
	if err != nil {
		r.Reason = err.Error()
	}
	return r
}

// request asks for permission and reports that the agent continues from the answer.
func (x *fakeTurn) request(ctx context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	r, err := x.daemon.RequestPermission(ctx, p)
	if r.ApprovalID != "" {
		_ = x.daemon.ReportMessage(context.Background(), catalog.ReportMessageParams{
			SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, EventType: catalog.EventPermissionTaken,
			EventData: encode(catalog.PermissionTaken{ApprovalIDs: []string{r.ApprovalID}}),
		})
	}
	return r, err
}

var completed = catalog.ExecutePromptResult{Status: catalog.StatusCompleted, StopReason: "end_turn"}

// openHub opens a hub whose agent is play.
func openHub(t *testing.T, database string, play func(context.Context, *fakeTurn) catalog.ExecutePromptResult, change ...func(*Options)) *Hub {
	t.Helper()
	x := &executors{play: play}
	h := openHubOf(t, database, x, change...)
	x.hub.Store(h)
	return h
}

// openHubOf is openHub with an agent that acts as soon as it has its prompt.
func openHubOf(t *testing.T, database string, x *executors, change ...func(*Options)) *Hub {
	t.Helper()
	x.stops = make(map[string]context.CancelFunc)
	project := &fakeProject{Agents: agents{}, openStore: sqlite.Opener(database), unchanged: make(chan struct{})}
	opts := Options{
		Project: project, Configuration: project, Database: database, Root: filepath.Dir(database),
		Limits:    config.Limits{MaxTurns: 3, QueueCap: 1000, TurnTimeout: time.Hour},
		Getenv:    func(string) string { return "" },
		Executors: func(d catalog.Daemon) Executors { x.daemon = d; return x },
	}
	for _, f := range change {
		f(&opts)
	}
	h := must(Open(context.Background(), opts))(t)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	return h
}

// withoutPolling disables polling for a removed database, for tests that let days pass.
func withoutPolling(o *Options) { o.Removed = make(chan struct{}) }

// migrated returns an empty migrated database. Copying it is faster than migrating one for each
// test.
var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "duet")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "duet.db")
	s, err := sqlite.Open(context.Background(), path, store.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func database(t *testing.T) string {
	t.Helper()
	empty := must(migrated())(t)
	path := filepath.Join(t.TempDir(), "duet.db")
	require.NoError(t, os.WriteFile(path, empty, 0o600))
	return path
}

// collected is what a subscriber received.
type collected struct {
	testkit.Witness // guards list
	list            []eventlog.Notice
}

func (c *collected) deliver(_ context.Context, n eventlog.Notice) error {
	c.Note(func() { c.list = append(c.list, n) })
	return nil
}

// until waits until enough returns true.
func (c *collected) until(t *testing.T, enough func() bool) {
	t.Helper()
	c.Await(t, enough, "a subscriber is notified")
}

func (c *collected) kinds() []domain.EventKind {
	c.Lock()
	defer c.Unlock()
	return each(c.list, func(n eventlog.Notice) domain.EventKind { return n.Payload.Kind() })
}

func subscribe(t *testing.T, h *Hub, f eventlog.Subscribing, since int64) *collected {
	t.Helper()
	c := &collected{}
	f.Since = since
	s := must(h.events.Subscribe(context.Background(), f, c.deliver))(t)
	s.Start()
	t.Cleanup(s.Close)
	return c
}

func launch(t *testing.T, h *Hub, prompt string) domain.TurnInSession {
	t.Helper()
	return must(h.Launch(context.Background(), LaunchSpec{Prompt: prompt, Source: domain.SourceTask}))(t)
}

func await(t *testing.T, h *Hub, s domain.TurnInSession) domain.TurnInSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return must(h.Await(ctx, s.UUID))(t)
}

// hang works until it is stopped.
func hang(ctx context.Context, _ *fakeTurn) catalog.ExecutePromptResult {
	<-ctx.Done()
	return catalog.ExecutePromptResult{Status: catalog.StatusCancelled, StopReason: "cancelled"}
}

// worksUntil works until released or stopped.
func worksUntil(ctx context.Context, released <-chan struct{}) catalog.ExecutePromptResult {
	select {
	case <-released:
	case <-ctx.Done():
	}
	return completed
}

// leaves completes at once and leaves the daemon for what the agent reports between its turns.
func leaves(daemon *catalog.Daemon) play {
	return func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		*daemon = x.daemon
		return completed
	}
}

// requests asks for the permission that of returns and says the answer.
func requests(of func(*fakeTurn) catalog.RequestPermissionParams) play {
	return func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		p := of(x)
		p.SessionToken = x.p.SessionToken
		r, err := x.request(ctx, p)
		if err != nil || r.Cancelled {
			return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
		}
		x.say(verdictText(r) + string(r.UpdatedInput))
		return completed
	}
}

// askOnce asks to write and says the answer.
func askOnce(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
	r := x.ask(ctx, "Write", map[string]string{"file_path": x.p.Prompt})
	if r.Cancelled || ctx.Err() != nil {
		return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
	}
	x.say(verdictText(r))
	return completed
}

// always returns a constant part of a configuration.
func always[T any](part T) func() T { return func() T { return part } }

func verdictText(r catalog.RequestPermissionResult) string {
	if r.Approved {
		return "yes " + r.Reason
	}
	return "no " + r.Reason
}

// until waits until isSo, and checks after each announced event.
func until(t *testing.T, h *Hub, isSo func() bool, what string) {
	t.Helper()
	var announced testkit.Witness
	defer h.Events().Watch(func(domain.Event, domain.TurnInSession) { announced.Note(func() {}) }).Stop()
	announced.Await(t, isSo, what)
}

// pendingOf waits until n approvals are open.
func pendingOf(t *testing.T, h *Hub, n int) (list []domain.Approval) {
	t.Helper()
	until(t, h, func() bool {
		list, _ = h.Approvals().Pending(context.Background(), "")
		return len(list) == n
	}, fmt.Sprintf("%d questions", n))
	return list
}

// inState waits until a turn is in a state.
func inState(t *testing.T, h *Hub, s domain.TurnInSession, state domain.State) (now domain.TurnInSession) {
	t.Helper()
	until(t, h, func() bool {
		var err error
		now, err = h.query.Turn(context.Background(), s.UUID)
		return err == nil && now.State == state
	}, string(state))
	return now
}

func decide(t *testing.T, h *Hub, d approval.Decision) approval.Answered {
	t.Helper()
	return must(h.Approvals().Decide(context.Background(), d))(t)
}

func approve(t *testing.T, h *Hub, a domain.Approval, scope string) {
	t.Helper()
	decide(t, h, approval.Decision{ID: a.ID, Decision: "approve", Scope: scope})
}

// sessionOf returns a session as it is now, by any of its ids.
func turnOf(t *testing.T, h *Hub, id string) domain.TurnInSession {
	t.Helper()
	return must(h.query.Turn(context.Background(), id))(t)
}

func transcriptOf(t *testing.T, h *Hub, id string) query.Transcript {
	t.Helper()
	return must(h.query.Transcript(context.Background(), id, query.Page{}))(t)
}

// errorOf returns the error of a call that has to fail.
func errorOf[T any](_ T, err error) error { return err }

// refusal returns the error of the hub that err is.
func refusal(t *testing.T, err error, why ...any) *domain.Error {
	t.Helper()
	var refused *domain.Error
	require.ErrorAs(t, err, &refused, why...)
	return refused
}

// kindOf returns the kind of a hub error.
func kindOf(t *testing.T, err error) string {
	t.Helper()
	return refusal(t, err).Kind
}

// each returns of(x) for every x of a list.
func each[T, R any](list []T, of func(T) R) (all []R) {
	for _, x := range list {
		all = append(all, of(x))
	}
	return all
}

func promptOf(s domain.TurnInSession) string { return s.Prompt }

// launchIn launches a turn in a session named by alias.
func launchIn(t *testing.T, h *Hub, session, prompt string) domain.TurnInSession {
	t.Helper()
	return must(h.Launch(context.Background(), LaunchSpec{Prompt: prompt, Source: domain.SourceTask, SessionAlias: session}))(t)
}

func (c *collected) all() []eventlog.Notice {
	c.Lock()
	defer c.Unlock()
	return append([]eventlog.Notice{}, c.list...)
}

// states returns the received transitions, such as "draft queued".
func (c *collected) states() (list []string) {
	for _, n := range c.all() {
		if p, ok := n.Payload.(domain.TurnStateChanged); ok {
			list = append(list, string(p.From+" "+p.To))
		}
	}
	return list
}

// prompts records the prompts that an agent got, in order.
type prompts struct {
	mu   sync.Mutex
	list []string
}

func (p *prompts) add(x *fakeTurn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, x.p.Prompt)
}

func (p *prompts) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.list...)
}

// insert stores a turn in a state without its history.
func insert(t *testing.T, h *Hub, state domain.State) domain.Turn {
	t.Helper()
	r := newTurn(LaunchSpec{Prompt: "p", Source: domain.SourceTask}, "fake")
	require.NoError(t, h.store.Write(context.Background(), func(tx store.Tx) error {
		session := domain.Session{UUID: r.UUID + "-session", CWD: "/", Agent: "fake", Mode: "default", Created: tx.Now(), Active: tx.Now()}
		if err := h.addSession(tx, &session, ""); err != nil {
			return err
		}
		r.Session, r.State, r.Created, r.Active = session.ID, state, tx.Now(), tx.Now()
		return tx.InsertTurn(&r)
	}))
	return r
}

// encode returns v as JSON.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
