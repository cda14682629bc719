package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A report for another task than the token's changes nothing.
func TestATokenIsGoodForItsOwnTurnAndSession(t *testing.T) {
	ctx := context.Background()
	turns := make(chan *fakeTurn, 3)
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		turns <- x
		return hang(ctx, x)
	})
	other := launchIn(t, h, "others", "p")
	<-turns
	own := must(h.Launch(ctx, LaunchSpec{Prompt: "p", SessionAlias: "mine", CallerID: "caller"}))(t)
	x := <-turns
	token := x.p.SessionToken
	message := catalog.CreateMessage{Role: "assistant", Content: json.RawMessage(`"forged"`)}
	delta := encode(catalog.ContentDelta{Delta: catalog.Delta{Text: "forged"}})
	calls := map[string]func(token, id string) error{
		"ReportMessage": func(token, id string) error {
			return h.Intake().ReportMessage(ctx, catalog.ReportMessageParams{SessionToken: token, TaskID: id, EventType: catalog.EventContentDelta, EventData: delta})
		},
		"ReportProgress": func(token, id string) error {
			return h.Intake().ReportProgress(ctx, catalog.ReportProgressParams{SessionToken: token, TaskID: id})
		},
		"ReportError": func(token, id string) error {
			return h.Intake().ReportError(ctx, catalog.ReportErrorParams{SessionToken: token, TaskID: id, Error: catalog.ReportedError{Message: "forged"}})
		},
		"ReportCompletion": func(token, id string) error {
			return h.Intake().ReportCompletion(ctx, catalog.ReportCompletionParams{SessionToken: token, TaskID: id, Status: catalog.StatusCompleted})
		},
		"CreateMessage": func(token, id string) error {
			_, err := h.ExecutorCalls().CreateMessage(ctx, catalog.CreateMessageParams{SessionToken: token, TaskID: id, Message: message})
			return err
		},
		"RequestPermission": func(token, id string) error {
			_, err := h.ExecutorCalls().RequestPermission(ctx, catalog.RequestPermissionParams{SessionToken: token, TaskID: id, ToolName: "Write"})
			return err
		},
	}
	last := h.events.Last()
	for name, call := range calls {
		for _, id := range []string{other.UUID, other.HumanLayerSession, domain.TaskName(other.Task), other.Session.UUID, "others"} {
			assert.Equal(t, domain.KindInvalidToken, kindOf(t, call(token, id)), "%s of %s", name, id)
		}
		assert.Error(t, call(token, "of nothing"), name)
		assert.Equal(t, domain.KindInvalidToken, kindOf(t, call("", own.UUID)), "%s: an executor needs one", name)
	}
	assert.Equal(t, last, h.events.Last())
	delete(calls, "RequestPermission") // it would wait for a human
	for name, call := range calls {
		for _, id := range []string{own.UUID, "caller", "mine"} {
			assert.NoError(t, call(token, id), "%s of %s", name, id)
		}
	}
	_, err := h.ExecutorCalls().AddMessage(ctx, catalog.CreateMessageParams{TaskID: other.UUID, Message: message})
	assert.NoError(t, err, "clients of our own user need none")
	_, err = h.ExecutorCalls().AddMessage(ctx, catalog.CreateMessageParams{SessionToken: token, TaskID: other.UUID, Message: message})
	assert.Equal(t, domain.KindInvalidToken, kindOf(t, err), "but one that they give has to be good")
}

func TestGarbageTakesNothingElseWithIt(t *testing.T) {
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.say("before ")
		for _, kind := range []string{
			catalog.EventContentDelta, catalog.EventThinkingChunk, catalog.EventToolCall, catalog.EventToolUpdate, catalog.EventToolResult, catalog.EventPlan,
			catalog.EventUsage, catalog.EventFileChange, catalog.EventNativeSession, catalog.EventProcess, catalog.EventMode, catalog.EventError, catalog.EventRaw, "never heard of",
		} {
			for _, data := range []string{"", "null", "7", `"x"`, "[]", "{", "\xff", `{"delta":7,"tool_id":[],"entries":{},"path":1,"pid":"x","session_id":{}}`} {
				if kind == catalog.EventNativeSession && data == "null" {
					continue
				}
				_ = x.daemon.ReportMessage(context.Background(), catalog.ReportMessageParams{SessionToken: x.p.SessionToken, EventType: kind, EventData: json.RawMessage(data)})
			}
		}
		_ = x.daemon.ReportError(context.Background(), catalog.ReportErrorParams{SessionToken: x.p.SessionToken, Error: catalog.ReportedError{Code: "X", Details: json.RawMessage("{")}})
		x.say("after")
		return completed
	})
	c := subscribe(t, h, eventlog.Subscribing{}, 0)
	s := await(t, h, launch(t, h, "p"))
	assert.Equal(t, domain.Failed, s.State, "it is no output, but who knows what it was to be")
	assert.Equal(t, intake.CodeOutputMissing, s.ErrorCode)
	c.until(t, func() bool { return slices.Contains(c.states(), "running failed") })
	assert.Equal(t, "before after", said(c.all(), domain.EventDelta))
	for _, n := range c.all() {
		assert.NoError(t, errorOf(json.Marshal(n.Payload)), "%T", n.Payload)
	}
	transcriptOf(t, h, s.UUID)
}

func TestTokensAreGoodForAsLongAsTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan string, 2)
		h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			tokens <- x.p.SessionToken
			if x.p.Prompt == "long" {
				return hang(ctx, x)
			}
			x.say("said")
			return completed
		}, withoutPolling, func(o *Options) { o.Limits.TurnTimeout = 100 * time.Hour })
		ended := await(t, h, launch(t, h, "short"))
		old := <-tokens
		launch(t, h, "long")
		good := <-tokens
		assert.Len(t, good, 64)
		assert.NotEqual(t, old, good)
		assert.NoError(t, h.ExecutorCalls().CheckToken(""), "clients of our own user need none")
		assert.NoError(t, h.ExecutorCalls().CheckToken(good))
		for name, bad := range map[string]string{"of a turn that has ended": old, "wrong": strings.Repeat("0", 64), "cut": good[:63], "longer": good + "0", "in capitals": strings.ToUpper(good)} {
			if bad == good {
				continue
			}
			assert.Equal(t, domain.KindInvalidToken, kindOf(t, h.ExecutorCalls().CheckToken(bad)), name)
			_, err := h.keys.GetAPIKey(context.Background(), catalog.GetAPIKeyParams{SessionToken: bad, Service: "x"})
			assert.Equal(t, domain.KindInvalidToken, kindOf(t, err), name)
			_, err = h.ExecutorCalls().RequestPermission(context.Background(), catalog.RequestPermissionParams{SessionToken: bad, ToolName: "Write"})
			assert.Equal(t, domain.KindInvalidToken, kindOf(t, err), name)
			_, err = h.ExecutorCalls().GetExecutionContext(context.Background(), catalog.GetExecutionContextParams{SessionToken: bad})
			assert.Equal(t, domain.KindInvalidToken, kindOf(t, err), name)
			assert.Error(t, h.Intake().ReportMessage(context.Background(), catalog.ReportMessageParams{SessionToken: bad, EventType: "x"}), name)
			assert.Error(t, h.Intake().ReportProgress(context.Background(), catalog.ReportProgressParams{SessionToken: bad}), name)
		}
		_, err := h.ExecutorCalls().GetExecutionContext(context.Background(), catalog.GetExecutionContextParams{})
		assert.Equal(t, domain.KindInvalidToken, kindOf(t, err), "an executor needs one")
		last := h.events.Last()
		assert.Equal(t, "said", turnOf(t, h, ended.UUID).Result)
		time.Sleep(25 * time.Hour)
		assert.NoError(t, h.ExecutorCalls().CheckToken(good))
		assert.Equal(t, last, h.events.Last())
	})
}

// A report that arrives after the end of its turn changes nothing.
func TestALateReportChangesNothing(t *testing.T) {
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult { x.say("said"); return completed })
	s := await(t, h, launch(t, h, "p"))
	last := h.events.Last()
	var late catalog.ContentDelta
	late.Delta.Text = "too late"
	assert.False(t, forIntake{h}.GoesOn(s.Turn.ID))
	require.NoError(t, h.write(context.Background(), func(tx store.Tx) error { return h.transcript.Delta(tx, s.Turn.ID, late, false) }))
	assert.Equal(t, last, h.events.Last())
	c := transcriptOf(t, h, s.UUID)
	assert.Len(t, c.Entries, 2)
	assert.False(t, c.Entries[1].Open)
}

func TestKeysComeFromWhereTheyMayAndAreNotKept(t *testing.T) { synctest.Test(t, testKeys) } // a turn that has just begun waits for a client's request

func testKeys(t *testing.T) {
	const secret = "sk-very-secret-0123456789"
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	get := func(service string) play {
		return func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			r, err := x.daemon.GetAPIKey(ctx, catalog.GetAPIKeyParams{SessionToken: x.p.SessionToken, CredentialKey: service})
			var failed *domain.Error
			switch {
			case errors.As(err, &failed):
				x.say(failed.Kind + ": " + failed.Message)
			case r.APIKey == secret:
				x.say("got it")
			}
			return completed
		}
	}
	path := database(t)
	h := openHub(t, path, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult { return get(x.p.Prompt)(ctx, x) }, func(o *Options) {
		configure(o, config.Config{Keys: map[string]config.Key{"filed": {File: file}, "unset": {Env: "NOT_SET"}}})
		o.Getenv = func(name string) string {
			return map[string]string{"ENVIRONMENTAL_API_KEY": secret, "UNSET_API_KEY": secret}[name]
		}
	})
	outcome := func(service string) string { t.Helper(); return await(t, h, launch(t, h, service)).Result }
	assert.Equal(t, "got it", outcome("FILED_API_KEY"))
	assert.Equal(t, "got it", outcome("ENVIRONMENTAL_API_KEY"))
	assert.Contains(t, outcome("UNSET_API_KEY"), "no_api_key: ", "what is configured is used alone")
	assert.Contains(t, outcome("OTHER_API_KEY"), "no client is there")

	asked := make(chan string, 1)
	sub, err := h.events.Subscribe(context.Background(), eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventSecretRequested}, Since: -1}, func(_ context.Context, n eventlog.Notice) error {
		assert.Zero(t, n.Seq, "it is not in the log")
		asked <- n.Payload.(domain.SecretRequested).RequestID
		return nil
	})
	require.NoError(t, err)
	sub.Start()
	defer sub.Close()
	for _, c := range []struct{ give, want string }{{secret, "got it"}, {"", "no_api_key: no API key for other: the client that was asked gave none"}} {
		s := launch(t, h, "OTHER_API_KEY")
		id := <-asked
		require.NoError(t, h.Keys().Provide(id, c.give))
		assert.Equal(t, domain.KindInvalid, kindOf(t, h.Keys().Provide(id, c.give)), "once")
		assert.Contains(t, await(t, h, s).Result, c.want)
	}
	accesses := must(h.store.KeyAccesses(context.Background(), 10))(t)
	outcomes := each(accesses, func(a domain.KeyAccess) string { return a.Service + ": " + a.Outcome })
	assert.Len(t, outcomes, 6)
	assert.Contains(t, outcomes, "other: given by a client")
	assert.Contains(t, outcomes, "filed: configured")
	require.NoError(t, h.Close())
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + suffix)
		if err == nil {
			assert.NotContains(t, string(content), secret, "not in "+suffix)
		}
	}
}

