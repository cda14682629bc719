package hub

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/trigger"
)

// rulebook holds the triggers of a test's configuration, which may change.
type rulebook struct {
	mu sync.Mutex
	trigger.Definitions
}

func rules(list ...config.Trigger) *rulebook {
	for i := range list {
		list[i].Enabled = true
	}
	return &rulebook{Definitions: trigger.Definitions{Triggers: list, Automation: config.DefaultAutomation()}}
}

func (r *rulebook) now(bool) (*config.Config, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &config.Config{Triggers: r.Triggers, Automation: r.Automation}, nil
}

func (r *rulebook) option(o *Options) { fakeOf(o).current = r.now }

// executed collects the trigger events.
func executed(t *testing.T, h *Hub) *collected {
	return subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventTrigger}}, 0)
}

// statuses returns the statuses of the received trigger events.
func (c *collected) statuses() []string {
	return each(c.all(), func(n eventlog.Notice) string { return n.Payload.(domain.TriggerExecuted).Status })
}

func (c *collected) await(t *testing.T, statuses ...string) {
	t.Helper()
	c.until(t, func() bool { return len(c.statuses()) >= len(statuses) })
	require.Equal(t, statuses, c.statuses())
}

func agentDoes(prompt string) domain.TriggerAction {
	return domain.TriggerAction{Type: domain.ActionAgent, Prompt: prompt}
}

var notifies = domain.TriggerAction{Type: domain.ActionNotify, Message: "{{payload.task_id}} {{type}}", Channel: "desk"}

// answers fails for a prompt that begins with the word, and completes for one that quotes it.
func answers(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
	if strings.HasPrefix(x.p.Prompt, "fail") {
		return catalog.ExecutePromptResult{Status: catalog.StatusFailed}
	}
	x.say("done")
	return completed
}

func TestATurnThatEndsBeginsAnother(t *testing.T) {
	r := rules(config.Trigger{ID: "mend", Type: "turn.failed", Action: agentDoes("mend {{payload.task_id}}: {{payload.prompt}} {{payload.nothing}}")})
	h := openHub(t, database(t), answers, r.option)
	c := executed(t, h)
	first := await(t, h, launch(t, h, "fail, please"))
	c.await(t, domain.TriggerSubmitted)
	list := must(h.store.TurnsInSessions(context.Background(), domain.TurnFilter{Source: domain.SourceTrigger}))(t)
	require.Len(t, list, 1)
	assert.Equal(t, "mend "+domain.TaskName(first.Task)+": fail, please {{payload.nothing}}", list[0].Prompt)
	assert.Equal(t, "Trigger mend", list[0].Title)
	assert.JSONEq(t, `{"source":"automation","ruleId":"mend","eventType":"turn.failed","trigger":"mend","trigger_depth":1}`, string(list[0].Metadata))
	assert.Equal(t, domain.Completed, await(t, h, list[0]).State, "its prompt quotes the failure and is none, so it begins no third")
}

// A trigger that triggers itself stops at the depth limit and reports that once.
func TestNoTriggerSetsItselfOffForEver(t *testing.T) {
	r := rules(config.Trigger{ID: "again", Source: "turn", Type: "turn.completed", Action: agentDoes("again")})
	h := openHub(t, database(t), answers, r.option)
	c := executed(t, h)
	launch(t, h, "begin")
	c.await(t, domain.TriggerSubmitted, domain.TriggerSubmitted, domain.TriggerSubmitted, domain.TriggerDepthLimited)
}

// The number of turns that a trigger starts in an hour is limited, also when each turn starts a new
// chain.
func TestATriggerDoesNotDoTooMuchInAnHour(t *testing.T) {
	r := rules(config.Trigger{ID: "n", Type: "turn.completed", Action: notifies})
	r.Automation.MaxPerHour = 2
	h := openHub(t, database(t), answers, r.option)
	c := executed(t, h)
	for range 4 {
		await(t, h, launch(t, h, "x"))
	}
	other := rules(config.Trigger{ID: "last", Type: "turn.completed", Action: notifies})
	r.mu.Lock()
	r.Triggers = append(r.Triggers, other.Triggers...)
	r.mu.Unlock()
	h.Triggers().Look()
	c.until(t, func() bool { return len(c.statuses()) >= 3 })
	for len(c.statuses()) < 4 {
		await(t, h, launch(t, h, "x")) // until the other trigger is known
	}
	assert.Equal(t, []string{domain.TriggerNotified, domain.TriggerNotified, domain.TriggerRateLimited}, c.statuses()[:3])
	assert.Len(t, must(h.store.TriggerExecutions(context.Background(), "n", 10))(t), 3, "it is reported once")
}

