package handlers_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// The client that begins a conversation may choose its id, by which it is known from then on.
func TestACallerChoosesTheIDOfAConversation(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	id, forked := uuid.NewString(), uuid.NewString()
	first := testkit.JSONAs[string](t, c.ask("launchSession", fmt.Sprintf(`{"query":"one","conversation_id":%q}`, id)), "session_id")
	w.ended(first)
	r := object(t, c.ask("launchSession", fmt.Sprintf(`{"query":"two","conversation_id":%q}`, id)))
	assert.Equal(t, id, r["thread_id"], "it follows in the same one")
	w.ended(r["session_id"].(string))
	r = object(t, c.ask("continueSession", fmt.Sprintf(`{"query":"three","session_id":%q}`, id)))
	assert.Equal(t, id, r["thread_id"])
	w.ended(r["session_id"].(string))
	r = object(t, c.ask("continueSession", fmt.Sprintf(`{"query":"other","session_id":%q,"fork":true,"conversation_id":%q}`, first, forked)))
	assert.Equal(t, forked, r["thread_id"])
	w.ended(r["session_id"].(string))
	for _, bad := range []string{"x", "0C7D9B1E-4C1B-4B7B-8A53-3C1A6B1F1E11", "task-0001"} {
		e := c.fail("launchSession", fmt.Sprintf(`{"query":"x","conversation_id":%q}`, bad))
		require.Equal(t, -32602, e.Code)
		assert.Equal(t, "conversation_id", e.Data["param"])
	}
}
