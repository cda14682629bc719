//go:build unix && soak

package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A load is the size of TestCrowd.
type load struct {
	clients, tasks int // turns of each client
	subscribers    int // upper limit
	within         time.Duration
	patient        time.Duration // the limit for a reply
	peak, rest     int           // limits for the hub's memory in bytes, in the test and after it
}

// loadOf returns a small load. If DUET_LOAD_TESTS sets the number of turns of each client (make
// load), the load is large.
func loadOf() load {
	if tasks, err := strconv.Atoi(os.Getenv("DUET_LOAD_TESTS")); err == nil {
		return load{clients: 200, tasks: tasks, subscribers: 20, within: 10 * time.Minute, patient: 8 * time.Minute, peak: 256 << 20, rest: 80 << 20}
	}
	return load{clients: 40, tasks: 10, subscribers: 20, within: e2e.Watchdog, patient: e2e.Watchdog * 2 / 3, peak: 192 << 20, rest: 60 << 20}
}

const (
	idleClients = 1000
	// deafRatio limits the median call time beside clients that never read, as a multiple of the
	// time without them. If the hub waited for them, calls would take thousands of times as long.
	deafRatio = 3
	// deafCalls is the most requests that such a client sends. deafPatience is the write timeout at
	// which the client knows that the hub takes no more.
	deafCalls    = 100_000
	deafPatience = 500 * time.Millisecond
	// logLines limits the lines of the hub's log.
	logLines = 60
)

// startForeground starts a daemon that is a child of the test.
func startForeground(s *e2e.Site, lives time.Duration) *e2e.Process {
	s.T.Helper()
	l := s.Launch()
	l.Binary = e2e.FastProgram(s.T) // it starts hundreds of executors, and the test measures its memory
	l.Watchdog = lives
	l.Args = append([]string{"daemon", "start", "--foreground"}, l.Args...)
	p := l.Start(s.T)
	p.RequireLog("listening")
	return p
}

// stopDaemon stops a daemon and requires exit status 0.
func stopDaemon(s *e2e.Site, p *e2e.Process) {
	s.T.Helper()
	_, err := s.Command("daemon", "stop", "--force")
	require.NoError(s.T, err)
	p.RequireSuccess()
	e2e.RequireNoFile(s.T, s.SocketPath())
}

// A tally counts the states that a subscriber receives.
type tally struct {
	mu     sync.Mutex // guards the fields below
	last   int64
	events int
	states map[string]int // session to the number of turnStates that it has reached
	ended  int
	wrong  string // the first violation
}

// turnStates are the states of an undisturbed turn.
var turnStates = []string{"queued", "starting", "running", "completed"}

