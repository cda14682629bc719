package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/executor/workspace"
)

const (
	// exitGrace is what an agent that is not needed any more gets to end by
	// itself, once its stdin is closed.
	exitGrace = 700 * time.Millisecond
	// closeTime is what an agent gets to close its session before that.
	closeTime = 500 * time.Millisecond
	// answerTime is how long an agent that has closed its output, or takes no input, gets to end.
	answerTime = time.Second
	// unpromptedGrace is what an agent that has no prompt yet gets to come to
	// the point where it would get one, when its turn is to be stopped: one that
	// is well lives on.
	unpromptedGrace = 250 * time.Millisecond
)

// An agent is a process that speaks the Agent Client Protocol, and its
// session. Three goroutines live as long as the process: one reads its output, one
// reports what it tells between two turns, one ends its terminals when it has ended;
// the driver waits for all.
type agent struct {
	driver *Driver
	name   string
	key    string // see launchKey
	// startTimeout is how long it may take to answer initialize.
	startTimeout time.Duration
	proc         *process.Process
	conn         *acp.Conn
	life         context.Context // ends with the process

	info     acp.Initialized
	isKimi   atomic.Bool // the agent is Kimi Code, once it has introduced itself
	session  string      // written by the turn that opens it, before its prompt is sent
	settings settingState

	overdue   atomic.Pointer[string] // the method that it was killed for not answering
	current   atomic.Pointer[turn]
	last      atomic.Pointer[lastTask]
	modeSeen  atomic.Pointer[string] // the mode that warnUnasked has looked at last
	changed   chan struct{}          // has one in it when what it told between two turns is to be reported
	spent     atomic.Uint64          // what its session has cost so far, in USD, as the bits of a float64
	updates   atomic.Int64           // how many it has sent
	loading   atomic.Bool            // updates are a replay of what the hub has
	inputGone atomic.Bool            // it takes no input any more: it is ending, or has closed it
	open      atomic.Int64
	own       ownTurns

	background backgroundWork
	shown      ownTerminals
	subagents  subagents
	steering   steering

	notices map[catalog.Notice]bool // that it has sent, but for errors; only the goroutine that reads it uses them

	asking    atomic.Int64 // people are asked something: what the agent was to do may take as long as they do
	workspace *workspace.Workspace
	env       process.Environment // of its terminals: without keys
	has       map[string]bool     // names of variables: which it has, keys among them

	mu        sync.Mutex // guards the fields below
	terminals map[string]*agentTerminal
	links     map[string]*link // addresses that people were asked to open, by the agent's id
}

// start starts an agent's process for its first turn.
func (d *Driver) start(t *turn) (*agent, *task.Failure) {
	argv := t.Launch.Command
	env, failed := t.Environment()
	if failed != nil {
		return nil, failed
	}
	path, err := env.Find(cmp.Or(t.Launch.Program, argv[0]), t.Params.CWD)
	if err != nil {
		return nil, task.StartFailure(t.Launch, t.Params.CWD, err)
	}
	proc, err := d.processes.Start(process.Spec{Path: path, Argv: argv, CWD: t.Params.CWD, Env: env, Stdin: true})
	if err != nil {
		return nil, task.StartFailure(t.Launch, t.Params.CWD, err)
	}
	life, cancel := context.WithCancel(d.ctx)
	a := &agent{
		driver: d, name: t.Launch.Name, key: launchKey(t), proc: proc, life: life,
		startTimeout: cmp.Or(time.Duration(t.Launch.StartTimeoutMS)*time.Millisecond, d.opts.StartTimeout),
		workspace:    workspace.New(t.Launch.Root, t.Params.CWD, t.Launch.StateDir), env: task.LaunchEnvironment(t.Launch), has: acp.AuthMethodNames(env),
		terminals: make(map[string]*agentTerminal), links: make(map[string]*link), changed: make(chan struct{}, 1), own: newOwnTurns(),
	}
	a.workspace.Add(t.Conversation.AdditionalDirectories...)
	a.env[catalog.MarkVariable] = proc.Mark
	a.begin(t)
	a.conn = acp.NewConn((*agentInput)(a), a.handler())
	d.work.Go(func() {
		<-proc.Done()
		cancel() // first: then no terminal is opened any more
		a.endTerminals()
	})
	d.work.Go(func() {
		out, stop := proc.Output()
		defer stop()
		a.conn.Read(pausedReader{a, out})
		a.shown.end(d)
	})
	d.work.Go(a.reportBetweenTurns)
	return a, nil
}