func TestACooldownKeepsATriggerStill(t *testing.T) {
	r := rules(config.Trigger{ID: "calm", Type: "turn.completed", Action: notifies, Cooldown: time.Hour}, config.Trigger{ID: "each", Type: "turn.completed", Action: notifies})
	h := openHub(t, database(t), answers, r.option)
	c := executed(t, h)
	for range 3 {
		await(t, h, launch(t, h, "x"))
	}
	c.await(t, domain.TriggerNotified, domain.TriggerNotified, domain.TriggerNotified, domain.TriggerNotified)
	assert.Len(t, must(h.store.TriggerExecutions(context.Background(), "calm", 10))(t), 1)
}

func TestAPersonIsAskedFirst(t *testing.T) {
	for _, c := range []struct {
		action   domain.TriggerAction
		decision string
		status   string
		state    domain.State // of the draft that had the question
	}{
		{agentDoes("go"), approval.Approve, domain.TriggerSubmitted, domain.Completed},
		{agentDoes("go"), approval.Deny, domain.TriggerDenied, domain.Discarded},
		{notifies, approval.Approve, domain.TriggerNotified, domain.Discarded},
	} {
		t.Run(c.action.Type+" "+c.decision, func(t *testing.T) {
			r := rules(config.Trigger{ID: "ask", Type: "turn.failed", Action: c.action, RequiresApproval: true})
			file := database(t)
			h := openHub(t, file, answers, r.option)
			reported := executed(t, h)
			await(t, h, launch(t, h, "fail"))
			reported.await(t, domain.TriggerWaiting)
			pending := must(h.Approvals().Pending(context.Background(), ""))(t)
			require.Len(t, pending, 1)
			assert.Contains(t, pending[0].Title, "Trigger ask (turn.failed) wants to")
			// The question outlives the process.
			require.NoError(t, h.Close())
			h = openHub(t, file, answers, r.option)
			reported = subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventTrigger}}, h.Events().Last())
			decide(t, h, approval.Decision{ID: pending[0].ID, Decision: c.decision, Comment: "because"})
			reported.await(t, c.status)
			draft := must(h.store.TurnInSession(context.Background(), pending[0].Turn))(t)
			if c.state == domain.Completed {
				draft = await(t, h, draft)
			}
			assert.Equal(t, c.state, draft.State)
		})
	}
}

// A rule that allows every tool does not approve a trigger's proposal.
func TestNoRuleAgreesToATrigger(t *testing.T) {
	r := rules(config.Trigger{ID: "ask", Type: "turn.failed", Action: agentDoes("go"), RequiresApproval: true})
	h := openHub(t, database(t), answers, r.option)
	c := executed(t, h)
	await(t, h, launch(t, h, "fail"))
	c.await(t, domain.TriggerWaiting)
	pending := must(h.Approvals().Pending(context.Background(), ""))(t)
	require.NoError(t, h.write(context.Background(), func(tx store.Tx) error {
		return tx.PutRule(domain.Rule{Effect: "allow", Tool: "*"})
	}))
	require.NoError(t, h.Approvals().ReconsiderAll(context.Background()))
	assert.Equal(t, pending, must(h.Approvals().Pending(context.Background(), ""))(t))
}

// A rule would never count, so none is offered or made.
func TestAnswerToATriggerMakesNoRule(t *testing.T) {
	r := rules(config.Trigger{ID: "ask", Type: "turn.failed", Action: agentDoes("go"), RequiresApproval: true})
	h := openHub(t, database(t), answers, r.option)
	c := executed(t, h)
	await(t, h, launch(t, h, "fail"))
	c.await(t, domain.TriggerWaiting)
	pending := must(h.Approvals().Pending(context.Background(), ""))(t)
	require.Len(t, pending, 1)
	assert.Nil(t, approval.RulePreview(pending[0], approval.Directories{}))
	for _, decision := range []string{approval.Approve, approval.Deny} {
		for _, scope := range domain.RuleScopes() {
			_, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: pending[0].ID, Decision: decision, Comment: "c", Scope: scope})
			assert.ErrorContains(t, err, "once: a trigger with requires_approval always asks")
		}
	}
	assert.Empty(t, must(h.Approvals().Rules(context.Background()))(t))
	decide(t, h, approval.Decision{ID: pending[0].ID, Decision: approval.Approve, Scope: domain.ScopeOnce})
	c.await(t, domain.TriggerWaiting, domain.TriggerSubmitted)
}

