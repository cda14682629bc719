package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	_ "github.com/duet-rpc/duet-rpc/internal/golden" // for go test ./... -update
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// executors run prompts in the test's process: play is the agent.
type executors struct {
	daemon catalog.Daemon
	play   func(context.Context, *turn) catalog.ExecutePromptResult

	mu    sync.Mutex
	stops map[string]context.CancelFunc
}

func (x *executors) Acquire(context.Context, catalog.LeaseRequest) (catalog.Lease, error) {
	return &leased{executors: x}, nil
}
func (x *executors) Count() int                        { return 1 }
func (x *executors) HasRoom(catalog.LeaseRequest) bool { return true }

// leased is the executor that all share.
type leased struct {
	catalog.Executor
	*executors
}

func (l *leased) Release() {}
func (l *leased) Kill()    {}

func (l *leased) PauseNotifications(context.Context) error  { return nil }
func (l *leased) ResumeNotifications(context.Context) error { return nil }

func (l *leased) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.stops[p.TaskID] = cancel
	l.mu.Unlock()
	result := l.play(ctx, &turn{p: p, daemon: l.daemon})
	if result.Status == lost.Status {
		return catalog.ExecutePromptResult{}, errors.New("the link is gone")
	}
	return result, nil
}

// lost is what an agent returns whose executor dies.
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

// A turn is one prompt, as the agent of a test sees it.
type turn struct {
	p      catalog.ExecutePromptParams
	daemon catalog.Daemon
	n      int64
}

func (x *turn) report(kind string, data any) {
	x.n++
	_ = x.daemon.ReportMessage(context.Background(), catalog.ReportMessageParams{
		SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, Sequence: x.n, EventType: kind, EventData: encode(data),
	})
}

func (x *turn) say(text string) {
	x.report(catalog.EventContentDelta, catalog.ContentDelta{Delta: catalog.Delta{Text: text}})
}

func (x *turn) ask(ctx context.Context, tool string, input any) catalog.RequestPermissionResult {
	r, err := x.request(ctx, catalog.RequestPermissionParams{
		SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, ToolName: tool, ToolInput: encode(input), ToolUseID: "call-" + x.p.TaskID, ToolKind: "edit",
	})
	if err != nil {
		r.Reason = err.Error()
	}
	return r
}

// request asks, and goes on from the answer, which its executor tells.
func (x *turn) request(ctx context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
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
func openHub(t *testing.T, database string, play func(context.Context, *turn) catalog.ExecutePromptResult, change ...func(*Options)) *Hub {
	t.Helper()
	x := &executors{play: play, stops: make(map[string]context.CancelFunc)}
	opts := Options{
		OpenStore: sqlite.Opener(database, ""), Database: database, Root: filepath.Dir(database), Agents: agents{}, Limits: config.Limits{MaxRuns: 3, QueueCap: 1000, RunTimeout: time.Hour},
		Getenv:    func(string) string { return "" },
		Executors: func(d catalog.Daemon) Executors { x.daemon = d; return x },
	}
	for _, f := range change {
		f(&opts)
	}
	h, err := Open(context.Background(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	return h
}

func database(t *testing.T) string { return filepath.Join(t.TempDir(), "duet.db") }

// A log collects what a subscriber gets.
type collected struct {
	mu   sync.Mutex
	list []eventlog.Notice
}

func (c *collected) deliver(_ context.Context, n eventlog.Notice) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, n)
	return nil
}

func (c *collected) kinds() []domain.EventKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []domain.EventKind
	for _, n := range c.list {
		list = append(list, n.Payload.Kind())
	}
	return list
}

func subscribe(t *testing.T, h *Hub, f eventlog.Subscribing, since int64) *collected {
	t.Helper()
	c := &collected{}
	f.Since = since
	s, err := h.events.Subscribe(context.Background(), f, c.deliver)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(s.Close)
	return c
}

func launch(t *testing.T, h *Hub, prompt string) domain.Session {
	t.Helper()
	s, err := h.Launch(context.Background(), LaunchSpec{Prompt: prompt, Source: domain.SourceTask})
	require.NoError(t, err)
	return s
}

func await(t *testing.T, h *Hub, s domain.Session) domain.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	s, err := h.Await(ctx, s.UUID)
	require.NoError(t, err)
	return s
}

