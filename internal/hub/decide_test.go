package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

func TestOfManyAnswersTheFirstCounts(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	events := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventApprovalResolved}}, -1)
	s := launch(t, h, "a")
	a := pendingOf(t, h, 1)[0]
	var all sync.WaitGroup
	var won, lost atomic.Int64
	var decision atomic.Value
	for i := range 50 {
		all.Go(func() {
			d := approval.Decision{ID: a.ID, Decision: "approve"}
			if i%2 == 1 {
				d = approval.Decision{ID: a.CallID, Decision: "deny", Comment: fmt.Sprint("no ", i)}
			}
			got, err := h.Approvals().Decide(context.Background(), d)
			var failed *domain.Error
			switch {
			case err == nil:
				won.Add(1)
				decision.Store(got.Status)
			case errors.As(err, &failed) && failed.Kind == domain.KindAlreadyDecided:
				lost.Add(1)
			default:
				t.Errorf("unexpected: %v", err)
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 1, won.Load())
	assert.EqualValues(t, 49, lost.Load())
	result := await(t, h, s).Result
	if decision.Load() == domain.ApprovalApproved {
		assert.Equal(t, "yes user_approved", result)
	} else {
		assert.Equal(t, "no user_denied", result)
	}
	events.until(t, func() bool { return len(events.all()) == 1 })
}

func TestWhatIsNoDecision(t *testing.T) {
	h := openHub(t, database(t), hang)
	s := inState(t, h, launch(t, h, "p"), domain.Running)
	call := must(h.Approvals().Create(context.Background(), approval.Spec{Turn: s.HumanLayerRun, Tool: "Write", Input: json.RawMessage(`{"a":1}`)}))(t)
	human := must(h.Approvals().Create(context.Background(), approval.Spec{Turn: s.HumanLayerRun, Type: domain.HumanContact, Title: "Which?"}))(t)
	assert.Equal(t, domain.KindInvalid, kindOf(t, errorOf(h.Approvals().Decide(context.Background(), approval.Decision{Decision: "approve"}))), "no id")
	_, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: "nobody", Decision: "approve"})
	assert.Equal(t, domain.KindApprovalNotFound, kindOf(t, err))
	assert.Equal(t, domain.KindApprovalNotFound, kindOf(t, errorOf(h.Approvals().Find(context.Background(), "nobody"))))
	shown := must(h.Approvals().Find(context.Background(), human.ID[:8]))(t, "what is shown of an id is enough")
	assert.Equal(t, human.ID, shown.ID)
	assert.Equal(t, domain.KindApprovalNotFound, kindOf(t, errorOf(h.Approvals().Find(context.Background(), human.ID[:7]))))
	assert.Equal(t, domain.WaitingInput, inState(t, h, s, domain.WaitingInput).State)
	approve(t, h, call, "once")
	assert.Equal(t, domain.WaitingInput, inState(t, h, s, domain.WaitingInput).State, "another one waits")
	got := decide(t, h, approval.Decision{ID: human.ID, Decision: approval.Respond, Comment: "this"})
	assert.Equal(t, []any{domain.ApprovalResponded, "this"}, []any{got.Status, got.Response})
	inState(t, h, s, domain.Running)
}

func TestTheAnswerToAHumanContactIsAnOptionOrAText(t *testing.T) {
	question := func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		r, err := x.request(ctx, catalog.RequestPermissionParams{
			SessionToken: x.p.SessionToken, ToolName: "AskUser", Title: "Which?", IsQuestion: true, ToolUseID: x.p.TaskID,
			Options: []catalog.PermissionOption{{OptionID: "o1", Name: "First"}, {OptionID: "o2", Name: "Second"}},
		})
		if err != nil {
			return hang(ctx, x)
		}
		x.say(r.OptionID + "/" + r.Comment)
		return completed
	}
	h := openHub(t, database(t), question)
	for _, c := range []struct {
		d    approval.Decision
		want string
	}{
		{approval.Decision{Decision: "respond", Option: "o2"}, "o2/o2"},
		{approval.Decision{Decision: "respond", Option: "first", Scope: "session"}, "o1/first"},
		{approval.Decision{Decision: "respond", Comment: "Second"}, "o2/Second"},
		{approval.Decision{Decision: "respond", Comment: "neither"}, "/neither"},
		{approval.Decision{Decision: "respond", Option: "o1"}, "o1/o1"},
	} {
		s := launchIn(t, h, "session", "p")
		c.d.ID = pendingOf(t, h, 1)[0].ID
		decide(t, h, c.d)
		assert.Equal(t, c.want, await(t, h, s).Result)
	}
	assert.Empty(t, must(h.store.Rules(context.Background(), 1))(t), "an answer is no rule")
}