func (y *tally) hear(e e2e.Event) {
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
	if (n == len(turnStates) || e.Data.State != turnStates[n]) && y.wrong == "" {
		y.wrong = fmt.Sprintf("state %d of %s is %s %s", n, e.Data.SessionID, e.Data.State, e.Data.Error)
	}
	y.states[e.Data.SessionID] = n + 1
	if n+1 == len(turnStates) {
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
	*e2e.Peer
	family int
	number int
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
	conn := e2e.Connect(t, path)
	c.leave = func() { conn.CloseWrite() }
	subscribes := (c.family == sessionCaller || c.family == editorCaller) && number/families*2 < l.subscribers
	if subscribes {
		c.heard = &tally{states: make(map[string]int)}
	}
	if c.family == editorCaller {
		c.Peer = e2e.FramesOn(t, conn).Peer
	} else {
		line := e2e.LinesOn(t, conn)
		c.Peer = line.Peer
		c.Peer.Mu.Lock()
		line.Quiet = true
		c.Peer.Mu.Unlock()
	}
	c.Peer.Mu.Lock()
	c.Peer.Patient = l.patient
	switch {
	case c.family == taskCaller:
		c.ended = make(map[string]bool)
		c.Peer.Note = func(n e2e.TaskNote) {
			if n.Method == "event.taskCompleted" {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.ended[n.Params.TaskID] = true
			}
		}
	case subscribes:
		c.Peer.Heard = c.heard.hear
	}
	c.Peer.Mu.Unlock()
	switch {
	case c.family == taskCaller:
		require.NoError(t, c.Try("task.stats", object{}, nil)) // it receives task notifications from now on
	case subscribes:
		params := object{"since": 0, "event_types": []string{"session_status_changed"}}
		if number < families { // the first subscribers receive all events
			delete(params, "event_types")
		}
		require.NoError(t, c.Try("Subscribe", params, nil))
	}
	return c
}

// submit starts a turn with a method of the caller's family. quick reports whether the method
// returns before the end of the turn.
func (c *caller) submit(prompt string) (session, task string, quick bool, err error) {
	var r struct {
		SessionID string `json:"session_id"`
		TaskID    string `json:"task_id"`
		Task      string `json:"taskId"`
		Status    string `json:"status"`
	}
	switch {
	case c.family == taskCaller:
		err = c.Try("task.submit", object{"prompt": prompt, "agent": "said"}, &r)
		r.TaskID = r.Task
	case c.family == promptCaller:
		own := fmt.Sprintf("session %d", c.number)
		err = c.Try("execute_prompt", object{"prompt": prompt, "agent": "said", "session_id": own, "timeout_ms": 600_000}, &r)
		if err == nil && r.Status != "completed" {
			err = errors.New(r.Status)
		}
	case c.latest != "":
		err = c.Try("continueSession", object{"session_id": c.latest, "query": prompt}, &r)
	default:
		err = c.Try("launchSession", object{"query": prompt, "agent": "said"}, &r)
	}
	if err == nil && (r.SessionID == "" || r.TaskID == "") {
		err = fmt.Errorf("the reply has no ids: %+v", r)
	}
	c.latest = r.SessionID
	return r.SessionID, r.TaskID, c.family != promptCaller, err
}

// look sends a request that the hub answers at once.
func (c *caller) look(task string, n int) error {
	switch n % 4 {
	case 0:
		return c.Try("ping", object{}, nil)
	case 1:
		return c.Try("task.get", object{"taskId": task}, nil)
	case 2:
		return c.Try("getSessionState", object{"session_id": task}, nil)
	}
	return c.Try("task.stats", object{}, nil)
}

// latencies are the durations of calls that the hub answers at once.
type latencies []time.Duration

func (l latencies) at(percent int) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[min(len(l)-1, len(l)*percent/100)].Round(10 * time.Microsecond)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, time.Microsecond)) }

// A crowdRun is a running load.
type crowdRun struct {
	t       *testing.T
	callers []*caller

	mu       sync.Mutex     // guards the fields below
	sessions map[string]int // session to its caller
	tasks    map[string]int
	took     latencies // call durations of this phase
	calls    int
}

// phase has each caller start a number of turns, and returns the sorted call durations.
func (r *crowdRun) phase(tasks int) latencies {
	r.took = nil
	var group sync.WaitGroup
	for i, c := range r.callers {
		group.Go(func() {
			for n := range tasks {
				if err := r.one(i, c, n); err != nil {
					assert.NoError(r.t, err, "client %d of family %d", i, c.family)
					return
				}
			}
		})
	}
	group.Wait()
	require.False(r.t, r.t.Failed())
	slices.Sort(r.took)
	return r.took
}

func (r *crowdRun) one(i int, c *caller, n int) error {
	asked := time.Now()
	session, task, quick, err := c.submit(fmt.Sprintf("client %d task %d", i, n))
	if err != nil {
		return err
	}
	submitted := time.Now()
	err = c.look(task, n)
	looked := time.Since(submitted)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls += 2
	r.took = append(r.took, looked)
	if quick {
		r.took = append(r.took, submitted.Sub(asked))
	}
	if quick { // otherwise the caller names the session itself
		if _, twice := r.sessions[session]; twice {
			err = errors.Join(err, fmt.Errorf("session %s was given twice", session))
		}
		r.sessions[session] = i
	}
	if _, twice := r.tasks[task]; twice {
		err = errors.Join(err, fmt.Errorf("task %s was given twice", task))
	}
	r.tasks[task] = i
	return err
}

