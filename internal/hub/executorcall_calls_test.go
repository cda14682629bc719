package hub

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// A message of an executor ends what its agent is writing; a refused one does not.
func TestMessageOfAnExecutor(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		create := func(role, text string) error {
			_, err := x.daemon.CreateMessage(ctx, catalog.CreateMessageParams{
				SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, Message: catalog.CreateMessage{Role: role, Content: encode(text)},
			})
			return err
		}
		x.say("one ")
		assert.EqualError(t, create("system", "x"), "message.role: expected a role, received system")
		x.say("two")
		assert.NoError(t, create("assistant", "of the executor"))
		x.say("three")
		return completed
	})
	s := await(t, h, launch(t, h, "p"))
	items, err := h.query.ItemsOfTurn(t.Context(), s.Turn.ID)
	require.NoError(t, err)
	var said []string
	for _, m := range transcript.Transcript(items) {
		said = append(said, m.Content)
	}
	assert.Equal(t, []string{"p", "one two", "of the executor", "three"}, said)
}

// agentWithServer knows each agent but one that is gone.
type agentWithServer struct{}

func (agentWithServer) Resolve(name string) (config.Agent, error) {
	if name == "gone" {
		return config.Agent{}, &config.UnknownAgentError{Name: name}
	}
	return config.Agent{Name: name, Driver: "acp", MCPServers: []catalog.MCPServer{{Name: "of the agent"}}}, nil
}

// insertTurn stores a turn, and its session unless that is stored, and returns the turn's token.
func insertTurn(t *testing.T, h *Hub, session *domain.Session, r domain.Turn) (turn domain.Turn, token string) {
	t.Helper()
	require.NoError(t, h.store.Write(t.Context(), func(tx store.Tx) error {
		if session.ID == 0 {
			session.UUID, session.CWD, session.Mode, session.Created, session.Active = uuid.NewString(), "/p", "default", time.Now(), time.Now()
			if err := errors.Join(tx.InsertSession(session), tx.SetAlias(session.UUID, 0, session.ID)); err != nil {
				return err
			}
		}
		r.UUID, r.HumanLayerSession, r.HumanLayerRun, r.Session, r.Agent = uuid.NewString(), uuid.NewString(), uuid.NewString(), session.ID, session.Agent
		r.Created, r.Active = time.Now(), time.Now()
		err := tx.InsertTurn(&r)
		token = h.tokens.Issue(tx, r)
		return err
	}))
	return r, token
}

// A token permits its own turn to an executor, and to a client all turns of its session.
func TestTokenOfASibling(t *testing.T) {
	h := openHub(t, database(t), nil)
	session := &domain.Session{Agent: "fake"}
	one, token := insertTurn(t, h, session, domain.Turn{State: domain.Completed})
	sibling, _ := insertTurn(t, h, session, domain.Turn{State: domain.Completed, Parent: one.ID})
	stranger, _ := insertTurn(t, h, &domain.Session{Agent: "fake"}, domain.Turn{State: domain.Completed})
	for _, task := range []string{"", one.UUID, one.HumanLayerSession, one.HumanLayerRun} {
		got, err := h.calls.TokenOf(t.Context(), token, task)
		require.NoError(t, err, task)
		assert.Equal(t, one.ID, got.Turn)
	}
	for _, task := range []string{sibling.UUID, stranger.UUID, "nothing"} {
		_, err := h.calls.TokenOf(t.Context(), token, task)
		assert.Equal(t, domain.KindInvalidToken, kindOf(t, err), task)
	}
	for _, id := range []string{one.UUID, sibling.HumanLayerSession, session.UUID} {
		assert.NoError(t, h.calls.CheckTokenOf(t.Context(), token, id))
	}
	assert.Equal(t, domain.KindInvalidToken, kindOf(t, h.calls.CheckTokenOf(t.Context(), token, stranger.UUID)))
	assert.Equal(t, domain.KindTurnNotFound, kindOf(t, h.calls.CheckTokenOf(t.Context(), token, "nothing")))
}