// If an agent offers a choice, the decision must be one of its options. A wrong option must not be
// made from other words.
func TestAnAgentsChoiceIsAnsweredByOneOfItsOptions(t *testing.T) {
	options := []catalog.PermissionOption{{OptionID: "a", Name: "Red", Kind: "allow_once"}, {OptionID: "b", Name: "Blue", Kind: "allow_once"}, {OptionID: "c", Name: "Neither", Kind: "reject_once"}}
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		offered := options
		if x.p.Prompt == "one" {
			offered = []catalog.PermissionOption{options[0], options[2]}
		}
		r, err := x.request(ctx, catalog.RequestPermissionParams{
			SessionToken: x.p.SessionToken, ToolName: "AskUser", Title: "Which?", IsQuestion: true, ToolUseID: x.p.TaskID, Options: offered,
		})
		if err != nil {
			return hang(ctx, x)
		}
		x.say(r.OptionID + "/" + r.Comment)
		return completed
	})
	s := launch(t, h, "two")
	decide(t, h, approval.Decision{ID: pendingOf(t, h, 1)[0].ID, Decision: "deny", Comment: "none of them"})
	assert.Equal(t, "/none of them", await(t, h, s).Result, "nothing was chosen")

	s = launch(t, h, "one")
	decide(t, h, approval.Decision{ID: pendingOf(t, h, 1)[0].ID, Decision: "respond", Comment: "dark red"})
	assert.Equal(t, "/dark red", await(t, h, s).Result, "the words go beside the only answer")
}

// Most agents run a tool with their own input, whatever the answer contains.
func TestAnInputIsChangedOnlyWhereThatIsHeeded(t *testing.T) {
	path := database(t)
	fixed := true
	asks := requests(func(*fakeTurn) catalog.RequestPermissionParams {
		return catalog.RequestPermissionParams{ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls","n":1}`), InputFixed: fixed}
	})
	h := openHub(t, path, asks)
	s := launch(t, h, "p")
	a := pendingOf(t, h, 1)[0]
	decide(t, h, approval.Decision{ID: a.ID, Decision: "approve", UpdatedInput: json.RawMessage(`{"n":1, "command":"ls"}`)}) // the same is no other one
	assert.Equal(t, "yes user_approved", await(t, h, s).Result)

	// An input changed for an agent that accepts changes is asked again by an agent that does not.
	fixed = false
	launchIn(t, h, "a", "p")
	a = pendingOf(t, h, 1)[0]
	assert.True(t, a.InputEditable())
	require.NoError(t, h.Close())
	fixed = true
	h = openHub(t, path, asks)
	decide(t, h, approval.Decision{ID: a.ID, Decision: "approve", UpdatedInput: json.RawMessage(`{"command":"rm x"}`)})
	again := pendingOf(t, h, 1)[0]
	assert.NotEqual(t, a.ID, again.ID)
}

func TestAForeignExecutorIsAnsweredInTime(t *testing.T) {
	for _, driver := range []string{"executor", "acp"} {
		synctest.Test(t, func(t *testing.T) {
			h := openHub(t, database(t), askOnce, func(o *Options) { fakeOf(o).Agents = agents{driver: driver} })
			s := launch(t, h, "p")
			time.Sleep(28 * time.Second)
			synctest.Wait()
			a := pendingOf(t, h, 1)[0]
			assert.Equal(t, driver == "executor", !a.Deadline.IsZero())
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if driver == "acp" {
				time.Sleep(30 * 24 * time.Hour / 1000)
				pendingOf(t, h, 1)
				return
			}
			assert.Equal(t, "no timeout", await(t, h, s).Result)
			a = must(h.Approvals().Find(context.Background(), a.ID))(t)
			assert.Equal(t, []string{domain.ApprovalExpired, domain.DecidedByTimeout}, []string{a.Status, a.DecidedBy})
			_, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: a.ID, Decision: "approve"})
			assert.Equal(t, domain.KindAlreadyDecided, kindOf(t, err))
		})
	}
}

