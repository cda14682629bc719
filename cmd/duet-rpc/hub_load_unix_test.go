//go:build unix && soak

package main_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/require"
)

// A load is how much TestCrowd asks of a hub.
type load struct {
	clients, tasks int // tasks of each client
	subscribers    int // at most
	within         time.Duration
	patient        time.Duration // for a reply
	peak, rest     int           // bytes the hub may have at most, and once it has nothing to do
}

// loadOf is a small load, or a great one where DUET_LOAD_TESTS says how many
// tasks each of its clients has (make load).
func loadOf() load {
	if tasks, err := strconv.Atoi(os.Getenv("DUET_LOAD_TESTS")); err == nil {
		return load{clients: 200, tasks: tasks, subscribers: 20, within: 10 * time.Minute, patient: 8 * time.Minute, peak: 256 << 20, rest: 80 << 20}
	}
	return load{clients: 40, tasks: 10, subscribers: 20, within: watchdog, patient: watchdog * 2 / 3, peak: 192 << 20, rest: 60 << 20}
}

const (
	idleClients = 1000
	// deafRatio is how much longer the median of calls may take beside clients
	// that never read: they would make it thousands of times as long, or
	// endless, if anybody waited for them.
	deafRatio = 3
	// deafCalls is how much such a client asks at most, and deafPatience is
	// when it is sure that no more is taken.
	deafCalls    = 100_000
	deafPatience = 500 * time.Millisecond
	// logLines is how much a hub may say about all that.
	logLines = 60
)

// foreground starts a daemon that is a child of the test.
func (s *site) foreground(lives time.Duration) *process {
	s.t.Helper()
	l := s.launch()
	var err error
	l.binary, err = fastProgram() // it starts executors by the hundred, and its memory is looked at
	require.NoError(s.t, err)
	l.watchdog = lives
	l.args = append([]string{"daemon", "start", "--foreground"}, l.args...)
	p := l.start(s.t)
	p.requireLog("listening")
	return p
}

// end stops a daemon.
func (s *site) end(p *process) {
	s.t.Helper()
	_, err := s.command("daemon", "stop", "--force")
	require.NoError(s.t, err)
	p.requireSuccess()
	requireNoFile(s.t, s.socketPath())
}

// A tally is the states that a subscriber received.
type tally struct {
	mu     sync.Mutex // guards the fields below
	last   int64
	events int
	states map[string]int // how many of runStates a session has gone through
	ended  int
	wrong  string // the first thing that was
}

// runStates are those that a run goes through that is not disturbed.
var runStates = []string{"queued", "starting", "running", "completed"}

func (y *tally) hear(e event) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.events++
	if e.Seq <= y.last && y.wrong == "" {
		y.wrong = fmt.Sprintf("%d came after %d", e.Seq, y.last)
	}
	y.last = max(y.last, e.Seq)
	if e.Type == "lagged" && y.wrong == "" {
		y.wrong = "it lagged: " + string(e.Raw)
	}
	if e.Type != "session_status_changed" {
		return
	}
	n := y.states[e.Data.SessionID]
	if (n == len(runStates) || e.Data.State != runStates[n]) && y.wrong == "" {
		y.wrong = fmt.Sprintf("state %d of %s is %s %s", n, e.Data.SessionID, e.Data.State, e.Data.Error)
	}
	y.states[e.Data.SessionID] = n + 1
	if n+1 == len(runStates) {
		y.ended++
	}
}

func (y *tally) reported() (events, ended int, wrong string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.events, y.ended, y.wrong
}

// A caller is a client of one of the families in a crowd.
type caller struct {
	family int
	number int
	line   *lineClient // or
	editor *client
	leave  func()
	heard  *tally // nil: it has not subscribed
	latest string // its last session

	mu    sync.Mutex      // guards ended
	ended map[string]bool // tasks reported as completed
}

// Families.
const (
	taskCaller    = iota // AIWG
	sessionCaller        // HumanLayer
	editorCaller         // LSP frames
	promptCaller         // the executor catalog
	families
)