// An agent gets the context of its session without cancelled prompts.
func TestExecutionContext(t *testing.T) {
	h := openHub(t, database(t), nil, func(o *Options) { fakeOf(o).Agents = agentWithServer{} })
	session := &domain.Session{Agent: "fake", Model: "large", NativeSession: "native", Settings: domain.Settings{
		AppendSystemPrompt: "two", CustomInstructions: "three", MCPServers: []domain.MCPServer{{Name: "own"}},
	}}
	first, _ := insertTurn(t, h, session, domain.Turn{State: domain.Completed})
	taken, _ := insertTurn(t, h, session, domain.Turn{State: domain.Cancelled, Parent: first.ID})
	last, token := insertTurn(t, h, session, domain.Turn{State: domain.Completed, Parent: taken.ID})
	for id, text := range map[string]string{first.UUID: "kept", taken.UUID: "taken back", last.UUID: "now"} {
		_, err := h.calls.AddMessage(t.Context(), catalog.CreateMessageParams{TaskID: id, Message: catalog.CreateMessage{Role: "user", Content: encode(text)}})
		require.NoError(t, err)
	}
	got, err := h.calls.GetExecutionContext(t.Context(), catalog.GetExecutionContextParams{SessionToken: token})
	require.NoError(t, err)
	assert.Equal(t, []catalog.Message{{Role: "user", Content: "kept", Type: "message"}}, got.Messages)
	assert.Equal(t, "two\n\nthree", got.SystemPrompt)
	assert.Equal(t, []catalog.MCPServer{{Name: "of the agent"}, {Name: "own"}}, got.MCPServers)
	assert.Equal(t, "large", got.ModelConfig.Model)
	assert.Equal(t, "native", got.NativeSessionID)
	assert.Empty(t, got.ForkNativeSessionID)
	_, token = insertTurn(t, h, &domain.Session{Agent: "gone"}, domain.Turn{State: domain.Completed})
	_, err = h.calls.GetExecutionContext(t.Context(), catalog.GetExecutionContextParams{SessionToken: token})
	assert.ErrorContains(t, err, `"gone"`)
}

// A fork uses its parent's own session only while that has no further content.
func TestForkedSession(t *testing.T) {
	h := openHub(t, database(t), nil, func(o *Options) { fakeOf(o).Agents = agentWithServer{} })
	parent := &domain.Session{Agent: "fake", NativeSession: "native"}
	from, _ := insertTurn(t, h, parent, domain.Turn{State: domain.Completed})
	forked := func(agent string) string {
		_, token := insertTurn(t, h, &domain.Session{Agent: agent, Parent: parent.ID, ForkTurn: from.ID}, domain.Turn{State: domain.Completed, Parent: from.ID})
		got, err := h.calls.GetExecutionContext(t.Context(), catalog.GetExecutionContextParams{SessionToken: token})
		require.NoError(t, err)
		return got.ForkNativeSessionID
	}
	assert.Equal(t, "native", forked("fake"))
	assert.Empty(t, forked("other"), "another agent does not have it")
	insertTurn(t, h, parent, domain.Turn{State: domain.Completed, Parent: from.ID})
	assert.Empty(t, forked("fake"), "it has gone on")
}

// The unanswered messages are the end of the transcript, behind the last activity of the agent.
func TestUnansweredMessages(t *testing.T) {
	var got [][]catalog.Message
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		context := func(unanswered bool) []catalog.Message {
			r, err := x.daemon.GetExecutionContext(ctx, catalog.GetExecutionContextParams{SessionToken: x.p.SessionToken, Unanswered: unanswered})
			assert.NoError(t, err)
			return r.Messages
		}
		all := context(false)
		first := len(all)
		for first > 0 && all[first-1].Role == "user" {
			first--
		}
		last := context(true)
		assert.ElementsMatch(t, all[first:], last, x.p.Prompt)
		got = append(got, last)
		switch x.p.Prompt {
		case "think":
			x.report(catalog.EventThinkingChunk, catalog.ContentDelta{Delta: catalog.Delta{Text: "hm"}})
		case "use a tool":
			x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Kind: "execute", Status: "completed"})
		case "answer":
			x.say("yes")
		}
		return completed
	})
	s := await(t, h, launch(t, h, "say nothing"))
	for _, prompt := range []string{"think", "say nothing", "use a tool", "answer", "think", "end"} {
		s = await(t, h, must(h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: prompt}))(t))
	}
	var counts []int
	for _, messages := range got {
		counts = append(counts, len(messages))
	}
	assert.Equal(t, []int{0, 1, 2, 3, 0, 0, 1}, counts)
}