// crash leaves the database of a hub that died while its turns were asking.
func crash(t *testing.T, path string, play play, sessions ...string) {
	t.Helper()
	h := openHub(t, path, play)
	for _, session := range sessions {
		launchIn(t, h, session, session)
	}
	pendingOf(t, h, len(sessions))
	require.NoError(t, h.Close())
}

// afterCrash returns a hub that follows another that died while its only turn was asking in the session a,
// and the question.
func afterCrash(t *testing.T, play play) (*Hub, domain.Approval) {
	t.Helper()
	path := database(t)
	crash(t, path, play, "a")
	h := openHub(t, path, play)
	return h, pendingOf(t, h, 1)[0]
}

// A client that cancels its question while it is being stored leaves no question.
func TestAQuestionThatIsGivenUpIsClosed(t *testing.T) { synctest.Test(t, testGivenUp) }

func testGivenUp(t *testing.T) {
	gaveUp := make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		given, cancel := context.WithCancel(ctx)
		cancel()
		x.ask(given, "Write", nil) // the transaction is already on its way
		close(gaveUp)
		return hang(ctx, x)
	})
	s := launch(t, h, "p")
	<-gaveUp
	pendingOf(t, h, 0)
	inState(t, h, s, domain.Running)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 { // lets -race see concurrent reads and writes
		_, _ = h.Approvals().Create(ctx, approval.Spec{Turn: s.HumanLayerRun, Tool: "Write"})
		_, _ = h.ExecutorCalls().AddMessage(ctx, catalog.CreateMessageParams{TaskID: s.UUID, Message: catalog.CreateMessage{Role: "user", Content: json.RawMessage(`"x"`)}})
		_, _ = h.Approvals().Decide(ctx, approval.Decision{ID: "call", Decision: "approve"})
	}
}

func TestADecisionOnAnInputWithTwoReadings(t *testing.T) {
	const unclear = `{"command":"rm -rf ~","Command":"make test"}`
	ctx := context.Background()
	answers := make(chan catalog.RequestPermissionResult, 10)
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		r, err := x.request(ctx, catalog.RequestPermissionParams{
			SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, ToolName: "Bash", ToolKind: "execute", ToolUseID: x.p.TaskID, Title: "make test",
			ToolInput: json.RawMessage(x.p.Prompt),
		})
		assert.NoError(t, err)
		answers <- r
		return completed
	})
	s := launch(t, h, unclear)
	a := pendingOf(t, h, 1)[0]
	assert.Equal(t, unclear, string(a.Input), "nothing is lost of it")
	for _, d := range []approval.Decision{
		{Decision: "approve", Scope: "session"},
		{Decision: "approve", Scope: "project"},
		{Decision: "approve", UpdatedInput: json.RawMessage(`{"command":"ls","command":"rm"}`)},
		{Decision: "approve", UpdatedInput: json.RawMessage(`{"Command":"ls"}`)},
	} {
		d.ID = a.ID
		assert.Equal(t, domain.KindInvalid, kindOf(t, errorOf(h.Approvals().Decide(ctx, d))), "%+v", d)
	}
	_, err := h.Approvals().Decide(ctx, approval.Decision{ID: a.ID, Decision: "approve", UpdatedInput: json.RawMessage(`{"Command":"make test","command":"rm -rf ~"}`)})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err))
	decide(t, h, approval.Decision{ID: a.ID, Decision: "approve", UpdatedInput: json.RawMessage(`{"command":"make test"}`)})
	assert.JSONEq(t, `{"command":"make test"}`, string((<-answers).UpdatedInput), "it is not the same as what was asked")
	await(t, h, s)

	s = launchIn(t, h, "other", unclear)
	a = pendingOf(t, h, 1)[0]
	assert.Equal(t, s.Turn.ID, a.Turn, "what was answered is not asked again")
	decide(t, h, approval.Decision{ID: a.ID, Decision: "deny", Comment: "no", Scope: "project"})
	assert.False(t, (<-answers).Approved)
	await(t, h, s)
	for _, input := range []string{unclear, `{"command":"rm -rf ~"}`, `{"command":"make test"}`} {
		await(t, h, launchIn(t, h, "other", input))
		r := <-answers
		assert.Equal(t, "rule=project", r.Reason, "each of its readings is denied: %s", input)
	}
}

