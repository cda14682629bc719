package hub

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
)

func TestLaunchRefusesWhatMakesNoSense(t *testing.T) {
	h := openHub(t, database(t), hang)
	for name, c := range map[string]struct {
		spec LaunchSpec
		kind string
	}{
		"no prompt":     {LaunchSpec{Prompt: " \n\t"}, domain.KindInvalid},
		"unknown agent": {LaunchSpec{Prompt: "p", Agent: "nobody"}, domain.KindUnknownAgent},
		"no directory":  {LaunchSpec{Prompt: "p", CWD: "not-there"}, domain.KindInvalid},
		"a file":        {LaunchSpec{Prompt: "p", CWD: filepath.Base(h.store.Path())}, domain.KindInvalid},
	} {
		_, err := h.Launch(context.Background(), c.spec)
		require.Error(t, err, name)
		assert.Equal(t, c.kind, kindOf(t, err), name)
	}
	_, err := h.Continue(context.Background(), ContinueSpec{From: "nobody", Prompt: "p"})
	assert.Equal(t, domain.KindRunNotFound, kindOf(t, err))
	_, err = h.Launch(context.Background(), LaunchSpec{Prompt: "p", CallerID: "mine"})
	require.NoError(t, err)
	_, err = h.Launch(context.Background(), LaunchSpec{Prompt: "p", CallerID: "mine"})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err), "an id of the caller's is used once")
	status, err := h.Status(context.Background())
	require.NoError(t, err)
	assert.Equal(t, domain.Counts{domain.Running: 1}, withoutStarting(status.Counts))
}

func TestAPlainCommandCannotBeHeldToPlanMode(t *testing.T) {
	ctx := context.Background()
	for driver, held := range map[string]bool{"command": false, "acp": true, "executor": true} {
		h := openHub(t, database(t), func(context.Context, *turn) catalog.ExecutePromptResult { return completed },
			func(o *Options) { o.Agents = agents{driver} })
		_, err := h.Launch(ctx, LaunchSpec{Prompt: "p", Mode: catalog.ModePlan})
		first := await(t, h, launch(t, h, "p"))
		mode := catalog.ModePlan
		_, changed := h.Settings().Update(ctx, first.UUID, threadsettings.Change{Mode: &mode})
		if held {
			assert.NoError(t, err, driver)
			assert.NoError(t, changed, driver)
			continue
		}
		for _, err := range []error{err, changed} {
			var e *domain.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, domain.KindInvalid, e.Kind)
			assert.Equal(t, "permission_mode", e.Param)
			assert.Contains(t, e.Expected, "can enforce for the agent fake")
			assert.NotContains(t, e.Accepted, "plan")
		}
		_, err = h.Continue(ctx, ContinueSpec{From: first.UUID, Prompt: "p"})
		assert.NoError(t, err, "other modes are as good as none")
	}
}
