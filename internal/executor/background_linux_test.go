package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Only Force releases an agent whose command still runs after its turn. The hub then learns that
// the command has ended.
func TestBackgroundCommandKeepsAgent(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "runs")
	execute(t, x, p)
	h.Await(t, func() bool { return h.inBackground() != nil }, "the command")
	background := h.inBackground()
	require.Len(t, background, 1)
	assert.Equal(t, "process", background[0].Kind)
	assert.Contains(t, background[0].Title, "sleep 600")
	assert.Equal(t, catalog.ReleaseSessionResult{Reason: "background"}, release(t, x, p.SessionID))

	r := must(x.ReleaseSession(context.Background(), catalog.ReleaseSessionParams{SessionID: p.SessionID, Force: true}))(t)
	assert.True(t, r.Released)
	h.Lock()
	defer h.Unlock()
	reported := h.between[len(h.between)-1]
	assert.Equal(t, catalog.Session{Background: []domain.BackgroundTask{}, Ended: true}, reported.Session)
	assert.Equal(t, []string{"s", "task-1"}, []string{reported.SessionID, reported.TaskID})
}
