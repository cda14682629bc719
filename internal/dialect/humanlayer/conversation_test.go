package humanlayer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// getConversation without a limit returns pages of a long conversation.
func TestALongConversationHasPages(t *testing.T) {
	events := make([]*ConversationEvent, eventsAtOnce+1)
	for i := range events {
		events[i] = &ConversationEvent{}
	}
	r := conversationPage(events, len(events), ConversationParams{}, 100<<20)
	assert.Len(t, r.Events, eventsAtOnce)
	require.NotNil(t, r.NextOffset)
	assert.Equal(t, eventsAtOnce, *r.NextOffset)
	asked := uint(len(events))
	r = conversationPage(events, len(events), ConversationParams{Limit: &asked}, 100<<20)
	assert.Len(t, r.Events, len(events))
	assert.Nil(t, r.NextOffset)
}

func TestStatesInTheWordsOfHumanLayer(t *testing.T) {
	for state, want := range map[domain.State]string{
		domain.New: "", domain.Queued: "starting", domain.Starting: "starting", domain.Running: "running", domain.WaitingInput: "waiting_input",
		domain.Interrupting: "interrupting", domain.Completed: "completed", domain.Failed: "failed", domain.TimedOut: "failed",
		domain.Cancelled: "interrupted", domain.Interrupted: "interrupted", domain.Draft: "draft", domain.Discarded: "discarded",
	} {
		assert.Equal(t, want, StatusOf(state))
	}
}