// deaf connects a client that never reads. The client sends requests until the hub takes no more.
func deaf(t *testing.T, path string, framing func(string) string) (leave func()) {
	conn := e2e.Connect(t, path)
	require.NoError(t, conn.SetReadBuffer(4<<10))
	ask := func(message string) error {
		if err := conn.SetWriteDeadline(time.Now().Add(deafPatience)); err != nil {
			return err
		}
		_, err := io.WriteString(conn, framing(message))
		return err
	}
	require.NoError(t, ask(`{"jsonrpc":"2.0","id":1,"method":"Subscribe","params":{"since":0}}`))
	require.NoError(t, ask(`{"jsonrpc":"2.0","id":2,"method":"task.stats"}`))
	for i := range deafCalls {
		if err := ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":"listMethods"}`, i)); err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			return func() { conn.Close() }
		}
	}
	require.Fail(t, "the hub takes all requests of a client that never reads")
	return nil
}

// A crowd of clients of all families, beside some that never read, loses no reply and no event. The
// hub's memory stays within its limit and shrinks afterwards.
func TestCrowd(t *testing.T) {
	_, err := socket.RaiseFileLimit()
	require.NoError(t, err)
	l := loadOf()
	s := e2e.NewSite(t)
	// The turns are as short as possible, so that the load is on the hub.
	s.Agents("[agents.said]\ndriver = \"command\"\ncommand = [\"echo\", \"{prompt}\"]\nhistory = \"none\"\n")
	s.Env = []string{"DUET_MAX_TURNS=8", "DUET_QUEUE_CAP=100000"}
	hub := startForeground(s, l.within+l.patient)
	path := s.SocketPath()
	before := hub.Memory(t, "VmRSS")

	r := &crowdRun{t: t, sessions: make(map[string]int), tasks: make(map[string]int)}
	for i := range l.clients {
		r.callers = append(r.callers, newCaller(t, path, i, l))
	}
	began := time.Now()
	var without, beside latencies
	phases := []bool{false, true, true, false} // this order cancels a slow drift
	done := 0
	for i, isBeside := range phases {
		n := l.tasks*(i+1)/len(phases) - done
		done += n
		if !isBeside {
			without = append(without, r.phase(n)...)
			continue
		}
		leaveLines := deaf(t, path, func(m string) string { return m + "\n" })
		leaveFrames := deaf(t, path, e2e.Framed)
		beside = append(beside, r.phase(n)...)
		leaveLines()
		leaveFrames()
	}
	submitted := time.Since(began)
	all := l.clients * l.tasks
	require.Len(t, r.tasks, all, "each turn has its own task id")

	// A client that receives states receives all of them once, in order.
	events, subscribers := 0, 0
	for i, c := range r.callers {
		switch {
		case c.heard != nil:
			subscribers++
			require.Eventually(t, func() bool {
				_, ended, wrong := c.heard.reported()
				return ended >= all || wrong != ""
			}, l.within, e2e.PollEvery, "client %d has not received all ends", i)
			n, ended, wrong := c.heard.reported()
			events += n
			require.Empty(t, wrong, "client %d", i)
			require.Equal(t, all, ended)
			for session := range r.sessions {
				require.Contains(t, c.heard.states, session, "client %d", i)
			}
		case c.family == taskCaller:
			require.Eventually(t, func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return len(c.ended) >= all
			}, l.within, e2e.PollEvery, "client %d has not received all tasks", i)
		}
	}
	require.Positive(t, subscribers)
	took := time.Since(began)
	assert.Less(t, took, l.within)
	var stats struct{ Total, Queued, Running, Completed int }
	require.NoError(t, r.callers[0].Try("task.stats", object{}, &stats))
	assert.Equal(t, struct{ Total, Queued, Running, Completed int }{all, 0, 0, all}, stats)

	slices.Sort(without)
	slices.Sort(beside)
	total := latencies(slices.Sorted(slices.Values(append(slices.Clone(without), beside...))))
	peak := hub.Memory(t, "VmHWM")
	for _, c := range r.callers {
		c.leave()
	}
	after := 0
	if !assert.Eventually(t, func() bool { after = hub.Memory(t, "VmRSS"); return after <= l.rest }, e2e.Watchdog/3, 50*time.Millisecond, "the hub's memory does not shrink") {
		t.Logf("the hub has %d MiB", after>>20)
	}
	assert.LessOrEqual(t, peak, l.peak)
	t.Logf("%d clients, %d runs, %d calls: submitted in %v, %.0f calls/s; all ended in %v, %.0f runs/s; %d events to %d subscribers",
		l.clients, all, r.calls, submitted.Round(time.Millisecond), float64(r.calls)/submitted.Seconds(), took.Round(time.Millisecond), float64(all)/took.Seconds(), events, subscribers)
	t.Logf("a call: p50 %v, p99 %v, worst %v", total.at(50), total.at(99), total.at(100))
	t.Logf("beside clients that never read: p50 %v, p99 %v; without: p50 %v, p99 %v; ratios %.2f and %.2f", beside.at(50), beside.at(99), without.at(50), without.at(99),
		ratio(beside.at(50), without.at(50)), ratio(beside.at(99), without.at(99)))
	t.Logf("memory: %d MiB at first, %d MiB at most, %d MiB afterwards", before>>20, peak>>20, after>>20)
	assert.Less(t, ratio(beside.at(50), without.at(50)), float64(deafRatio), "clients that never read delay the others")
	assert.Less(t, strings.Count(hub.Log.String(), "\n"), logLines, "the log is flooded:\n%s", hub.Log)
	stopDaemon(s, hub)
}