// A question answered after more than a day resumes the turn as if answered at once.
func TestAQuestionMayWaitForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			x.say("before ")
			first := x.ask(ctx, "Write", map[string]string{"file_path": "a"})
			x.say(verdictText(first) + " ")
			x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "call-" + x.p.TaskID, Status: "completed", Result: json.RawMessage(`"done"`)})
			x.say(verdictText(x.ask(ctx, "Write", map[string]string{"file_path": "b"})))
			return completed
		}, withoutPolling)
		s := launch(t, h, "p")
		for range 2 {
			a := pendingOf(t, h, 1)[0]
			time.Sleep(25 * time.Hour)
			inState(t, h, s, domain.WaitingInput)
			approve(t, h, a, "")
		}
		s = await(t, h, s)
		assert.Equal(t, domain.Completed, s.State, s.Error)
		var text strings.Builder
		for _, e := range transcriptOf(t, h, s.UUID).Entries {
			if e.Kind == domain.ItemMessage && e.Role == "assistant" {
				text.WriteString(e.Content)
			}
		}
		assert.Equal(t, "before yes user_approved yes user_approved", text.String())
	})
}

// pausing counts the pause and continue calls of executors.
type pausing struct {
	Executors
	paused, resumed chan struct{}
}

type pausingLease struct {
	catalog.Lease
	owner *pausing
}

func (p *pausing) Acquire(ctx context.Context, w catalog.LeaseRequest) (catalog.Lease, error) {
	l, err := p.Executors.Acquire(ctx, w)
	return pausingLease{l, p}, err
}

func (l pausingLease) PauseNotifications(context.Context) error {
	l.owner.paused <- struct{}{}
	return nil
}

func (l pausingLease) ResumeNotifications(context.Context) error {
	l.owner.resumed <- struct{}{}
	return nil
}

// logOf returns the log from its beginning.
func logOf(t *testing.T, h *Hub) (list []domain.Event) {
	t.Helper()
	for after := int64(0); ; after = list[len(list)-1].Seq {
		page := must(h.store.Events(t.Context(), after, 4096))(t)
		list = append(list, page...)
		if len(page) < 4096 {
			return list
		}
	}
}

func TestAnExecutorThatIsFasterThanTheDiskPausesAndNothingIsLost(t *testing.T) {
	const all = 10_000
	p := &pausing{paused: make(chan struct{}, all), resumed: make(chan struct{}, all)}
	written, proceed := make(chan struct{}), make(chan struct{})
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		<-written // the disk is blocked
		for x.n < all/2 {
			x.say(fmt.Sprintf("%d ", x.n))
		}
		<-p.paused
		x.say(fmt.Sprintf("%d ", x.n)) // already on its way
		close(proceed)
		<-p.resumed
		for x.n < all {
			x.say(fmt.Sprintf("%d ", x.n))
		}
		return completed
	}, func(o *Options) {
		others := o.Executors
		o.Executors = func(d catalog.Daemon) Executors { p.Executors = others(d); return p }
	})
	s := launch(t, h, "p")
	inState(t, h, s, domain.Running)
	h.store.Enqueue(func(store.Tx) error {
		close(written)
		<-proceed
		return nil
	}, func(error) {})
	s = await(t, h, s)

	var want strings.Builder
	for i := range all {
		fmt.Fprintf(&want, "%d ", i)
	}
	assert.Equal(t, want.String(), s.Result)
	var text strings.Builder
	for i, e := range logOf(t, h) {
		require.Equal(t, int64(i+1), e.Seq, "no gap")
		if d, ok := e.Payload.(domain.MessageDelta); ok {
			text.WriteString(d.Text)
		}
	}
	assert.Equal(t, want.String(), text.String())
}
