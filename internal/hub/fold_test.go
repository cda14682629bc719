package hub

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A change that would have ended a message, and failed for another reason, leaves
// the message open with all of its text.
func TestAMessageStaysOpenWhenTheChangeThatWouldEndItFails(t *testing.T) {
	var h *Hub
	boom := errors.New("boom")
	h = openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.say("before, ")
		for _, fail := range []func() error{
			func() error { return boom },
			func() error { panic("a defect") },
		} {
			assert.Error(t, h.store.Write(ctx, func(tx store.Tx) error {
				s, err := h.find(tx, x.p.TaskID)
				if err != nil {
					return err
				}
				if err := h.closeMessage(tx, &s); err != nil {
					return err
				}
				return fail()
			}))
		}
		x.say("and after")
		return completed
	})
	s := await(t, h, launch(t, h, "p"))
	assert.Equal(t, "before, and after", s.Result)
	assert.Equal(t, "before, and after", wholeText(t, h, s))
}