// A thousand idle clients do not slow other clients. The hub answers each of them, and its memory
// shrinks after their end.
func TestIdleClients(t *testing.T) {
	limit, err := socket.RaiseFileLimit()
	require.NoError(t, err)
	if limit < idleClients+200 {
		t.Skipf("%d clients need more than the %d files that this system lets a process have", idleClients, limit)
	}
	s := e2e.NewSite(t, "[agents.said]\ndriver = \"command\"\ncommand = [\"echo\", \"{prompt}\"]\nhistory = \"none\"\n")
	hub := startForeground(s, e2e.Watchdog)
	path := s.SocketPath()
	l := loadOf()
	before := hub.Memory(t, "VmRSS")
	worker := newCaller(t, path, promptCaller, l)
	measured := func() latencies {
		var took latencies
		for n := range 8 {
			began := time.Now()
			_, task, _, err := worker.submit(fmt.Sprintf("task %d", n))
			require.NoError(t, err)
			took = append(took, time.Since(began))
			require.NoError(t, worker.look(task, n))
		}
		slices.Sort(took)
		return took
	}
	alone := measured()

	conns := make([]net.Conn, idleClients)
	var group sync.WaitGroup
	began := time.Now()
	for i := range conns {
		group.Go(func() {
			conn, err := net.Dial("unix", path)
			if assert.NoError(t, err) {
				conns[i] = conn
			}
		})
	}
	group.Wait()
	require.False(t, t.Failed())
	connected := time.Since(began)
	clients := make([]*e2e.LineClient, idleClients)
	for i, conn := range conns {
		t.Cleanup(func() { conn.Close() })
		clients[i] = e2e.LinesOn(t, conn)
	}
	count := func() int {
		var status e2e.DaemonStatus
		require.NoError(t, worker.Try("daemon.status", object{}, &status))
		return status.Subsystems.IPC.Clients
	}

	for i, c := range clients { // a client counts from its first message
		if i%10 != 0 {
			c.Say(`{"jsonrpc":"2.0","method":"ping"}`)
		}
	}
	require.Eventually(t, func() bool { return count() == idleClients*9/10+1 }, e2e.Watchdog/3, e2e.PollEvery, "the hub does not count all clients")
	idle := hub.Memory(t, "VmRSS")
	crowded := measured()
	for i := range idleClients / 10 { // some subscribe
		require.NoError(t, clients[i*10+1].Try("Subscribe", object{}, nil))
	}
	watch := e2e.StartStopwatch(t)
	for _, i := range rand.Perm(idleClients) {
		group.Go(func() {
			method := []string{"ping", "task.stats", "listSessions"}[i%3]
			assert.NoError(t, clients[i].Try(method, object{}, nil), "client %d", i)
		})
	}
	group.Wait()
	answered := time.Since(watch.Began)
	watch.AssertWithin(t, 15*time.Second)
	peak := hub.Memory(t, "VmHWM")
	for _, c := range clients {
		c.Conn.Close()
	}
	require.Eventually(t, func() bool { return count() == 1 }, e2e.Watchdog/3, e2e.PollEvery, "the hub still counts closed clients")
	after := 0
	require.Eventually(t, func() bool { after = hub.Memory(t, "VmRSS"); return after <= l.rest }, e2e.Watchdog/3, 50*time.Millisecond, "the hub's memory does not shrink")
	t.Logf("%d clients connected in %v; a prompt took %v before and %v beside them; all answered in %v", idleClients,
		connected.Round(time.Millisecond), alone.at(50), crowded.at(50), answered.Round(time.Millisecond))
	t.Logf("memory: %d MiB at first, %d MiB while they wait, %d MiB at most, %d MiB afterwards", before>>20, idle>>20, peak>>20, after>>20)
	assert.LessOrEqual(t, peak, l.peak)
	again := measured() // the other load of the machine may have changed meanwhile
	assert.Less(t, ratio(crowded.at(50), max(alone.at(50), again.at(50))), float64(deafRatio), "idle clients delay the others")
	stopDaemon(s, hub)
}

