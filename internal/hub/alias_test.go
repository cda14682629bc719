package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func TestEveryMethodTakesEveryAlias(t *testing.T) {
	ctx := context.Background()
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.report(catalog.EventNativeSession, catalog.NativeSession{SessionID: "native"})
		if x.p.Prompt == "hang" {
			return hang(ctx, x)
		}
		return completed
	}, func(o *Options) { o.Limits.MaxTurns = 100 })
	n := 0
	fresh := func() domain.TurnInSession {
		n++
		s := must(h.Launch(ctx, LaunchSpec{Prompt: "hang", CallerID: fmt.Sprint("caller-", n), SessionAlias: fmt.Sprint("session-", n)}))(t)
		return inState(t, h, s, domain.Running)
	}
	aliases := func(s domain.TurnInSession) map[string]string {
		return map[string]string{
			"uuid": s.UUID, "session_id": s.HumanLayerSession, "run_id": s.HumanLayerRun, "task": domain.TaskName(s.Task), "caller": s.CallerID,
			"session uuid": s.Session.UUID, "session alias": fmt.Sprint("session-", n),
		}
	}
	methods := map[string]func(id string) (string, error){
		"Session": func(id string) (string, error) { s, err := h.query.Turn(ctx, id); return s.UUID, err },
		"Transcript": func(id string) (string, error) {
			c, err := h.query.Transcript(ctx, id, query.Page{})
			return c.Turn.UUID, err
		},
		"UpdateSettings": func(id string) (string, error) {
			s, err := h.Settings().Update(ctx, id, domain.SettingsChanged{})
			return s.UUID, err
		},
		"Changes":   func(id string) (string, error) { _, err := h.query.Changes(ctx, id); return "", err },
		"Approvals": func(id string) (string, error) { _, err := h.Approvals().Pending(ctx, id); return "", err },
		"AddMessage": func(id string) (string, error) {
			_, err := h.ExecutorCalls().AddMessage(ctx, catalog.CreateMessageParams{TaskID: id, Message: catalog.CreateMessage{Role: "user", Content: json.RawMessage(`"x"`)}})
			return "", err
		},
		"Subscribe": func(id string) (string, error) {
			s, err := h.events.Subscribe(ctx, eventlog.Subscribing{Turn: id, Since: -1}, func(context.Context, eventlog.Notice) error { return nil })
			if err == nil {
				s.Close()
			}
			return "", err
		},
	}
	s := fresh()
	for name, call := range methods {
		for kind, id := range aliases(s) {
			got, err := call(id)
			if assert.NoError(t, err, "%s by %s", name, kind) && got != "" {
				assert.Equal(t, s.UUID, got, "%s by %s", name, kind)
			}
		}
		_, err := call("nobody")
		if assert.Error(t, err, name) {
			assert.Equal(t, domain.KindTurnNotFound, kindOf(t, err), name)
		}
	}
	// These change the turn: each has an alias of its own turn.
	for _, kind := range []string{"uuid", "session_id", "run_id", "task", "caller", "session uuid", "session alias"} {
		s := fresh()
		id := aliases(s)[kind]
		assert.Equal(t, s.Turn.ID, must(h.Approvals().Create(ctx, approval.Spec{Turn: id, Tool: "Write"}))(t, kind).Turn)
		next := must(h.Continue(ctx, ContinueSpec{From: id, Prompt: "next"}))(t, kind)
		assert.Equal(t, s.HumanLayerSession, next.ParentHumanLayerSession)
		must(h.Interrupt(ctx, s.UUID, ""))(t)
		assert.Equal(t, domain.Interrupted, await(t, h, s).State)
		assert.True(t, must(h.Await(ctx, aliases(s)[kind]))(t, kind).State.Ended())
		await(t, h, next)
	}
	s = fresh()
	until(t, h, func() bool {
		got, err := h.query.LastOfNative(ctx, "native")
		return err == nil && got.UUID == s.UUID
	}, "the last")
	assert.Equal(t, domain.KindTurnNotFound, kindOf(t, errorOf(h.query.LastOfNative(ctx, ""))))
}