// A sub-agent's question names its call, whether the request or an earlier tool report names the
// sub-agent. Later subscribers get it too.
func TestAQuestionNamesItsSubAgent(t *testing.T) {
	for name, c := range map[string]struct{ reported, asked string }{
		"told before": {"task", ""},
		"asked":       {"", "task"},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
				if c.reported != "" {
					x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "call", Tool: "Bash", ParentID: c.reported})
				}
				_, _ = x.request(ctx, catalog.RequestPermissionParams{
					SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, ToolName: "Bash", ToolKind: "execute", ToolUseID: "call", ParentID: c.asked,
				})
				return completed
			})
			early := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventApprovalRequested}}, -1)
			s := launch(t, h, "p")
			a := pendingOf(t, h, 1)[0]
			late := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventApprovalRequested}}, -1)
			for _, heard := range []*collected{early, late} {
				heard.until(t, func() bool { return len(heard.all()) == 1 })
				assert.Equal(t, "task", heard.all()[0].Payload.(domain.ApprovalRequested).ParentID)
			}
			approve(t, h, a, "")
			await(t, h, s)
		})
	}
}

// A question from before the project's directory was replaced is not approved in the new one, until the
// user says that it is the same project.
func TestAQuestionOfAReplacedDirectory(t *testing.T) {
	var replaced atomic.Pointer[time.Time]
	replaced.Store(new(time.Time))
	h := openHub(t, database(t), askOnce, func(o *Options) { fakeOf(o).replaced = func() time.Time { return *replaced.Load() } })
	s := launch(t, h, "a")
	a := pendingOf(t, h, 1)[0]
	now := a.Created.Add(time.Second)
	replaced.Store(&now)
	_, err := h.Approvals().Decide(t.Context(), approval.Decision{ID: a.ID, Decision: "approve"})
	require.Equal(t, domain.KindBadState, kindOf(t, err))
	assert.ErrorContains(t, err, "duet-rpc projects keep")
	pendingOf(t, h, 1)
	replaced.Store(new(time.Time))
	approve(t, h, a, "")
	assert.Equal(t, "yes user_approved", await(t, h, s).Result)
}

// unreadProcesses is a store whose disk fails to read when a hub opens it.
type unreadProcesses struct{ store.Store }

func (unreadProcesses) Processes(context.Context) ([]domain.Process, error) {
	return nil, fmt.Errorf("database disk image is malformed (11): %w", store.ErrUnread)
}

// A hub that cannot open, because the disk fails for a moment, does not say that the database is malformed:
// a user who moves it away loses it.
func TestAHubThatCannotReadSaysWhatToDo(t *testing.T) {
	path := database(t)
	project := &fakeProject{Agents: agents{}, openStore: func(ctx context.Context, opts store.Options) (store.Store, error) {
		s, err := sqlite.Open(ctx, path, opts)
		return unreadProcesses{s}, err
	}}
	_, err := Open(t.Context(), Options{
		Project: project, Configuration: project, Database: path, Root: t.TempDir(),
		Limits:    config.Limits{MaxTurns: 1, QueueCap: 1, TurnTimeout: time.Hour},
		Executors: func(catalog.Daemon) Executors { return &executors{} },
	})
	assert.EqualError(t, err, store.TextDamaged)
}

// An error says why a read failed, and not only that the log has the cause.
func TestErrorsOfReadsAreExplained(t *testing.T) {
	h := openHub(t, database(t), hang)
	err := h.OrEnding(t.Context(), fmt.Errorf("a page: %w", store.ErrDamaged))
	assert.Equal(t, domain.KindUnavailable, kindOf(t, err))
	assert.EqualError(t, err, store.TextDamaged)
	known := &domain.Error{Kind: domain.KindNotWritable, Message: "it has a text", Err: store.ErrFull}
	assert.Same(t, known, h.OrEnding(t.Context(), known))

	err = h.OrEnding(t.Context(), fmt.Errorf("the root: %w", &fs.PathError{Op: "lstat", Path: "/project", Err: syscall.EIO}))
	assert.Equal(t, domain.KindUnavailable, kindOf(t, err))
	assert.EqualError(t, err, "the root: lstat /project: input/output error")
}