// agentInput is the agent's stdin. It notices when a prompt is in, or an
// answer.
type agentInput agent

func (in *agentInput) Write(p []byte) (int, error) {
	t := in.current.Load()
	if t != nil { // before: the agent may go on before we do
		t.answers.written(p)
	}
	// The agent chooses the ids of its requests, which answers repeat: an id must not pass for
	// a member of the message.
	isPrompt := t != nil && !t.hasPrompt() && string(frame.Member(p, "method")) == `"session/prompt"`
	if isPrompt { // before the agent can answer it
		id := string(frame.Member(p, "id"))
		t.promptID.Store(&id)
	}
	in.steering.written(p)
	n, err := in.proc.Write(p)
	if err != nil {
		in.inputGone.Store(true)
	}
	if isPrompt && err == nil {
		t.sent.Do(func() { close(t.prompted) })
	}
	return n, err
}

// handler takes what the agent sends.
func (a *agent) handler() acp.Handler {
	return acp.Handler{
		Update:   a.update,
		Response: a.responded,
		Request:  a.admit,
		Serve:    a.serve,
		Notice:   a.notice,
		Garbage: func(line []byte) {
			if t := a.current.Load(); t != nil {
				t.Garbage(line)
			}
		},
		TooLong: func(length int64) {
			if t := a.current.Load(); t != nil {
				t.Problem(task.CodeLineTooLong, fmt.Sprintf("the agent printed a line of %d bytes; it was dropped: more than %d are not taken", length, acp.MaxLine))
			}
		},
	}
}

// pausedReader reads an agent while the flow is not paused. An agent that is to
// be stopped is read in any case: its answer is waited for.
type pausedReader struct {
	a  *agent
	in io.Reader
}

func (r pausedReader) Read(p []byte) (int, error) {
	until := r.a.life
	if t := r.a.current.Load(); t != nil && r.a.life.Err() == nil {
		until = t.Context()
	}
	r.a.driver.processes.Flow.Wait(until)
	return r.in.Read(p)
}

func (a *agent) update(session, update []byte, repaired bool) {
	a.updates.Add(1)
	var kind string
	json.Unmarshal(frame.Member(update, "sessionUpdate"), &kind)
	if !isTerminal(kind) {
		defer a.shown.release(a.driver)
	}
	if c := a.subagents.of(session); c != nil {
		a.subagentSays(c, kind, update, repaired)
		return
	}
	if mode := a.settings.SpokenMode(kind, update); mode != nil {
		kind, update = "current_mode_update", mode
	}
	switch {
	case kind == "state_update":
		a.stateUpdate(update)
		return
	case isTerminal(kind) && a.terminalUpdate(update):
		return
	}
	if kind == "tool_call_update" {
		a.background.callCapabilities(update)
	}
	isSetting := a.settings.Update(kind, update) // also in a replay, and between prompts
	status := readCodexStatus(kind, update)
	if a.takeLate(kind, update, repaired) || a.takeLateText(kind, update, repaired) {
		return
	}
	if a.current.Load() == nil && isWork(kind, update, status) {
		a.otherWork()
	}
	if kind == "notice" && a.isRepeated(update) {
		return
	}
	taken := a.take(func() bool { return isWork(kind, update, status) }, workTrigger(update), func(t *turn) {
		if note := status.retryNote(); note != "" {
			t.silence.Retries(note)
		} else {
			t.silence.Sign()
		}
		if a.loading.Load() {
			return
		}
		t.mu.Lock()
		t.trouble.took(status)
		t.mu.Unlock()
		if isSetting {
			a.reportChanged()
		}
		t.update(kind, update, repaired)
		if kind == "subagent_update" {
			a.endHeld(t)
		}
		if a.own.isEnd(kind, update, status) {
			a.tellsEnd(t)
		}
	})
	switch {
	case taken:
	case isSetting:
		a.changedBetween()
	default:
		a.noteBetween(kind, update)
	}
}