func newCaller(t *testing.T, path string, number int, l load) *caller {
	c := &caller{family: number % families, number: number}
	conn := connect(t, path)
	c.leave = func() { conn.CloseWrite() }
	subscribes := (c.family == sessionCaller || c.family == editorCaller) && number/families*2 < l.subscribers
	if subscribes {
		c.heard = &tally{states: make(map[string]int)}
	}
	if c.family == editorCaller {
		file, err := conn.File()
		require.NoError(t, err)
		t.Cleanup(func() { file.Close() })
		c.editor = newClient(&process{t: t, stdin: file, stdout: file, frames: newFrameReader(file), log: &testkit.Text{}})
		c.editor.mu.Lock()
		c.editor.patient = l.patient
		c.editor.mu.Unlock()
	} else {
		c.line = linesOn(t, conn)
		c.line.mu.Lock()
		c.line.quiet, c.line.patient = true, l.patient
		c.line.mu.Unlock()
	}
	switch {
	case c.family == taskCaller:
		c.ended = make(map[string]bool)
		c.line.mu.Lock()
		c.line.note = func(n taskNote) {
			if n.Method == "event.taskCompleted" {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.ended[n.Params.TaskID] = true
			}
		}
		c.line.mu.Unlock()
		require.NoError(t, c.try("task.stats", object{}, nil)) // it receives task notifications from now on
	case subscribes:
		params := object{"since": 0, "event_types": []string{"session_status_changed"}}
		if number < families { // these want everything
			delete(params, "event_types")
		}
		if c.editor != nil {
			c.editor.mu.Lock()
			c.editor.heard = c.heard.hear
			c.editor.mu.Unlock()
		} else {
			c.line.mu.Lock()
			c.line.heard = c.heard.hear
			c.line.mu.Unlock()
		}
		require.NoError(t, c.try("Subscribe", params, nil))
	}
	return c
}

func (c *caller) try(method string, params, result any) error {
	if c.editor != nil {
		return c.editor.try(method, params, result)
	}
	return c.line.try(method, params, result)
}

// submit starts a run by a method of the caller's family; quick says that the
// method does not wait for its end.
func (c *caller) submit(prompt string) (session, task string, quick bool, err error) {
	var r struct {
		SessionID string `json:"session_id"`
		TaskID    string `json:"task_id"`
		Task      string `json:"taskId"`
		Status    string `json:"status"`
	}
	switch {
	case c.family == taskCaller:
		err = c.try("task.submit", object{"prompt": prompt, "agent": "said"}, &r)
		r.TaskID = r.Task
	case c.family == promptCaller:
		own := fmt.Sprintf("conversation %d", c.number)
		err = c.try("execute_prompt", object{"prompt": prompt, "agent": "said", "session_id": own, "timeout_ms": 600_000}, &r)
		if err == nil && r.Status != "completed" {
			err = errors.New(r.Status)
		}
	case c.latest != "":
		err = c.try("continueSession", object{"session_id": c.latest, "query": prompt}, &r)
	default:
		err = c.try("launchSession", object{"query": prompt, "agent": "said"}, &r)
	}
	if err == nil && (r.SessionID == "" || r.TaskID == "") {
		err = fmt.Errorf("the reply has no ids: %+v", r)
	}
	c.latest = r.SessionID
	return r.SessionID, r.TaskID, c.family != promptCaller, err
}

// look asks for something that is quickly answered.
func (c *caller) look(task string, n int) error {
	switch n % 4 {
	case 0:
		return c.try("ping", object{}, nil)
	case 1:
		return c.try("task.get", object{"taskId": task}, nil)
	case 2:
		return c.try("getSessionState", object{"session_id": task}, nil)
	}
	return c.try("task.stats", object{}, nil)
}

// latencies are those of calls that are answered at once.
type latencies []time.Duration

func (l latencies) at(percent int) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[min(len(l)-1, len(l)*percent/100)].Round(10 * time.Microsecond)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, time.Microsecond)) }