func TestWebhooksGoWhereTheUserSays(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body := new(strings.Builder)
		_, _ = io.Copy(body, q.Body)
		mu.Lock()
		bodies = append(bodies, body.String())
		mu.Unlock()
		if q.URL.Path == "/away" {
			http.Redirect(w, q, elsewhere.URL, http.StatusTemporaryRedirect)
		}
	}))
	defer srv.Close()
	hook := func(id, address string) config.Trigger {
		return config.Trigger{ID: id, Type: "turn.completed", Action: domain.TriggerAction{Type: domain.ActionWebhook, URL: address}, FromProject: true}
	}
	r := rules(hook("there", srv.URL+"/x"), hook("away", srv.URL+"/away"), hook("elsewhere", elsewhere.URL))
	r.Automation.WebhookHosts = []string{strings.TrimPrefix(srv.URL, "http://")}
	h := openHub(t, database(t), answers, r.option)
	c := executed(t, h)
	await(t, h, launch(t, h, "x"))
	c.until(t, func() bool { return len(c.statuses()) >= 5 })
	assert.ElementsMatch(t, []string{domain.TriggerSending, domain.TriggerSending, domain.TriggerError, domain.TriggerSent, domain.TriggerError}, c.statuses())
	list := must(h.store.TriggerExecutions(context.Background(), "", 10))(t)
	became := map[string]string{}
	for _, x := range list {
		became[x.Trigger] = x.Status + " " + x.Error
	}
	assert.Equal(t, "webhook_sent ", became["there"])
	assert.Contains(t, became["away"], "307")
	assert.Contains(t, became["elsewhere"], "not among automation.webhook_hosts")
	mu.Lock()
	defer mu.Unlock()
	assert.Len(t, bodies, 2)
	assert.Contains(t, bodies[0], `"type":"turn.completed"`)
}

func TestTriggersStayAsTheyAreSwitched(t *testing.T) {
	ctx := context.Background()
	r := rules(config.Trigger{ID: "a", Type: "turn.completed", Action: notifies}, config.Trigger{ID: "b", Type: "turn.completed", Action: notifies})
	file := database(t)
	h := openHub(t, file, answers, r.option)
	known := must(h.Triggers().Switch(ctx, "a", false, true))(t)
	assert.True(t, known)
	known = must(h.Triggers().Switch(ctx, "nobody", false, true))(t)
	assert.False(t, known)
	require.NoError(t, h.Close())

	h = openHub(t, file, answers, r.option)
	c := executed(t, h)
	await(t, h, launch(t, h, "x"))
	c.await(t, domain.TriggerNotified)
	s := must(h.Triggers().Status(ctx, 10, true))(t)
	assert.True(t, s.Enabled)
	assert.Equal(t, []bool{false, true}, []bool{s.Triggers[0].On, s.Triggers[1].On})
	assert.Equal(t, "b", s.Recent[0].Trigger)
	require.NoError(t, h.Triggers().SwitchAll(ctx, false))
	require.NoError(t, h.Close())

	h = openHub(t, file, answers, r.option)
	s = must(h.Triggers().Status(ctx, 10, true))(t)
	assert.False(t, s.Enabled)
	await(t, h, launch(t, h, "x"))
	require.NoError(t, h.Triggers().SwitchAll(ctx, true))
	c = executed(t, h)
	await(t, h, launch(t, h, "y"))
	c.until(t, func() bool { return len(c.statuses()) >= 2 })
	assert.Len(t, c.statuses(), 2, "what happened while it was off is not for it")
}

