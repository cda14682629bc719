package hub

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestAStaleQuestionAnswersItselfOnce(t *testing.T) {
	path := database(t)
	crash(t, path, askOnce, "a")
	var input atomic.Value
	input.Store("a")
	var turns atomic.Int64
	h := openHub(t, path, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		turns.Add(1)
		x.say(verdictText(x.ask(ctx, "Write", map[string]string{"file_path": input.Load().(string)})))
		return completed
	})
	approve(t, h, pendingOf(t, h, 1)[0], "")
	s, err := h.query.Session(context.Background(), "a")
	require.NoError(t, err)
	assert.Equal(t, domain.SourceDecision, s.Source)
	assert.Equal(t, "yes user_approved", await(t, h, s).Result)
	assert.EqualValues(t, 1, turns.Load())
	s = launchIn(t, h, "a", "again")
	again := pendingOf(t, h, 1)[0]
	assert.False(t, again.Stale, "the second time it is asked")
	approve(t, h, again, "")
	await(t, h, s)
}

func TestAStaleAnswerIsForItsOwnQuestionAlone(t *testing.T) {
	path := database(t)
	crash(t, path, askOnce, "a")
	h := openHub(t, path, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.say(verdictText(x.ask(ctx, "Write", map[string]string{"file_path": "/etc/passwd"})))
		return completed
	})
	approve(t, h, pendingOf(t, h, 1)[0], "")
	now := pendingOf(t, h, 1)[0]
	assert.False(t, now.Stale)
	assert.JSONEq(t, `{"file_path":"/etc/passwd"}`, string(now.Input))
}

func TestADeniedStaleQuestionIsOnlyClosed(t *testing.T) {
	path := database(t)
	crash(t, path, askOnce, "a", "b")
	var turns atomic.Int64
	h := openHub(t, path, func(context.Context, *turn) catalog.ExecutePromptResult { turns.Add(1); return completed })
	pending := pendingOf(t, h, 2)
	for _, a := range pending {
		assert.True(t, a.Stale)
	}
	_, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: pending[0].ID, Decision: "deny", Comment: "no"})
	require.NoError(t, err)
	left := pendingOf(t, h, 1)
	assert.Equal(t, pending[1].ID, left[0].ID)
	list, err := h.query.Sessions(context.Background(), domain.RunFilter{})
	require.NoError(t, err)
	assert.Len(t, list, 2, "nothing was resumed")
	approve(t, h, left[0], "")
	asked, err := h.query.SessionOf(context.Background(), left[0].Run) // either of the two may have asked first
	require.NoError(t, err)
	s, err := h.query.Session(context.Background(), asked.Thread.UUID)
	require.NoError(t, err)
	await(t, h, s)
	assert.EqualValues(t, 1, turns.Load())
}

func TestSeveralStaleQuestionsOfOneRun(t *testing.T) {
	path := database(t)
	both := func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		var said [2]string
		var all sync.WaitGroup
		for i := range said {
			all.Go(func() {
				r, err := x.request(ctx, catalog.RequestPermissionParams{
					SessionToken: x.p.SessionToken, ToolName: "Write", ToolInput: encode(map[string]int{"n": i}), ToolUseID: fmt.Sprint(x.p.TaskID, i),
				})
				if err == nil {
					said[i] = verdictText(r)
				}
			})
		}
		all.Wait()
		x.say(strings.Join(said[:], ", "))
		return completed
	}
	h := openHub(t, path, both)
	launchIn(t, h, "a", "p")
	pendingOf(t, h, 2)
	require.NoError(t, h.Close())

	h = openHub(t, path, both, func(o *Options) { o.Limits.MaxRuns = 1 })
	approve(t, h, pendingOf(t, h, 2)[0], "") // the agent may then repeat the second question at any time
	s, err := h.query.Session(context.Background(), "a")
	require.NoError(t, err)
	until(t, h, func() bool {
		pending, _ := h.Approvals().Pending(context.Background(), "")
		for _, a := range pending {
			_, _ = h.Approvals().Decide(context.Background(), approval.Decision{ID: a.ID, Decision: "approve"})
		}
		now, err := h.query.Session(context.Background(), s.UUID)
		return err == nil && now.State == domain.Completed
	}, "its end, when all is answered")
	list, err := h.query.Sessions(context.Background(), domain.RunFilter{})
	require.NoError(t, err)
	assert.Len(t, list, 2, "it was resumed once")
	assert.Equal(t, "yes user_approved, yes user_approved", list[0].Result)
}
