package hub

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// world is ExecutorCalls with a store. It also fakes the agents, their reports, and the events.
type world struct {
	*ExecutorCalls
	store  store.Store
	tokens *credential.Tokens
	ended  []int64 // runs whose message was ended
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{tokens: credential.NewTokens()}
	ctx, cancel := context.WithCancel(context.Background())
	w.store = must(sqlite.Opener(filepath.Join(t.TempDir(), "duet.db"))(ctx, store.Options{}))(t)
	q := query.New(ctx, w.store)
	keys := credential.NewKeys(credential.Options{
		Tokens: w.tokens, Runs: q, Events: w, Configured: func(domain.Run) map[string]config.Key { return nil },
		Getenv:     func(string) string { return "sesame-open-1234" },
		NoteAccess: func(context.Context, int64, string, string) error { return nil },
	})
	w.ExecutorCalls = newExecutorCalls(ctx, executorCallOptions{
		Store: w.store, Query: q, Write: w.store.Write, Tokens: w.tokens, Keys: keys, Conversation: conversation.New(ctx, q.Known), Reports: w, Agents: w,
	})
	t.Cleanup(func() { keys.Close(); cancel(); require.NoError(t, w.store.Close()) })
	return w
}

func (w *world) Ask(domain.Event) (heard <-chan struct{}, withdraw func()) { return nil, func() {} }

func (w *world) EndMessage(_ context.Context, run int64) { w.ended = append(w.ended, run) }

func (w *world) Answered(int64, string) {}

func (w *world) ConfirmsAnswers(string) bool { return true }

func (w *world) AgentFor(_ bool, name string) (config.Agent, error) {
	if name == "gone" {
		return config.Agent{}, errors.New("the agent is not configured any more")
	}
	return config.Agent{Name: name, MCPServers: []catalog.MCPServer{{Name: "of the agent"}}}, nil
}

// run adds a run with its token, and a conversation if thread has none.
func (w *world) run(t *testing.T, thread *domain.Thread, r domain.Run) (run domain.Run, token string) {
	t.Helper()
	require.NoError(t, w.store.Write(t.Context(), func(tx store.Tx) error {
		if thread.ID == 0 {
			thread.UUID, thread.CWD, thread.Mode, thread.Created, thread.Active = uuid.NewString(), "/p", "default", time.Now(), time.Now()
			if err := errors.Join(tx.InsertThread(thread), tx.SetAlias(thread.UUID, 0, thread.ID)); err != nil {
				return err
			}
		}
		r.UUID, r.SessionID, r.RunID, r.Thread, r.Agent = uuid.NewString(), uuid.NewString(), uuid.NewString(), thread.ID, thread.Agent
		r.Created, r.Active = time.Now(), time.Now()
		err := tx.InsertRun(&r)
		token = w.tokens.Issue(tx, r)
		return err
	}))
	return r, token
}

func message(token, task, role, text string) catalog.CreateMessageParams {
	content, _ := json.Marshal(text)
	return catalog.CreateMessageParams{SessionToken: token, TaskID: task, Message: catalog.CreateMessage{Role: role, Content: content}}
}

// A token is valid for its own run, by any id of it, and for no other run of the conversation.
func TestTokenOf(t *testing.T) {
	w := newWorld(t)
	thread := &domain.Thread{Agent: "fake"}
	one, token := w.run(t, thread, domain.Run{State: domain.Completed})
	other, _ := w.run(t, thread, domain.Run{State: domain.Running, Parent: one.ID})
	for _, task := range []string{"", one.UUID, one.SessionID, one.RunID} {
		got := must(w.TokenOf(t.Context(), token, task))(t, task)
		assert.Equal(t, credential.Token{Thread: thread.ID, Run: one.ID, Task: one.UUID}, got)
	}
	for _, task := range []string{other.UUID, "nothing"} {
		got, err := w.TokenOf(t.Context(), token, task)
		assert.EqualError(t, err, "the session token is that of another conversation, or of another task in it")
		assert.Equal(t, domain.KindInvalidToken, kindOf(t, err))
		assert.Zero(t, got)
	}
	require.NoError(t, w.CheckToken(token))
	w.tokens.Revoke(one.ID)
	assert.Equal(t, domain.KindInvalidToken, kindOf(t, errorOf(w.TokenOf(t.Context(), token, ""))))
	assert.Equal(t, domain.KindInvalidToken, kindOf(t, w.CheckToken(token)))
	assert.NoError(t, w.CheckToken(""), "clients of our own user need none")
}

// A token holder may name anything in its conversation and nothing else.
func TestCheckTokenOf(t *testing.T) {
	w := newWorld(t)
	thread := &domain.Thread{Agent: "fake"}
	one, token := w.run(t, thread, domain.Run{State: domain.Completed})
	other, _ := w.run(t, thread, domain.Run{State: domain.Running, Parent: one.ID})
	stranger, _ := w.run(t, &domain.Thread{Agent: "fake"}, domain.Run{State: domain.Running})
	for _, id := range []string{one.UUID, other.SessionID, thread.UUID} {
		assert.NoError(t, w.CheckTokenOf(t.Context(), token, id))
	}
	assert.NoError(t, w.CheckTokenOf(t.Context(), "", stranger.UUID))
	assert.Equal(t, domain.KindInvalidToken, kindOf(t, w.CheckTokenOf(t.Context(), token, stranger.UUID)))
	assert.Equal(t, domain.KindInvalidToken, kindOf(t, w.CheckTokenOf(t.Context(), "worthless", one.UUID)))
	assert.Equal(t, domain.KindRunNotFound, kindOf(t, w.CheckTokenOf(t.Context(), token, "nothing")))
}