// A due time starts its session in one transaction, once.
func TestATimeThatComesBeginsASession(t *testing.T) {
	file := filepath.Join(t.TempDir(), "duet.db")
	r := rules(config.Trigger{ID: "tick", Cron: "*/5 * * * *", Action: agentDoes("{{payload.job_id}} {{payload.due}}")})
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, file, answers, r.option)
		time.Sleep(12 * time.Minute) // fake time, as in all tests here: two times are due
		synctest.Wait()
		require.Len(t, must(h.store.TriggerExecutions(context.Background(), "tick", 10))(t), 2)
		turns := must(h.store.TurnsInSessions(context.Background(), domain.TurnFilter{Source: domain.SourceTrigger}))(t)
		require.Len(t, turns, 2)
		assert.Equal(t, "tick 2000-01-01T00:10:00Z", turns[0].Prompt)
		require.NoError(t, h.Close())
	})
}

// A cooldown continues after a restart.
func TestACooldownHoldsAcrossARestart(t *testing.T) {
	file := database(t)
	r := rules(config.Trigger{ID: "calm", Type: "turn.completed", Action: notifies, Cooldown: 10 * time.Second})
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, file, answers, r.option)
		await(t, h, launch(t, h, "x"))
		time.Sleep(2 * time.Second) // within the cooldown
		await(t, h, launch(t, h, "y"))
		time.Sleep(time.Second) // the action is done
		require.NoError(t, h.Close())
		time.Sleep(20 * time.Second) // the cooldown is over
		h = openHub(t, file, answers, r.option)
		time.Sleep(time.Second) // the missed action is done
		assert.Len(t, must(h.store.TriggerExecutions(context.Background(), "calm", 10))(t), 1)
		require.NoError(t, h.Close())
	})
}

// A clock that is set back while there is no hub neither stops triggers nor repeats what they did. Each
// bubble begins at the same time.
func TestTriggersAfterTheClockWasSetBack(t *testing.T) {
	file := database(t)
	r := rules(
		config.Trigger{ID: "each", Type: "turn.completed", Action: notifies},
		config.Trigger{ID: "calm", Type: "turn.completed", Action: notifies, Cooldown: time.Hour},
		config.Trigger{ID: "tick", Cron: "5 * * * *", Action: notifies},
	)
	count := func(h *Hub, id string) int {
		return len(must(h.store.TriggerExecutions(context.Background(), id, 100))(t))
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10*time.Hour + 30*time.Minute)
		h := openHub(t, file, answers, r.option, withoutPolling)
		for range 3 {
			await(t, h, launch(t, h, "x"))
		}
		time.Sleep(time.Hour)
		assert.Equal(t, []int{3, 1, 1}, []int{count(h, "each"), count(h, "calm"), count(h, "tick")})
		require.NoError(t, h.Close())
	})
	synctest.Test(t, func(t *testing.T) { // ten hours before
		h := openHub(t, file, answers, r.option, withoutPolling)
		time.Sleep(time.Minute)
		assert.Equal(t, []int{3, 1, 1}, []int{count(h, "each"), count(h, "calm"), count(h, "tick")}, "nothing is repeated")
		await(t, h, launch(t, h, "x"))
		time.Sleep(12 * time.Hour)
		assert.Equal(t, []int{4, 2, 12}, []int{count(h, "each"), count(h, "calm"), count(h, "tick")}, "11:05 does not fire again")
		require.NoError(t, h.Close())
	})
}

// A time that was due without a hub is handled if it is less than a minute old.
func TestATimeThatComesWhileThereIsNoHub(t *testing.T) {
	for name, c := range map[string]struct {
		away time.Duration
		due  []string
	}{
		"within the last minute":     {50 * time.Second, []string{"tick 2000-01-01T00:05:00Z"}},
		"before the last minute":     {80 * time.Second, nil},
		"twice, of which one is not": {5*time.Minute + 50*time.Second, []string{"tick 2000-01-01T00:10:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "duet.db")
			r := rules(config.Trigger{ID: "tick", Cron: "*/5 * * * *", Action: agentDoes("{{payload.job_id}} {{payload.due}}")})
			synctest.Test(t, func(t *testing.T) {
				h := openHub(t, file, answers, r.option)
				time.Sleep(4*time.Minute + 50*time.Second) // ten seconds before a time that is due
				require.NoError(t, h.Close())
				time.Sleep(c.away)
				for range 3 { // also if it dies again and again
					h = openHub(t, file, answers, r.option)
					time.Sleep(time.Second) // the missed action is done
					require.NoError(t, h.Close())
				}
				h = openHub(t, file, answers, r.option)
				turns := must(h.store.TurnsInSessions(context.Background(), domain.TurnFilter{Source: domain.SourceTrigger}))(t)
				assert.Equal(t, c.due, each(turns, promptOf))
				require.NoError(t, h.Close())
			})
		})
	}
}

