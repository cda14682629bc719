package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/executor/workspace"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/internal/sandbox"
)

const (
	// exitGrace is how long an unneeded agent may take to exit after its stdin is closed.
	exitGrace = 700 * time.Millisecond
	// closeTime is how long an agent may take to close its session before that.
	closeTime = 500 * time.Millisecond
	// answerTime is how long an agent may take to exit after it closed its output or stopped
	// reading its input.
	answerTime = time.Second
	// unpromptedGrace is how long a stopping turn waits for an agent that has no prompt yet to
	// become ready for one. An agent that gets ready in time stays alive.
	unpromptedGrace = 250 * time.Millisecond
)

// An agent is a process that speaks the Agent Client Protocol, and its session. Three goroutines
// live as long as the process: one reads its output, one reports updates between turns, one
// closes its terminals after it exits. The driver waits for all of them.
//
// The goroutine that reads the output waits for the hub. State that other goroutines need meanwhile is
// in separate types (turns, requests, history and so on), each with a lock that is held briefly.
type agent struct {
	driver *Driver
	name   string
	key    string // see launchKey
	// startTimeout is how long the agent may take to answer initialize.
	startTimeout time.Duration
	proc         *process.Process
	conn         *acp.Conn
	life         context.Context // ends with the process

	// The turn that opens the session writes info and session, before it sends its prompt.
	info    acp.Initialized
	session string
	record

	changed  chan struct{} // buffer of 1: updates between two turns wait to be reported
	input    input
	turns    turns
	requests requests
	history  history
	steering steering
	programs programs
	links    links

	notices map[catalog.Notice]bool // notices received, except errors; used only by the goroutine that reads the agent

	workspace *workspace.Workspace
	env       process.Environment // of its terminals: without keys
	box       *sandbox.Box        // of the agent and its terminals; nil: none
	has       map[string]bool     // names of the agent's environment variables, keys included
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
	box, failed := t.Box(path, env)
	if failed != nil {
		return nil, failed
	}
	proc, err := d.processes.Start(process.Spec{Path: path, Argv: argv, CWD: t.Params.CWD, Env: env, Stdin: true, Sandbox: box})
	if err != nil {
		return nil, task.StartFailure(t.Launch, t.Params.CWD, err)
	}
	life, cancel := context.WithCancel(d.ctx)
	a := &agent{
		driver: d, name: t.Launch.Name, key: launchKey(t), proc: proc, life: life,
		startTimeout: cmp.Or(time.Duration(t.Launch.StartTimeoutMS)*time.Millisecond, d.opts.StartTimeout),
		workspace:    workspace.New(t.Launch.Root, t.Params.CWD, t.Launch.StateDir), env: task.LaunchEnvironment(t.Launch),
		box: box, has: acp.AuthMethodNames(env),
		changed: make(chan struct{}, 1), turns: newTurns(), requests: requests{answered: make(chan struct{}, 1)},
	}
	a.workspace.Add(t.Session.AdditionalDirectories...)
	a.workspace.Confine(box)
	a.env[catalog.MarkVariable] = proc.Mark
	a.begin(t)
	a.input.a = a
	a.conn = acp.NewConn(&a.input, a.handler())
	d.work.Go(func() {
		<-proc.Done()
		cancel() // first, so that no more terminals open
		a.programs.kill()
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

// handler handles the agent's messages.
func (a *agent) handler() acp.Handler {
	return acp.Handler{
		Update:   a.update,
		Response: a.responded,
		Request:  a.admit,
		Serve:    a.serve,
		Notice:   a.notice,
		Garbage: func(line []byte) {
			if t := a.turns.now(); t != nil {
				t.Garbage(line)
			}
		},
		TooLong: func(length int64) {
			if t := a.turns.now(); t != nil {
				t.Problem(task.CodeLineTooLong,
					fmt.Sprintf("the agent printed a line of %d bytes; it was dropped: more than %d are not taken", length, acp.MaxLine))
			}
		},
	}
}

// pausedReader reads the agent's output while the flow is not paused. It always reads while the
// agent is being stopped, because the driver waits for the answer.
type pausedReader struct {
	a  *agent
	in io.Reader
}

func (r pausedReader) Read(p []byte) (int, error) {
	until := r.a.life
	if t := r.a.turns.now(); t != nil && r.a.life.Err() == nil {
		until = t.Context()
	}
	r.a.driver.processes.Flow.Wait(until)
	return r.in.Read(p)
}

func (a *agent) update(session, update []byte, repaired bool) {
	a.history.received()
	var kind string
	json.Unmarshal(rawjson.Member(update, "sessionUpdate"), &kind)
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
	if a.turns.now() == nil && isWork(kind, update, status) {
		a.turns.otherWork()
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
		if a.history.isLoading() {
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
			a.endIdle(t)
		}
		if a.turns.isEnd(kind, update, status) {
			a.handleEndSignal(t)
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

// noteBetween reports a notice, a compaction or usage between two turns, as part of the last
// turn.
func (a *agent) noteBetween(kind string, update []byte) {
	last := a.turns.latest()
	if last == nil || last.session == "" || a.history.isLoading() {
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

// maxNotices limits the notices remembered per agent.
const maxNotices = 100

// isRepeated reports whether the agent has sent the same notice before; errors never count. codex
// sends some notices with each turn. Only the goroutine that reads the agent calls it.
func (a *agent) isRepeated(update []byte) bool {
	n, ok := readNotice(update)
	if !ok || n.Severity == "error" || a.history.isLoading() {
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

// responded notes that the agent has answered a call. The answer to its prompt takes it; an error
// ends the turn.
func (a *agent) responded(id, result []byte) {
	if t := a.turns.now(); t != nil {
		t.silence.Sign()
		if text := a.steering.answered(id, result); text != "" {
			t.Event(catalog.EventUserMessage, catalog.UserMessage{Text: text})
		}
		if prompt := t.sentAs(); prompt != "" && prompt == string(id) {
			t.taking.Lock()
			if result != nil {
				t.accepts()
			} else {
				t.ended = true
			}
			t.taking.Unlock()
		}
	}
}

// admit counts a request before serve runs; serve counts it off. serve runs concurrently with the
// reading of updates. Permission requests are read here, to keep them in order.
func (a *agent) admit(method string, params []byte) bool {
	if !a.requests.admit(method) {
		return false
	}
	if isWorkRequest(method) {
		a.turns.otherWork()
	}
	a.take(func() bool { return isWorkRequest(method) }, requestTrigger(method, params), func(t *turn) {
		if method == acp.MethodRequestPermission {
			t.permissionArrived(params)
		}
	})
	return true
}

// callWithin calls a method of the agent, whether or not the turn ends. An agent that takes longer
// than d is killed. Time in which the agent waits for the user does not count.
func callWithin[R any](a *agent, d time.Duration, method string, params any) (R, error) {
	return callInOrder[R](a, d, method, params, nil)
}

// callInOrder is callWithin with the result passed to taken as acp.CallInOrder does.
func callInOrder[R any](a *agent, d time.Duration, method string, params any, taken func(result R)) (R, error) {
	answered := make(chan struct{})
	defer close(answered)
	a.driver.work.Go(func() {
		for {
			select {
			case <-answered:
				return
			case <-time.After(d):
			}
			if a.requests.timeOut(method) {
				a.proc.Kill()
				return
			}
		}
	})
	return acp.CallInOrder(context.Background(), a.conn, method, params, taken)
}

// guard ends the agent's turn when the task is to stop. It sends session/cancel if the agent has
// the prompt. It sends signals if that does not help, or if the agent has no prompt.
func (a *agent) guard(t *turn, finished <-chan struct{}) {
	select {
	case <-finished:
		if !t.Stopped() {
			return
		}
	case <-t.Context().Done():
	}
	grace := time.NewTimer(a.driver.opts.CancelGrace)
	defer grace.Stop()
	unprompted := time.NewTimer(unpromptedGrace)
	defer unprompted.Stop()
	a.driver.work.Go(func() { // concurrently, because an agent that does not read would block it
		defer close(t.cancelSent)
		select {
		case <-t.prompted:
		case <-finished:
		}
		if t.hasPrompt() { // also if it has just finished: the agent may continue by itself
			_ = a.conn.Notify(acp.MethodSessionCancel, acp.SessionParams{SessionID: a.session})
			a.cancelSubagents(t)
		}
	})
	select {
	case <-t.prompted:
		select {
		case <-finished:
			select { // a later cancel would end the next turn
			case <-t.cancelSent:
			case <-grace.C:
			case <-a.driver.ctx.Done():
			}
			return
		case <-grace.C:
		case <-a.driver.ctx.Done():
		}
	case <-finished:
		return
	case <-unprompted.C: // the agent has no prompt, so there is nothing to cancel
	case <-a.driver.ctx.Done():
	}
	a.proc.Interrupt()
	<-finished
}

// begin makes t the turn that the agent's updates belong to.
func (a *agent) begin(t *turn) {
	t.record, t.spentBefore = &a.record, a.spent.soFar()
	t.silence.Begin(a.proc, func() bool { return !t.hasPrompt() }, a.driver.processes.Flow.Paused)
	a.turns.begin(t)
	t.Started(a.proc)
}

// finish ends t as the current turn. Later output of the agent belongs to another turn.
func (a *agent) finish(t *turn) {
	t.taking.Lock()
	t.ended = true
	t.taking.Unlock()
	if !t.Stopped() { // an interrupted agent does not continue its calls
		open := t.silence.OpenCalls()
		maps.DeleteFunc(open, func(id, _ string) bool { return !t.tools.isRunning(id) }) // drops calls that never ran, such as denied ones
		a.background.leaveOpen(open)
	}
	a.background.turnEnded(t.ID, t.tools.titles())
	t.taking.Lock() // updates taken from here on would not be reported
	defer t.taking.Unlock()
	a.turns.end(t)
}

// closeSession asks the agent to close its session, if it can, so that it can save unsaved state.
// It waits closeTime at most.
func (a *agent) closeSession() {
	if a.session == "" || !acp.Has(a.info.Session.Close) || a.input.isClosed() || a.proc.Ended() {
		return
	}
	ctx, cancel := context.WithTimeout(a.driver.ctx, closeTime)
	defer cancel()
	answered := make(chan struct{})
	a.driver.work.Go(func() { // concurrently, because an agent that does not read would block it
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
	close(a.turns.retired)
	a.closeSession()
	a.proc.CloseInput()
	if !a.proc.Wait(exitGrace) {
		a.proc.Terminate()
	}
	a.reportBackgroundNow(noTasks, true)
}

// gone reports whether the agent has exited. It terminates an agent that has closed its output.
func (a *agent) gone() bool {
	select {
	case <-a.conn.Done():
		if !a.proc.Wait(answerTime) {
			a.proc.Terminate()
		}
		return true
	default:
	}
	if a.input.isClosed() && !a.proc.Wait(answerTime) {
		a.proc.Terminate() // the agent can no longer answer a call
	}
	if !a.proc.Ended() {
		return false
	}
	select {
	case <-a.conn.Done(): // its last output is still being reported
		return true
	case <-a.turns.wanted: // it has begun work after its turn
		return false
	}
}

// launchKey identifies the launch of a turn. Prompts with the same key can share an agent, even
// if the environments of their clients differ.
func launchKey(t *turn) string {
	launch := *t.Launch
	launch.Environment, launch.Program = nil, ""
	key, _ := json.Marshal(struct {
		Launch      catalog.AgentLaunch
		CWD         string
		Directories []string
	}{launch, t.Params.CWD, t.Session.AdditionalDirectories})
	return string(key)
}
