package hub

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
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
	assert.Equal(t, SourceChat, second.Source)
	c, err := h.Conversation(context.Background(), second.UUID, Page{})
	require.NoError(t, err)
	assert.Equal(t, 4, c.Total)
	out, err := h.Output(context.Background(), second)
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

func TestADatabaseKeepsTheChatThatAnEarlierVersionHad(t *testing.T) {
	ctx := context.Background()
	play := func(context.Context, *turn) catalog.ExecutePromptResult { return completed }
	for name, source := range map[string]string{"a chat": SourceChat, "a caller's thread": SourceExecute} {
		t.Run(name, func(t *testing.T) {
			path := database(t)
			h := openHub(t, path, play)
			old, err := h.Launch(ctx, LaunchSpec{Prompt: "old", Source: source, ThreadAlias: "chat_thread"})
			require.NoError(t, err)
			await(t, h, old)
			require.NoError(t, h.Close())
			h = openHub(t, path, play)
			caller := await(t, h, launchIn(t, h, "chat_thread", "a caller's"))
			chat, err := h.Chat(ctx, "new", 0)
			require.NoError(t, err)
			if source == SourceChat {
				assert.Equal(t, old.Thread.ID, chat.Thread.ID)
				assert.NotEqual(t, old.Thread.ID, caller.Thread.ID)
			} else {
				assert.NotEqual(t, old.Thread.ID, chat.Thread.ID)
				assert.Equal(t, old.Thread.ID, caller.Thread.ID)
			}
		})
	}
}