// noteBetween reports a notice, a compaction or usage between two turns, as of the last one.
func (a *agent) noteBetween(kind string, update []byte) {
	last := a.last.Load()
	if last == nil || last.conversation == "" || a.loading.Load() {
		return
	}
	if n, ok := readNotice(update); kind == "notice" && ok {
		a.reportLate(*last, catalog.EventNotice, n)
	}
	if c, ok := readCompaction(update); kind == "compaction_update" && ok {
		a.reportLate(*last, catalog.EventCompaction, c)
	}
	if u, ok := readUsage(update, &a.spent, last.spentBefore); kind == "usage_update" && ok {
		a.reportLate(*last, catalog.EventUsage, u)
	}
}

// maxNotices limits the notices that are remembered of an agent.
const maxNotices = 100

// isRepeated reports whether an agent has sent a notice before that is no error: codex sends
// some with each turn. Only the goroutine that reads the agent calls it.
func (a *agent) isRepeated(update []byte) bool {
	n, ok := readNotice(update)
	if !ok || n.Severity == "error" || a.loading.Load() {
		return false
	}
	if a.notices[n] {
		return true
	}
	if a.notices == nil || len(a.notices) >= maxNotices {
		a.notices = make(map[catalog.Notice]bool)
	}
	a.notices[n] = true
	return false
}

// responded notes that the agent has answered a call. With the answer to its prompt the
// turn has ended.
func (a *agent) responded(id, result []byte) {
	if t := a.current.Load(); t != nil {
		t.silence.Sign()
		if text := a.steering.answered(id, result); text != "" {
			t.Event(catalog.EventUserMessage, catalog.UserMessage{Text: text})
		}
		if prompt := t.promptID.Load(); prompt != nil && *prompt == string(id) {
			t.taking.Lock()
			if result != nil && a.info.IsVersion2() {
				t.accepts()
			} else {
				t.ended = true
			}
			t.taking.Unlock()
		}
	}
}

// admit counts a request that is to be served; serve counts it off. serve runs
// beside the reading of updates: what a permission request asks is read here, in order.
func (a *agent) admit(method string, params []byte) bool {
	if a.open.Add(1) > acp.MaxRequests {
		a.open.Add(-1)
		return false
	}
	if isQuestion(method) {
		a.own.questions.Add(1)
	}
	if isWorkRequest(method) {
		a.otherWork()
	}
	a.take(func() bool { return isWorkRequest(method) }, requestTrigger(method, params), func(t *turn) {
		if method == acp.MethodRequestPermission {
			t.permissionArrived(params)
		}
	})
	return true
}

// call calls a method of the agent. It ends with the agent, not with a turn.
func call[R any](a *agent, method string, params any) (R, error) {
	return acp.Call[R](context.Background(), a.conn, method, params)
}

// callWithin is call for an agent that is killed if it takes longer than d, people
// not counted whom it asks something meanwhile.
func callWithin[R any](a *agent, d time.Duration, method string, params any) (R, error) {
	answered := make(chan struct{})
	defer close(answered)
	a.driver.work.Go(func() {
		for {
			select {
			case <-answered:
				return
			case <-time.After(d):
			}
			if a.asking.Load() == 0 {
				a.overdue.Store(&method)
				a.proc.Kill()
				return
			}
		}
	})
	return call[R](a, method, params)
}

// guard ends the agent's turn when the task is to be stopped: session/cancel if
// the agent has the prompt, and the signals if that does not help or it has
// none.
func (a *agent) guard(t *turn, finished <-chan struct{}) {
	select {
	case <-finished:
		return
	case <-t.Context().Done():
	}
	grace := time.NewTimer(a.driver.opts.CancelGrace)
	defer grace.Stop()
	unprompted := time.NewTimer(unpromptedGrace)
	defer unprompted.Stop()
	a.driver.work.Go(func() { // an agent that does not read would hold it up
		defer close(t.told)
		select {
		case <-t.prompted:
			_ = a.conn.Notify(acp.MethodSessionCancel, acp.SessionParams{SessionID: a.session})
			a.cancelSubagents(t)
		case <-finished:
		}
	})
	select {
	case <-t.prompted:
		select {
		case <-finished:
			return
		case <-grace.C:
		case <-a.driver.ctx.Done():
		}
	case <-finished:
		return
	case <-unprompted.C: // it has no prompt, so there is nothing to cancel
	case <-a.driver.ctx.Done():
	}
	a.proc.Interrupt()
	<-finished
}