// restartWithin limits the time from the start of a program, after a kill, to its first reply from
// the store.
const restartWithin = 100 * time.Millisecond

// After a kill, a project with a history is available again at once.
//
// The test uses the program without the race detector, which makes it several times slower. It does
// not run in parallel with other tests.
func TestRestartServesAtOnce(t *testing.T) {
	fast := e2e.FastProgram(t)
	start := func(s *e2e.Site) (*e2e.Client, time.Duration) {
		l := s.Launch()
		l.Binary = fast
		began := time.Now()
		c := e2e.NewClient(l.Start(t))
		c.Call("task.stats", object{}, nil)
		return c, time.Since(began)
	}
	s := e2e.NewSite(t)
	c, _ := start(s)
	c.Subscribe()
	for range 30 { // each has its own agent, which the next hub looks for after a crash
		c.Runs("stream:2000 tools:20")
	}
	var took, empty []time.Duration
	for range 15 {
		c.Launch("permit:1", "")
		c.Launch("stream:1000000", "")
		c.Launch("tools:1000000", "")
		c.Subscribe()
		c.Await("text", func(e e2e.Event) bool { return e.Type == "message_delta" })
		c.Crash()
		var d time.Duration
		c, d = start(s)
		took = append(took, d.Round(100*time.Microsecond))

		another, d := start(e2e.NewSite(t)) // in a project that has no history yet
		another.Leave()
		empty = append(empty, d.Round(100*time.Microsecond))
	}
	c.Leave()
	slices.Sort(took)
	slices.Sort(empty)
	median := len(took) / 2
	t.Logf("until the first reply from the store: new median %v; after a kill median %v, worst %v", empty[median], took[median], took[len(took)-1])
	// The time of a start depends on the other load of the machine.
	assert.Less(t, took[median], max(restartWithin, 4*empty[median]))
}

// The hub stores the chunks after a turn about as fast as the chunks in a turn.
func TestChunksAfterATurnAreAsFast(t *testing.T) {
	const chunks, rounds = 100_000, 5
	c := e2e.NewSite(t).Open()
	took := func(session string) time.Duration {
		shown := c.Session(session)
		return shown.Completed.Sub(shown.Started)
	}
	var ratios []float64
	for round := range rounds {
		in := c.Runs(fmt.Sprintf("quiet stream:%d", chunks))
		before := c.Launch(fmt.Sprintf("late:%d", chunks), "")
		own := c.AwaitOwnTurn(round + 1)
		assert.Equal(t, "completed", c.AwaitEnd(own).Data.State)
		assert.Equal(t, "completed", c.Session(before.SessionID).State)
		ratio := took(own).Seconds() / took(in.SessionID).Seconds()
		t.Logf("%d chunks: %v in a turn, %v after it, %.2f times as long", chunks, took(in.SessionID), took(own), ratio)
		ratios = append(ratios, ratio)
	}
	slices.Sort(ratios)
	t.Logf("chunks after the turn: %.2f times as long as in one (%.2f to %.2f)", ratios[rounds/2], ratios[0], ratios[rounds-1])
	assert.Less(t, ratios[rounds/2], 1.5)
	c.Leave()
}

// A listening counts the requests of triggers to a webhook.
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

// A triggersKilled holds the tasks and the trigger executions of a project whose hubs are killed.
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