// A trigger that failed on a full disk is retried when space is free.
func TestATriggerWaitsForRoomOnTheDisk(t *testing.T) {
	root := t.TempDir()
	r := rules(
		config.Trigger{ID: "tick", Cron: "*/5 * * * *", Action: agentDoes("{{payload.job_id}} {{payload.due}}")},
		config.Trigger{ID: "runs", Type: "turn.completed", Action: notifies, Conditions: []config.Condition{{Field: "payload.source", Operator: "neq", Value: "trigger"}}},
	)
	synctest.Test(t, func(t *testing.T) {
		var s fullStore
		h := openHub(t, filepath.Join(root, "duet.db"), answers, r.option, onFullStore(&s))
		await(t, h, launch(t, h, "x"))
		synctest.Wait()
		time.Sleep(4*time.Minute + 59*time.Second) // a second before a time that is due
		s.full.Store(true)
		time.Sleep(20 * time.Second) // due, and the first try fails
		s.full.Store(false)
		time.Sleep(10 * time.Second) // retried every five seconds
		for _, id := range []string{"tick", "runs"} {
			list := must(h.store.TriggerExecutions(context.Background(), id, 10))(t)
			require.Equal(t, 1, len(list), id)
			assert.Empty(t, list[0].Error)
		}
		require.NoError(t, h.Close())
	})
}

// writeWhenWatched writes a file once the hub watches its directory.
func writeWhenWatched(t *testing.T, h *Hub, file string) {
	t.Helper()
	require.Eventually(t, func() bool { return h.Triggers().Sources().Watch.Directories == 1 }, within, time.Millisecond)
	require.NoError(t, os.WriteFile(file, []byte("new"), 0o600))
}

func TestFilesThatChangeBeginASession(t *testing.T) {
	root := t.TempDir()
	r := rules(config.Trigger{ID: "files", Source: "watch", Extensions: []string{".go"}, Debounce: 50 * time.Millisecond, Cooldown: time.Hour, Action: agentDoes("{{payload.path}} {{payload.event_type}}")})
	h := openHub(t, database(t), answers, r.option, func(o *Options) { o.Root = root })
	c := executed(t, h)
	writeWhenWatched(t, h, filepath.Join(root, "a.go"))
	c.await(t, domain.TriggerSubmitted)
	turns := must(h.store.TurnsInSessions(context.Background(), domain.TurnFilter{Source: domain.SourceTrigger}))(t)
	assert.Regexp(t, "^a.go (create|modify)$", turns[0].Prompt)
	w := h.Triggers().Sources().Watch
	assert.Equal(t, []any{true, []string{"."}, 1, ""}, []any{w.Enabled, w.Paths, w.Directories, w.Problem})

	r.mu.Lock()
	r.Triggers = nil
	r.mu.Unlock()
	must(h.Triggers().Status(context.Background(), 1, true))(t)
	require.Eventually(t, func() bool { return !h.Triggers().Sources().Watch.Enabled }, within, time.Millisecond)
}

// A session that changes the files its trigger watches counts as the trigger's own.
func TestFilesThatASessionChangesCountAsItsOwn(t *testing.T) {
	root := t.TempDir()
	r := rules(config.Trigger{ID: "files", Source: "watch", Extensions: []string{".go"}, Debounce: 50 * time.Millisecond, Action: agentDoes("work")})
	r.Automation.MaxDepth = 2
	n := 0
	var mu sync.Mutex
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		mu.Lock()
		n++
		file := filepath.Join(root, fmt.Sprintf("made-%d.go", n))
		mu.Unlock()
		_ = os.WriteFile(file, nil, 0o600)
		return completed
	}, r.option, func(o *Options) { o.Root = root })
	c := executed(t, h)
	writeWhenWatched(t, h, filepath.Join(root, "a.go"))
	c.until(t, func() bool { return slices.Contains(c.statuses(), domain.TriggerDepthLimited) })
}