func TestARunIsFoldedIntoItsConversation(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.say("Hel")
		x.say("lo")
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)})
		x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "1", Status: "completed", Result: json.RawMessage(`"a.txt"`)})
		x.say("Done.")
		return completed
	})
	events := subscribe(t, h, eventlog.Subscribing{}, -1)
	s := await(t, h, launch(t, h, "say hello"))
	assert.Equal(t, domain.Completed, s.State)
	assert.Equal(t, "Done.", s.Result)
	assert.Equal(t, "task-0001", domain.TaskName(s.Task))

	c, err := h.Conversation(context.Background(), s.SessionID, Page{})
	require.NoError(t, err)
	var said []string
	for _, e := range c.Entries {
		said = append(said, fmt.Sprint(e.Kind, "/", e.Role, "/", e.Content, e.Tool, "/", e.Result))
	}
	assert.Equal(t, []string{"message/user/say hello/", "message/assistant/Hello/", "tool_call/assistant/Bash/a.txt", "message/assistant/Done./"}, said)

	require.Eventually(t, func() bool {
		told := events.kinds()
		return slices.Contains(told, domain.EventDelta) && told[len(told)-1] == domain.EventRunState
	}, time.Minute, time.Millisecond)
	hits, err := h.Search(context.Background(), "hel", 10, 0)
	require.NoError(t, err)
	assert.Len(t, hits, 2)
}

func TestAQuestionWaitsForTheFirstAnswer(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		r := x.ask(ctx, "Write", map[string]string{"file_path": "a"})
		x.say(fmt.Sprint(r.Approved, " ", r.Reason, " ", string(r.UpdatedInput)))
		return completed
	})
	s := launch(t, h, "write")
	var pending []domain.Approval
	require.Eventually(t, func() bool {
		pending, _ = h.Approvals().Pending(context.Background(), "")
		return len(pending) == 1
	}, time.Minute, time.Millisecond)
	now, err := h.Session(context.Background(), s.RunID)
	require.NoError(t, err)
	assert.Equal(t, domain.WaitingInput, now.State)

	_, err = h.Approvals().Decide(context.Background(), approval.Decision{ID: pending[0].ID, Decision: "deny"})
	assert.ErrorContains(t, err, "comment")
	_, err = h.Approvals().Decide(context.Background(), approval.Decision{ID: pending[0].CallID, Decision: "approve", UpdatedInput: json.RawMessage(`{"file_path":"b"}`)})
	require.NoError(t, err)
	_, err = h.Approvals().Decide(context.Background(), approval.Decision{ID: pending[0].ID, Decision: "deny", Comment: "no"})
	assert.ErrorContains(t, err, "already decided with status: approved")
	s = await(t, h, s)
	assert.Equal(t, `true user_approved {"file_path":"b"}`, s.Result)
}

func TestARunThatWaitsIsResumedByItsAnswerAfterTheProcessDied(t *testing.T) {
	path := database(t)
	play := func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		r := x.ask(ctx, "Write", map[string]string{"file_path": "a"})
		if ctx.Err() != nil || r.Cancelled {
			return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
		}
		x.say("answered " + r.Reason)
		return completed
	}
	h := openHub(t, path, play)
	s := launch(t, h, "write")
	require.Eventually(t, func() bool { p, _ := h.Approvals().Pending(context.Background(), ""); return len(p) == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, h.Close())

	h = openHub(t, path, play)
	events := subscribe(t, h, eventlog.Subscribing{}, -1)
	require.Eventually(t, func() bool { return len(events.kinds()) == 1 }, time.Minute, time.Millisecond, "the question is shown again")
	pending, err := h.Approvals().Pending(context.Background(), s.SessionID)
	require.NoError(t, err)
	require.Len(t, pending, 1)
	assert.True(t, pending[0].Stale)
	left, err := h.Session(context.Background(), s.SessionID)
	require.NoError(t, err)
	assert.Equal(t, domain.Interrupted, left.State)

	_, err = h.Approvals().Decide(context.Background(), approval.Decision{ID: pending[0].ID, Decision: "approve"})
	require.NoError(t, err)
	next, err := h.Session(context.Background(), left.Thread.UUID)
	require.NoError(t, err)
	assert.Equal(t, left.SessionID, next.ParentSession)
	assert.Equal(t, "answered user_approved", await(t, h, next).Result)
}

func TestInterruptEndsARunInEveryState(t *testing.T) {
	begun, seen := make(chan struct{}, 10), make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		begun <- struct{}{}
		if x.p.Prompt == "ask" {
			x.ask(ctx, "Write", nil)
		}
		<-ctx.Done()
		<-seen // it takes an agent some time to end
		return catalog.ExecutePromptResult{Status: catalog.StatusCancelled, StopReason: "cancelled"}
	}, func(o *Options) { o.Limits.MaxRuns = 1 })
	first := launch(t, h, "work")
	<-begun
	second := launch(t, h, "wait in the queue")
	assert.Equal(t, domain.Queued, second.State)
	got, err := h.Interrupt(context.Background(), second.UUID, "")
	require.NoError(t, err)
	assert.Equal(t, domain.Cancelled, got.State)
	got, err = h.Interrupt(context.Background(), first.UUID, "")
	require.NoError(t, err)
	assert.Equal(t, domain.Interrupting, got.State)
	close(seen)
	assert.Equal(t, domain.Interrupted, await(t, h, first).State)
	_, err = h.Interrupt(context.Background(), first.UUID, "")
	assert.ErrorContains(t, err, "has ended already")

	third := launch(t, h, "ask")
	<-begun
	require.Eventually(t, func() bool { p, _ := h.Approvals().Pending(context.Background(), ""); return len(p) == 1 }, time.Minute, time.Millisecond)
	fourth := launch(t, h, "a run that waits for a human gives its slot up")
	<-begun
	for _, s := range []domain.Session{third, fourth} {
		_, err = h.Interrupt(context.Background(), s.UUID, "")
		require.NoError(t, err)
		assert.Equal(t, domain.Interrupted, await(t, h, s).State)
	}
	p, err := h.Approvals().Pending(context.Background(), "")
	require.NoError(t, err)
	assert.Empty(t, p, "its question is closed")
}