// An executor's message follows what its agent was writing, with the agent's secrets redacted.
func TestCreateMessage(t *testing.T) {
	w := newWorld(t)
	run, token := w.run(t, &domain.Thread{Agent: "fake"}, domain.Run{State: domain.Running})
	must(w.opts.Keys.GetAPIKey(t.Context(), catalog.GetAPIKeyParams{SessionToken: token, Service: "any"}))(t)
	result := must(w.CreateMessage(t.Context(), message(token, run.UUID, "assistant", "it is sesame-open-1234")))(t)
	assert.Equal(t, []int64{run.ID}, w.ended)
	items := must(w.opts.Query.Items(t.Context(), run.ID))(t)
	require.Len(t, items, 1)
	assert.Equal(t, items[0].Key, result.MessageID)
	assert.Equal(t, []catalog.Message{{Role: "assistant", Content: "it is [secret]", Type: "message"}}, conversation.Transcript(items))
}

// A refused message does not split the agent's current message.
func TestRefusedMessage(t *testing.T) {
	w := newWorld(t)
	run, token := w.run(t, &domain.Thread{Agent: "fake"}, domain.Run{State: domain.Running})
	stranger, _ := w.run(t, &domain.Thread{Agent: "fake"}, domain.Run{State: domain.Running})
	_, err := w.CreateMessage(t.Context(), message(token, run.UUID, "system", "x"))
	assert.EqualError(t, err, "message.role: expected a role, received system")
	_, err = w.CreateMessage(t.Context(), message(token, stranger.UUID, "user", "x"))
	assert.Equal(t, domain.KindInvalidToken, kindOf(t, err))
	_, err = w.CreateMessage(t.Context(), message("", run.UUID, "user", "x"))
	assert.Equal(t, domain.KindInvalidToken, kindOf(t, err), "an executor needs a token")
	assert.Empty(t, w.ended)
	assert.NoError(t, errorOf(w.AddMessage(t.Context(), message("", run.UUID, "user", "x"))), "our own user does not")
}

// An agent gets the context of its conversation without cancelled prompts.
func TestExecutionContext(t *testing.T) {
	w := newWorld(t)
	thread := &domain.Thread{Agent: "fake", Model: "large", NativeSession: "native", Settings: domain.Settings{
		AppendSystemPrompt: "two", CustomInstructions: "three", MCPServers: []domain.MCPServer{{Name: "own"}},
	}}
	first, _ := w.run(t, thread, domain.Run{State: domain.Completed})
	taken, _ := w.run(t, thread, domain.Run{State: domain.Cancelled, Parent: first.ID})
	last, token := w.run(t, thread, domain.Run{State: domain.Running, Parent: taken.ID})
	for id, text := range map[string]string{first.UUID: "kept", taken.UUID: "taken back", last.UUID: "now"} {
		must(w.AddMessage(t.Context(), message("", id, "user", text)))(t)
	}
	got := must(w.GetExecutionContext(t.Context(), catalog.GetExecutionContextParams{SessionToken: token}))(t)
	assert.Equal(t, []catalog.Message{{Role: "user", Content: "kept", Type: "message"}}, got.Messages)
	assert.Equal(t, "two\n\nthree", got.SystemPrompt)
	assert.Equal(t, []catalog.MCPServer{{Name: "of the agent"}, {Name: "own"}}, got.MCPServers)
	assert.Equal(t, []any{"large", "native"}, []any{got.ModelConfig.Model, got.NativeSessionID})
	assert.Empty(t, got.ForkNativeSessionID)
	_, token = w.run(t, &domain.Thread{Agent: "gone"}, domain.Run{State: domain.Running})
	_, err := w.GetExecutionContext(t.Context(), catalog.GetExecutionContextParams{SessionToken: token})
	assert.EqualError(t, err, "the agent is not configured any more")
}

// A fork uses its parent's own session only while that has no further content.
func TestForkedSession(t *testing.T) {
	w := newWorld(t)
	parent := &domain.Thread{Agent: "fake", NativeSession: "native"}
	from, _ := w.run(t, parent, domain.Run{State: domain.Completed})
	forked := func(agent string) string {
		_, token := w.run(t, &domain.Thread{Agent: agent, Parent: parent.ID, ForkRun: from.ID}, domain.Run{State: domain.Running, Parent: from.ID})
		got := must(w.GetExecutionContext(t.Context(), catalog.GetExecutionContextParams{SessionToken: token}))(t)
		return got.ForkNativeSessionID
	}
	assert.Equal(t, "native", forked("fake"))
	assert.Empty(t, forked("other"), "another agent does not have it")
	w.run(t, parent, domain.Run{State: domain.Completed, Parent: from.ID})
	assert.Empty(t, forked("fake"), "it has gone on")
}
