//go:build unix && soak

package main_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A listening counts what an address is sent by triggers.
type listening struct {
	mu   sync.Mutex
	sent map[string]int // by task
}

func (l *listening) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var body struct {
		Event struct {
			Payload struct {
				TaskID string `json:"task_id"`
			}
		}
	}
	if json.NewDecoder(r.Body).Decode(&body) == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sent[body.Event.Payload.TaskID]++
	}
}

func (l *listening) times(task string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent[task]
}

// A triggersKilled is what triggers have done in a project whose hubs are killed.
type triggersKilled struct {
	tasks      []killedTask
	executions []killedExecution
}

type killedTask struct {
	ID, Prompt, Status string
	Metadata           struct{ RuleID string }
}

type killedExecution struct {
	RuleID, Status, TaskID string
	Event                  struct {
		Payload struct {
			TaskID string `json:"task_id"`
			Paths  []string
		}
	}
}

func readTriggersKilled(c *client) (k triggersKilled) {
	c.t.Helper()
	// In this order: what is executed between the two has its session in the second.
	var log struct{ Executions []killedExecution }
	c.call("automation.log", object{"limit": 500}, &log)
	require.Less(c.t, len(log.Executions), 500, "all are kept")
	k.executions = log.Executions
	c.call("task.list", object{"limit": 1000}, &k.tasks)
	return k
}

// own are the tasks that people have begun.
func (k triggersKilled) own() []killedTask {
	return slices.DeleteFunc(slices.Clone(k.tasks), func(t killedTask) bool { return t.Metadata.RuleID != "" })
}

// of are the executions of a trigger that fit.
func (k triggersKilled) of(rule string, fits func(killedExecution) bool) (list []killedExecution) {
	for _, x := range k.executions {
		if x.RuleID == rule && fits(x) {
			list = append(list, x)
		}
	}
	return list
}

func (k triggersKilled) ofTask(rule, task string) []killedExecution {
	return k.of(rule, func(x killedExecution) bool { return x.Event.Payload.TaskID == task })
}

func (k triggersKilled) ofFile(file string) []killedExecution {
	return k.of("files", func(x killedExecution) bool { return slices.Contains(x.Event.Payload.Paths, file) })
}

// seenTo reports whether all that has happened was seen to. Nothing may have been twice.
func (k triggersKilled) seenTo(t testing.TB, files []string, l *listening) bool {
	t.Helper()
	complete := true
	for _, task := range k.own() {
		follow, call := k.ofTask("follow", task.ID), k.ofTask("call", task.ID)
		require.LessOrEqual(t, len(follow), 1, "of %v", task)
		require.LessOrEqual(t, len(call), 1, "of %v", task)
		require.LessOrEqual(t, l.times(task.ID), 1, "of %v", task)
		complete = complete && ended(task.Status) && len(follow) == 1 && len(call) == 1 && call[0].Status != "sending"
	}
	for _, file := range files {
		require.LessOrEqual(t, len(k.ofFile(file)), 1, file)
		complete = complete && len(k.ofFile(file)) == 1
	}
	return complete
}

// Whenever the program is killed, what a trigger does for an event it does once: by what is
// kept of it, by the sessions that there are, and by what an address was sent.
func TestATriggerDoesSomethingOnceWheneverTheHubIsKilled(t *testing.T) {
	t.Parallel()
	l := &listening{sent: make(map[string]int)}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	s := newSite(t)
	const ended = `pattern = "^run\\.(completed|failed|timed_out|cancelled|interrupted):run$"
conditions = [{ field = "payload.source", operator = "neq", value = "trigger" }]
`
	s.agents(`
[limits]
max_runs = 20
[automation]
max_per_hour = 10000
max_depth = 10 # files are changed while sessions of triggers work
webhook_hosts = ["` + address.Host + `"]
[[triggers]]
id = "follow"
` + ended + `action = { type = "agent", prompt = "quiet follow {{payload.task_id}}" }
[[triggers]]
id = "call"
` + ended + `action = { type = "webhook", url = "` + server.URL + `" }
[[triggers]]
id = "files"
source = "watch"
paths = ["watched"]
debounce = "500ms"
action = { type = "agent", prompt = "quiet files {{payload.paths}}" }
`)
	require.NoError(t, os.Mkdir(filepath.Join(s.root, "watched"), 0o755))
	random := rand.New(rand.NewPCG(testSeed(t), 1))

	c := s.start()
	c.call("automation.status", object{}, nil)
	var files []string
	settle := func(c *client) triggersKilled {
		t.Helper()
		var k triggersKilled
		require.Eventually(t, func() bool {
			k = readTriggersKilled(c)
			return k.seenTo(t, files, l)
		}, watchdog/2, 20*time.Millisecond, "something was not seen to: %s", deferred(func() string {
			return fmt.Sprintf("%+v %+v %v", k.own(), k.executions, files)
		}))
		return k
	}
	settle(c) // the triggers are known
	c.crash()
	for round := range manyKills / 2 {
		c = s.start()
		c.call("daemon.status", object{}, nil)
		if round%3 == 2 { // so that nothing waits for longer than the last minute, which is promised
			settle(c)
		}
		var began sync.WaitGroup
		for range 1 + random.IntN(2) {
			began.Go(func() { _ = c.try("task.submit", object{"prompt": "quiet"}, nil) })
		}
		file := fmt.Sprintf("watched/%d", round)
		require.NoError(t, os.WriteFile(filepath.Join(s.root, file), []byte("x"), 0o600))
		files = append(files, file)
		time.Sleep(time.Duration(random.Int64N(int64(700 * time.Millisecond)))) // killed wherever it is then
		c.crash()
		began.Wait()
	}
	c = s.start()
	k := settle(c)

	require.NotEmpty(t, k.own())
	sent := 0
	for _, task := range k.own() {
		call := k.ofTask("call", task.ID)[0]
		if call.Status == "webhook_sent" {
			assert.Equal(t, 1, l.times(task.ID))
			sent++
		} else {
			assert.Equal(t, "error", call.Status, "it is unknown whether it arrived")
		}
	}
	assert.Positive(t, sent)
	// The sessions that there are are those that are kept as begun.
	begun := make(map[string]int)
	for _, task := range k.tasks {
		if task.Metadata.RuleID != "" && !strings.HasPrefix(task.Prompt, "Continue where you left off") {
			begun[task.Prompt]++
		}
	}
	for prompt, n := range begun {
		assert.Equal(t, 1, n, prompt)
	}
	follows := k.of("follow", func(x killedExecution) bool { return x.Status == "submitted" })
	batches := k.of("files", func(x killedExecution) bool { return x.Status == "submitted" })
	assert.Len(t, follows, len(k.own()))
	assert.Len(t, begun, len(follows)+len(batches), "%+v %+v", follows, batches)
	for _, x := range follows {
		assert.Equal(t, 1, begun["quiet follow "+x.Event.Payload.TaskID], x.Event.Payload.TaskID)
	}
	c.leave()
}
