package hub

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
)

func TestChatIsOneConversation(t *testing.T) {
	path := database(t)
	agent := func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		x.say("re " + x.p.Prompt)
		return completed
	}
	h := openHub(t, path, agent)
	first, err := h.Chat(context.Background(), "one", 0)
	require.NoError(t, err)
	await(t, h, first)
	require.NoError(t, h.Close())
	h = openHub(t, path, agent)
	second, err := h.Chat(context.Background(), "two", 3)
	require.NoError(t, err)
	second = await(t, h, second)
	assert.Equal(t, first.Thread.ID, second.Thread.ID)
	assert.Equal(t, first.SessionID, second.ParentSession)
	assert.Equal(t, domain.SourceChat, second.Source)
	c, err := h.query.Conversation(context.Background(), second.UUID, query.Page{})
	require.NoError(t, err)
	assert.Equal(t, 4, c.Total)
	out, err := h.query.Output(context.Background(), second)
	require.NoError(t, err)
	assert.Equal(t, "re two", out)
}

func TestNoIdOfACallersNamesTheChat(t *testing.T) {
	ctx := context.Background()
	path := database(t)
	play := func(context.Context, *turn) catalog.ExecutePromptResult { return completed }
	h := openHub(t, path, play)
	before := await(t, h, launchIn(t, h, "chat_thread", "mine"))
	chat, err := h.Chat(ctx, "one", 0)
	require.NoError(t, err)
	assert.NotEqual(t, before.Thread.ID, chat.Thread.ID)
	await(t, h, chat)
	require.NoError(t, h.Close())
	h = openHub(t, path, play)
	assert.Equal(t, before.Thread.ID, await(t, h, launchIn(t, h, "chat_thread", "mine too")).Thread.ID)
	again, err := h.Chat(ctx, "two", 0)
	require.NoError(t, err)
	assert.Equal(t, chat.Thread.ID, again.Thread.ID)
}

// named is a set of agents; the first is the default.
type named struct{ names *atomic.Pointer[[]string] }

func (n named) Resolve(name string) (config.Agent, error) {
	names := *n.names.Load()
	if name == "" {
		name = names[0]
	}
	if !slices.Contains(names, name) {
		return config.Agent{}, &config.UnknownAgentError{Name: name, Known: names}
	}
	return config.Agent{Name: name, Driver: "acp", Command: []string{name}}, nil
}

func TestTheChatUsesTheDefaultAgent(t *testing.T) {
	ctx := context.Background()
	for name, left := range map[string][]string{"both are there": {"new", "old"}, "the old one is gone": {"new"}} {
		t.Run(name, func(t *testing.T) {
			var names atomic.Pointer[[]string]
			names.Store(&[]string{"old"})
			var mu sync.Mutex
			reported := map[string][]string{}
			h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
				before, err := x.daemon.GetExecutionContext(ctx, catalog.GetExecutionContextParams{SessionToken: x.p.SessionToken})
				if err != nil {
					return catalog.ExecutePromptResult{Status: catalog.StatusFailed}
				}
				x.report(catalog.EventNativeSession, catalog.NativeSession{SessionID: "of " + x.p.Agent})
				mu.Lock()
				defer mu.Unlock()
				reported[x.p.Prompt] = []string{x.p.Agent, before.NativeSessionID}
				for _, m := range before.Messages {
					reported[x.p.Prompt] = append(reported[x.p.Prompt], m.Content)
				}
				return completed
			}, func(o *Options) { o.Agents = named{&names} })
			chat := func(message string) domain.Session {
				s, err := h.Chat(ctx, message, 0)
				require.NoError(t, err)
				return await(t, h, s)
			}
			one, two := chat("one"), chat("two")
			assert.Equal(t, one.Thread.ID, two.Thread.ID)
			names.Store(&left)
			three, four := chat("three"), chat("four")
			assert.Equal(t, []any{domain.Completed, "new", two.SessionID}, []any{three.State, three.Agent, three.ParentSession})
			assert.NotEqual(t, two.Thread.ID, three.Thread.ID)
			assert.Equal(t, three.Thread.ID, four.Thread.ID, "it goes on there")
			c, err := h.query.Conversation(ctx, four.SessionID, query.Page{})
			require.NoError(t, err)
			assert.Equal(t, 4, c.Total)
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, map[string][]string{
				"one": {"old", ""}, "two": {"old", "of old", "one"}, "three": {"new", "", "one", "two"}, "four": {"new", "of new", "one", "two", "three"},
			}, reported)
		})
	}
}