func TestForksOfForksShareWhatCameBefore(t *testing.T) {
	ctx := context.Background()
	var mu sync.Mutex
	transcripts := map[string][]string{}
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		reported, err := x.daemon.GetExecutionContext(ctx, catalog.GetExecutionContextParams{SessionToken: x.p.SessionToken})
		if err != nil {
			return hang(ctx, x)
		}
		mu.Lock()
		for _, m := range reported.Messages {
			transcripts[x.p.Prompt] = append(transcripts[x.p.Prompt], m.Content)
		}
		mu.Unlock()
		x.say("re " + x.p.Prompt)
		return completed
	})
	follow := func(from domain.TurnInSession, prompt string) domain.TurnInSession {
		t.Helper()
		return await(t, h, must(h.Continue(ctx, ContinueSpec{From: from.HumanLayerSession, Prompt: prompt}))(t))
	}
	a := await(t, h, launch(t, h, "a"))
	b := follow(a, "b")
	c := follow(b, "c")
	d := follow(b, "d") // forks behind b
	e := follow(d, "e")
	f := follow(d, "f") // forks the fork behind d
	g := follow(a, "g") // and the first behind a
	assert.Equal(t, a.Session.ID, c.Session.ID)
	assert.NotEqual(t, c.Session.ID, d.Session.ID)
	assert.Equal(t, d.Session.ID, e.Session.ID)
	assert.NotEqual(t, d.Session.ID, f.Session.ID)
	assert.Equal(t, d.Session.ID, f.Session.Parent)
	assert.Equal(t, a.HumanLayerSession, g.ParentHumanLayerSession)
	for _, x := range []struct {
		s    domain.TurnInSession
		want []string
	}{
		{c, []string{"a", "re a", "b", "re b", "c", "re c"}},
		{b, []string{"a", "re a", "b", "re b"}},
		{e, []string{"a", "re a", "b", "re b", "d", "re d", "e", "re e"}},
		{f, []string{"a", "re a", "b", "re b", "d", "re d", "f", "re f"}},
		{g, []string{"a", "re a", "g", "re g"}},
	} {
		transcript := transcriptOf(t, h, x.s.UUID)
		said := each(transcript.Entries, func(entry query.Entry) string { return entry.Content })
		assert.Equal(t, x.want, said)
		assert.Equal(t, len(x.want), transcript.Total)
		mu.Lock()
		assert.Equal(t, x.want[:len(x.want)-2], transcripts[x.s.Prompt], "what the agent of %s received", x.s.Prompt)
		mu.Unlock()
		page := must(h.query.Transcript(ctx, x.s.UUID, query.Page{Offset: 1, Limit: 2}))(t)
		require.Len(t, page.Entries, 2)
		assert.Equal(t, x.want[1], page.Entries[0].Content)
		assert.Equal(t, len(x.want), page.Total)
	}
	leaves := must(h.query.Turns(ctx, domain.TurnFilter{Leaves: true}))(t)
	assert.ElementsMatch(t, []string{"c", "e", "f", "g"}, each(leaves, promptOf))
}

func TestWhatFollowsATurnThatGoesOnQueuesBehindWhatIsThere(t *testing.T) {
	ctx := context.Background()
	release := make(chan struct{})
	var given prompts
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		given.add(x)
		<-release
		return completed
	})
	follow := func(from domain.TurnInSession, fork bool) (domain.TurnInSession, error) {
		return h.Continue(ctx, ContinueSpec{From: from.HumanLayerSession, Prompt: fmt.Sprint("after ", from.Prompt), Fork: fork})
	}
	a := inState(t, h, launch(t, h, "a"), domain.Running)
	b := must(follow(a, false))(t)
	c, err := follow(a, false) // b waits behind it already
	require.NoError(t, err)
	d := must(follow(b, false))(t)
	for _, s := range []domain.TurnInSession{b, c, d} {
		assert.Equal(t, []any{a.Session.ID, domain.Queued}, []any{s.Session.ID, s.State})
	}
	assert.Equal(t, []string{a.HumanLayerSession, b.HumanLayerSession, c.HumanLayerSession}, []string{b.ParentHumanLayerSession, c.ParentHumanLayerSession, d.ParentHumanLayerSession})
	for _, s := range []domain.TurnInSession{a, b} {
		assert.Equal(t, domain.KindBadState, kindOf(t, errorOf(follow(s, true))))
	}
	close(release)
	await(t, h, d)
	assert.Equal(t, []string{"a", "after a", "after a", "after after a"}, given.all())
	fork, err := follow(a, false) // an earlier turn that has ended
	require.NoError(t, err)
	assert.NotEqual(t, a.Session.ID, fork.Session.ID)
	await(t, h, fork)
}

func TestNoCallersIDIsTakenOver(t *testing.T) {
	ctx := context.Background()
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed })
	for _, id := range []string{"task-0002", "task-00002", "task-12345"} {
		for param, spec := range map[string]LaunchSpec{"task_id": {CallerID: id}, "session_id": {SessionAlias: id}} {
			spec.Prompt = "p"
			_, err := h.Launch(ctx, spec)
			e := refusal(t, err, "%s %s", param, id)
			assert.Equal(t, []string{domain.KindInvalid, param}, []string{e.Kind, e.Param})
		}
	}
	first, err := h.Launch(ctx, LaunchSpec{Prompt: "p", CallerID: "task-2", SessionAlias: "task-000x"}) // ids that Duet did not make
	require.NoError(t, err)
	next := launchIn(t, h, domain.TaskName(first.Task), "it goes on there")
	assert.Equal(t, first.Session.ID, next.Session.ID)

	// Earlier versions accepted such ids.
	const theirs = "task-0003"
	require.NoError(t, h.store.Write(ctx, func(tx store.Tx) error { return tx.SetAlias(theirs, first.Turn.ID, first.Session.ID) }))
	third := launch(t, h, "p")
	assert.Equal(t, int64(4), third.Task, "the number is left out")
	found := turnOf(t, h, theirs)
	assert.Equal(t, first.UUID, found.UUID)
	assert.Equal(t, first.Session.ID, launchIn(t, h, theirs, "still theirs").Session.ID)
	found = turnOf(t, h, domain.TaskName(third.Task))
	assert.Equal(t, third.UUID, found.UUID)
}