// begin makes t the turn that the agent's updates belong to.
func (a *agent) begin(t *turn) {
	t.background, t.terminals, t.subagents = &a.background, &a.shown, &a.subagents
	t.isKimi = &a.isKimi
	t.spent, t.spentBefore = &a.spent, math.Float64frombits(a.spent.Load())
	t.silence.Begin(a.proc, func() bool { return !t.hasPrompt() }, a.driver.processes.Flow.Paused)
	a.last.Store(&lastTask{t.Params.SessionID, t.ID, t.spentBefore})
	a.current.Store(t)
	a.own.turnChanged()
	t.Started(a.proc)
}

// finish makes t no turn any more. What the agent says from now on belongs to another one.
func (a *agent) finish(t *turn) {
	t.taking.Lock()
	t.ended = true
	t.taking.Unlock()
	if !t.Stopped() { // an interrupted agent does not continue its calls
		open := t.silence.OpenCalls()
		maps.DeleteFunc(open, func(id, _ string) bool { return !t.tools.isRunning(id) }) // such as those that were denied
		a.background.leaveOpen(open)
	}
	a.background.turnEnded(t.ID, t.tools.titles())
	if t.Stopped() && a.own.foreground.Load() {
		a.own.cut.Store(&lastTask{conversation: t.Params.SessionID, task: t.ID})
	}
	t.taking.Lock()    // what it takes now would not be reported
	if t.hasPrompt() { // else the agent does not know of it
		a.own.ended.Store(&endedTurn{t, time.Now(), t.Stopped()})
	}
	a.current.Store(nil)
	t.taking.Unlock()
	a.own.turnChanged()
}

// closeSession has the agent close its session, if it can, so that it may keep what it
// has not kept yet. One that does not answer in time is not waited for.
func (a *agent) closeSession() {
	if a.session == "" || !acp.Has(a.info.Session.Close) || a.inputGone.Load() || a.proc.Ended() {
		return
	}
	ctx, cancel := context.WithTimeout(a.driver.ctx, closeTime)
	defer cancel()
	answered := make(chan struct{})
	a.driver.work.Go(func() { // one that does not read would hold it up
		defer close(answered)
		_, _ = acp.Call[json.RawMessage](ctx, a.conn, acp.MethodSessionClose, acp.SessionParams{SessionID: a.session})
	})
	select {
	case <-answered:
	case <-ctx.Done():
	}
}

// retire ends the agent.
func (a *agent) retire() {
	close(a.own.retired)
	a.closeSession()
	a.proc.CloseInput()
	if !a.proc.Wait(exitGrace) {
		a.proc.Terminate()
	}
	a.tellBackgroundNow(noTasks, true)
}

// gone reports whether the agent has ended, or has closed its output, which
// is as good: then it is ended.
func (a *agent) gone() bool {
	select {
	case <-a.conn.Done():
		if !a.proc.Wait(answerTime) {
			a.proc.Terminate()
		}
		return true
	default:
	}
	if a.inputGone.Load() && !a.proc.Wait(answerTime) {
		a.proc.Terminate() // nothing can be asked of it
	}
	if !a.proc.Ended() {
		return false
	}
	select {
	case <-a.conn.Done(): // what it printed last is still being reported
		return true
	case <-a.own.wanted: // it has said more than belongs to its turn
		return false
	}
}

func (a *agent) endTerminals() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.terminals {
		t.proc.Kill()
	}
}

// launchKey tells whether two prompts can share an agent. The environments of the clients that
// launched them may differ.
func launchKey(t *turn) string {
	launch := *t.Launch
	launch.Environment, launch.Program = nil, ""
	key, _ := json.Marshal(struct {
		Launch      catalog.AgentLaunch
		CWD         string
		Directories []string
	}{launch, t.Params.CWD, t.Conversation.AdditionalDirectories})
	return string(key)
}