func readTriggersKilled(c *e2e.Client) (k triggersKilled) {
	c.T.Helper()
	// The task list comes second, so it has the session of each execution in the log.
	var log struct{ Executions []killedExecution }
	c.Call("trigger.log", object{"limit": 500}, &log)
	require.Less(c.T, len(log.Executions), 500, "the log may lack executions")
	k.executions = log.Executions
	c.Call("task.list", object{"limit": 1000}, &k.tasks)
	return k
}

// own returns the tasks that users have begun.
func (k triggersKilled) own() []killedTask {
	return slices.DeleteFunc(slices.Clone(k.tasks), func(t killedTask) bool { return t.Metadata.RuleID != "" })
}

// of returns the executions of a trigger that fit.
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

// seenTo reports whether each task and each file has its executions. It requires that none has two.
func (k triggersKilled) seenTo(t testing.TB, files []string, l *listening) bool {
	t.Helper()
	complete := true
	for _, task := range k.own() {
		follow, call := k.ofTask("follow", task.ID), k.ofTask("call", task.ID)
		require.LessOrEqual(t, len(follow), 1, "of %v", task)
		require.LessOrEqual(t, len(call), 1, "of %v", task)
		require.LessOrEqual(t, l.times(task.ID), 1, "of %v", task)
		complete = complete && e2e.Ended(task.Status) && len(follow) == 1 && len(call) == 1 && call[0].Status != "sending"
	}
	for _, file := range files {
		require.LessOrEqual(t, len(k.ofFile(file)), 1, file)
		complete = complete && len(k.ofFile(file)) == 1
	}
	return complete
}

// A trigger acts once for an event, whenever the hub is killed. The execution log, the sessions and
// the requests to the webhook agree on that.
func TestATriggerDoesSomethingOnceWheneverTheHubIsKilled(t *testing.T) {
	t.Parallel()
	l := &listening{sent: make(map[string]int)}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	s := e2e.NewSite(t)
	const ended = `pattern = "^run\\.(completed|failed|timed_out|cancelled|interrupted):run$"
conditions = [{ field = "payload.source", operator = "neq", value = "trigger" }]
`
	s.Agents(`
[limits]
max_turns = 20
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
	require.NoError(t, os.Mkdir(filepath.Join(s.Root, "watched"), 0o755))
	random := rand.New(rand.NewPCG(testkit.Seed(t), 1))

	c := s.Start()
	c.Call("automation.status", object{}, nil)
	var files []string
	settle := func(c *e2e.Client) triggersKilled {
		t.Helper()
		var k triggersKilled
		require.Eventually(t, func() bool {
			k = readTriggersKilled(c)
			return k.seenTo(t, files, l)
		}, e2e.Watchdog/2, 20*time.Millisecond, "an execution is missing: %s", e2e.Deferred(func() string {
			return fmt.Sprintf("%+v %+v %v", k.own(), k.executions, files)
		}))
		return k
	}
	settle(c) // the hub knows the triggers now
	c.Crash()
	for round := range manyKills / 2 {
		c = s.Start()
		c.Call("daemon.status", object{}, nil)
		if round%3 == 2 { // so that no event waits longer than the promised minute
			settle(c)
		}
		var began sync.WaitGroup
		for range 1 + random.IntN(2) {
			began.Go(func() { _ = c.Try("task.submit", object{"prompt": "quiet"}, nil) })
		}
		file := fmt.Sprintf("watched/%d", round)
		require.NoError(t, os.WriteFile(filepath.Join(s.Root, file), []byte("x"), 0o600))
		files = append(files, file)
		time.Sleep(time.Duration(random.Int64N(int64(700 * time.Millisecond)))) // the kill comes at any moment
		c.Crash()
		began.Wait()
	}
	c = s.Start()
	k := settle(c)

	require.NotEmpty(t, k.own())
	sent := 0
	for _, task := range k.own() {
		call := k.ofTask("call", task.ID)[0]
		if call.Status == "webhook_sent" {
			assert.Equal(t, 1, l.times(task.ID))
			sent++
		} else {
			assert.Equal(t, "error", call.Status, "the arrival is unknown")
		}
	}
	assert.Positive(t, sent)
	// Each session of a trigger has one execution, and each execution has one session.
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
	c.Leave()
}