func TestAReportedEndCountsIfTheAnswerIsLost(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		_ = x.daemon.ReportCompletion(ctx, catalog.ReportCompletionParams{SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, Status: catalog.StatusCompleted})
		return lost
	})
	assert.Equal(t, domain.Completed, await(t, h, launch(t, h, "work")).State)
}

func TestAQuestionOutlivesItsAgent(t *testing.T) {
	for name, end := range map[string]catalog.ExecutePromptResult{
		"the agent dies":    {Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: codeAgentExited, Message: "gone"}},
		"the executor dies": lost,
	} {
		t.Run(name, func(t *testing.T) {
			var turns atomic.Int32
			h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
				if turns.Add(1) > 1 {
					r := x.ask(ctx, "Write", map[string]string{"file_path": "a"})
					x.say(r.Reason)
					return completed
				}
				asking, cut := context.WithCancel(ctx)
				go x.ask(asking, "Write", map[string]string{"file_path": "a"})
				for pending := []domain.Approval{}; len(pending) == 0 && ctx.Err() == nil; {
					pending, _ = x.daemon.(daemon).Approvals().Pending(ctx, "")
				}
				cut()
				return end
			})
			s := await(t, h, launch(t, h, "write a file"))
			pending, err := h.Approvals().Pending(context.Background(), s.SessionID)
			require.NoError(t, err)
			require.Len(t, pending, 1)
			assert.True(t, pending[0].Stale)
			_, err = h.Approvals().Decide(context.Background(), approval.Decision{ID: pending[0].ID, Decision: "approve"})
			require.NoError(t, err)
			next, err := h.Session(context.Background(), s.Thread.UUID)
			require.NoError(t, err)
			assert.Contains(t, next.Prompt, "write a file", "the agent may have lost the turn")
			assert.Equal(t, "user_approved", await(t, h, next).Result)
		})
	}
}

func TestAQuestionBeforeItsToolCallIsShownAtIt(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.ask(ctx, "Write", map[string]string{"file_path": "a"})
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "call-" + x.p.TaskID, Tool: "Write", Title: "Write a", Status: "completed"})
		return completed
	})
	s := launch(t, h, "write")
	require.Eventually(t, func() bool { p, _ := h.Approvals().Pending(context.Background(), ""); return len(p) == 1 }, time.Minute, time.Millisecond)
	for _, status := range []string{"pending", "approved"} {
		c, err := h.Conversation(context.Background(), s.SessionID, Page{})
		require.NoError(t, err)
		require.Len(t, c.Entries, 2)
		require.NotNil(t, c.Entries[1].Approval)
		assert.Equal(t, status, c.Entries[1].Approval.Status)
		if status == "pending" {
			_, err = h.Approvals().Decide(context.Background(), approval.Decision{ID: c.Entries[1].Approval.ID, Decision: "approve"})
			require.NoError(t, err)
			await(t, h, s)
		}
	}
}

// Whoever drains is told when the last run that works has ended, or waits for a
// human.
func TestDrainReturnsAtOnceWhenNothingWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
			switch x.p.Prompt {
			case "asks":
				time.Sleep(7 * time.Millisecond)
				x.ask(ctx, "Write", nil)
			case "works":
				time.Sleep(13 * time.Millisecond)
			default:
				<-ctx.Done()
			}
			return completed
		})
		inState(t, h, launch(t, h, "works"), domain.Running)
		inState(t, h, launch(t, h, "asks"), domain.Running)
		began := time.Now()
		h.Drain(t.Context())
		assert.LessOrEqual(t, time.Since(began), 13*time.Millisecond)
		assert.Len(t, pendingOf(t, h, 1), 1, "the question waits")
		h.Drain(t.Context())
		assert.LessOrEqual(t, time.Since(began), 15*time.Millisecond)
	})
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), hang)
		inState(t, h, launch(t, h, "p"), domain.Running)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		h.Drain(ctx)
		assert.Equal(t, time.Hour, time.Since(began).Round(time.Second))
	})
}
