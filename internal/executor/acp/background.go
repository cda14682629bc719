package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

const (
	// lookAtBackground is the interval between checks for background work.
	lookAtBackground = 2 * time.Second
	// maxBackground limits the reported background tasks.
	maxBackground = 100
)

// backgroundWork detects what an agent does between turns: open tool calls, programs in
// terminals, and processes. The agent's own processes do not count: those from before its first
// prompt, such as MCP servers, and those that run a file of the agent's installation.
type backgroundWork struct {
	reporting sync.Mutex // serializes reports to the hub

	mu       sync.Mutex          // guards the fields below
	calls    map[string]string   // open tool calls of ended turns: id to title
	own      map[int]bool        // processes from before the first prompt; nil before that
	programs []string            // files of the agent's installation; directories end with a slash
	past     map[string]pastCall // tool calls of ended turns, by id
	cancels  map[string]bool     // the tool calls that the agent stops when asked
	asked    map[string]bool     // the items of list that it was asked to stop
	list     []backgroundItem    // what the agent itself lists; nil: it does not
	goal     goal                // what it works towards in turn after turn
	commands []string            // commands started with run_in_background, the latest last
	seen     map[int]time.Time   // when each process was first seen
	reported []domain.BackgroundTask
	watched  bool // watchBackground runs
}

// A pastCall is a tool call of an ended turn.
type pastCall struct{ task, title string }

// noteOwnProcesses records the agent's processes before its first prompt.
func (a *agent) noteOwnProcesses() {
	b := &a.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.own != nil {
		return
	}
	b.own = map[int]bool{a.proc.PID: true}
	for _, p := range process.Descendants(a.proc.PID) {
		b.own[p.PID] = true
	}
	for pid := range b.own {
		if program := process.Program(pid); program != "" {
			b.programs = append(b.programs, installation(program))
		}
	}
}

// installation returns the directory of a program's node packages, or the program itself.
func installation(program string) string {
	const packages = "/node_modules/"
	if before, _, found := strings.Cut(program, packages); found {
		return before + packages
	}
	return program
}

// isOwn reports whether a process belongs to the agent itself. The caller holds mu.
func (b *backgroundWork) isOwn(pid int) bool {
	if b.own == nil || b.own[pid] {
		return true
	}
	program := process.Program(pid)
	return program != "" && slices.ContainsFunc(b.programs, func(own string) bool {
		return program == own || strings.HasSuffix(own, "/") && strings.HasPrefix(program, own)
	})
}

// backgroundCommand records a command started with run_in_background.
func (b *backgroundWork) backgroundCommand(command string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(command) > maxTroubleText { // its process is listed by its own command line
		return
	}
	if b.commands = append(b.commands, command); len(b.commands) > maxBackground {
		b.commands = b.commands[1:]
	}
}

// leaveOpen records the tool calls that are open at the end of a turn.
func (b *backgroundWork) leaveOpen(calls map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls == nil {
		b.calls = make(map[string]string)
	}
	maps.Copy(b.calls, calls)
}

// turnEnded records the tool calls of an ended turn, for late updates.
func (b *backgroundWork) turnEnded(task string, titles map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.past == nil || len(b.past)+len(titles) > maxToolCalls {
		b.past = make(map[string]pastCall)
	}
	for id, title := range titles {
		b.past[id] = pastCall{task, title}
	}
}

// listed records the background work that the agent lists.
func (b *backgroundWork) listed(items []backgroundItem) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.list = items; len(items) == 0 {
		b.asked = nil
	}
}

// callCapabilities records whether the agent stops a tool call when asked.
func (b *backgroundWork) callCapabilities(update []byte) {
	capabilities := rawjson.Member(update, "capabilities")
	if capabilities == nil {
		return
	}
	id, _ := rawjson.Text(rawjson.Member(update, "toolCallId"))
	b.mu.Lock()
	defer b.mu.Unlock()
	if delete(b.cancels, string(id)); !canCancel(capabilities) {
		return
	}
	if b.cancels == nil || len(b.cancels) >= maxToolCalls {
		b.cancels = make(map[string]bool)
	}
	b.cancels[string(id)] = true
}

// cancelBackground asks the agent to stop working towards its goal, and to stop all background work
// that it lists. It returns false, and the agent has to be ended, if the
// agent cannot stop all of its work, refuses, or was asked before.
func (a *agent) cancelBackground() bool {
	b := &a.background
	b.mu.Lock()
	hasGoal := len(b.goal.tasks()) > 0
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(a.life, a.driver.opts.CancelGrace)
	defer cancel()
	if hasGoal {
		if err := a.pauseGoal(ctx); err != nil {
			a.driver.log.Info("an agent did not pause its goal", "agent", a.name, "err", err)
			return false
		}
		if tasks, more := a.backgroundTasks(); len(tasks) == 0 && !more {
			return true
		}
	}
	b.mu.Lock()
	items := slices.Clone(b.list)
	able := len(items) > 0
	for _, item := range items {
		able = able && a.canCancel(item) && !b.asked[item.id()]
	}
	if able {
		b.asked = make(map[string]bool)
		for _, item := range items {
			b.asked[item.id()] = true
		}
	}
	b.mu.Unlock()
	if !able {
		return false
	}
	for _, item := range items {
		if err := a.cancelItem(ctx, item); err != nil {
			a.driver.log.Info("an agent did not stop its background work", "agent", a.name, "work", item.Type, "err", err)
			return false
		}
	}
	return true
}

// cancelTask asks the agent to stop one task of its background work, by the id in the report to the
// hub: its goal, or one that it lists.
func (a *agent) cancelTask(id string) catalog.ReleaseSessionResult {
	ctx, cancel := context.WithTimeout(a.life, a.driver.opts.CancelGrace)
	defer cancel()
	b := &a.background
	b.mu.Lock()
	if id == goalID && len(b.goal.tasks()) > 0 {
		b.mu.Unlock()
		if err := a.pauseGoal(ctx); err != nil {
			return catalog.ReleaseSessionResult{Reason: catalog.ReleaseKept, Error: err.Error()}
		}
		return catalog.ReleaseSessionResult{Reason: catalog.ReleaseCancelled}
	}
	i := slices.IndexFunc(b.list, func(item backgroundItem) bool {
		return item.id() != "" && cmp.Or(a.shown.hubID(item.TerminalID), item.ToolCallID, item.SessionID) == id
	})
	if i < 0 || !a.canCancel(b.list[i]) {
		b.mu.Unlock()
		return catalog.ReleaseSessionResult{Reason: catalog.ReleaseKept}
	}
	item := b.list[i]
	b.mu.Unlock()
	if err := a.cancelItem(ctx, item); err != nil {
		return catalog.ReleaseSessionResult{Reason: catalog.ReleaseKept, Error: err.Error()}
	}
	return catalog.ReleaseSessionResult{Reason: catalog.ReleaseCancelled}
}

// canCancel reports whether the agent stops background work when asked. The caller holds
// background.mu.
func (a *agent) canCancel(item backgroundItem) bool {
	switch item.Type {
	case "terminal":
		return a.shown.canCancel(item.TerminalID)
	case "tool_call":
		return a.background.cancels[item.ToolCallID]
	case "subagent":
		return a.subagents.canCancel(item.SessionID)
	}
	return false
}

// cancelItem asks the agent to stop background work.
func (a *agent) cancelItem(ctx context.Context, item backgroundItem) (err error) {
	switch item.Type {
	case "terminal":
		_, err = acp.Call[json.RawMessage](ctx, a.conn, acp.MethodTerminalCancel,
			acp.CancelWorkRequest{SessionID: a.session, TerminalID: item.TerminalID})
	case "tool_call":
		_, err = acp.Call[json.RawMessage](ctx, a.conn, acp.MethodToolCallCancel,
			acp.CancelWorkRequest{SessionID: a.session, ToolCallID: item.ToolCallID})
	case "subagent":
		err = a.conn.Notify(acp.MethodSessionCancel, acp.SessionParams{SessionID: item.SessionID})
	}
	return err
}

// listedTasks returns the tasks that the agent lists. isListed is false if the agent never lists
// any.
func (a *agent) listedTasks() (tasks []domain.BackgroundTask, isListed bool) {
	b := &a.background
	b.mu.Lock()
	defer b.mu.Unlock()
	tasks = append([]domain.BackgroundTask{}, b.goal.tasks()...)
	for _, item := range b.list[:min(len(b.list), maxBackground)] {
		switch item.Type {
		case "terminal":
			tasks = append(tasks, domain.BackgroundTask{ID: a.shown.hubID(item.TerminalID), Kind: domain.BackgroundTerminal, Title: cmp.Or(
				a.shown.title(item.TerminalID), item.TerminalID,
			), Stoppable: a.canCancel(item)})
		case "subagent":
			if title, isActive := a.subagents.describe(item.SessionID); isActive { // else the next list lacks it
				tasks = append(tasks, domain.BackgroundTask{
					ID: item.SessionID, Kind: domain.BackgroundToolCall, Title: cmp.Or(title, "sub-agent"), Stoppable: a.canCancel(item),
				})
			}
		case "tool_call":
			tasks = append(tasks, domain.BackgroundTask{ID: item.ToolCallID, Kind: domain.BackgroundToolCall, Title: cmp.Or(
				b.past[item.ToolCallID].title, item.ToolCallID,
			), Stoppable: a.canCancel(item)})
		default: // an unknown type is work, too
			tasks = append(tasks, domain.BackgroundTask{ID: item.Type, Kind: domain.BackgroundToolCall, Title: cmp.Or(item.Type, "background work")})
		}
	}
	return tasks, b.list != nil
}

// takeLate reports an update of a tool call from an earlier turn to the hub. It returns false
// for other updates. Only the goroutine that reads the agent calls it.
func (a *agent) takeLate(kind string, update []byte, repaired bool) bool {
	if kind != "tool_call_update" || a.history.isLoading() {
		return false
	}
	id, _ := rawjson.Text(rawjson.Member(update, "toolCallId"))
	var of string
	// The current turn is read first: one that ends meanwhile is in past before it is no longer current.
	if t := a.turns.now(); t != nil && t.tools.has(string(id)) {
		t.taking.Lock()
		over := t.ended
		t.taking.Unlock()
		if of = t.ID; !over {
			return false
		}
	} else {
		of = a.background.taskOf(string(id))
	}
	last := a.turns.latest()
	var u toolUpdate
	if of == "" || last == nil || last.session == "" || u.UnmarshalJSON(update) != nil {
		return false
	}
	u.repaired = repaired
	call, event := u.call(), catalog.EventToolUpdate
	if u.Status == "completed" || u.Status == "failed" {
		call.Result, event = u.result(), catalog.EventToolResult
	}
	call.Terminal = a.shown.hubID(call.Terminal)
	a.reportLate(lastTask{session: last.session, task: of}, event, call)
	if event == catalog.EventToolResult {
		// The hub gets the result before it hears that no work is left: a turn that ends meanwhile
		// reports what is left, too.
		a.background.callEnded(u.ToolCallID)
		if a.turns.now() == nil { // else the end of the turn reports it
			a.reportBackgroundNow(a.backgroundTasks, false)
		}
	}
	return true
}

// reportLate reports an event after the turn that it belongs to.
func (a *agent) reportLate(of lastTask, event string, value any) {
	data, err := task.JSON(value)
	if err == nil {
		err = a.driver.hub.ReportLate(a.driver.ctx,
			catalog.ReportLateParams{SessionID: of.session, TaskID: of.task, EventType: event, EventData: data})
	}
	if err != nil {
		a.driver.log.Info("cannot report an agent's update between two turns", "agent", a.name, "event", event, "err", err)
	}
}

// taskOf returns the task of the ended turn that a tool call belongs to, or "".
func (b *backgroundWork) taskOf(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.past[id].task
}

// callEnded records the end of a tool call of this turn or an earlier one.
func (b *backgroundWork) callEnded(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.calls, id)
}

// backgroundTasks lists the agent's background work. more reports new processes that may be
// short-lived helpers: they count if they still run at the next check.
func (a *agent) backgroundTasks() (tasks []domain.BackgroundTask, more bool) {
	if tasks, isListed := a.listedTasks(); isListed {
		return tasks, false
	}
	tasks = []domain.BackgroundTask{}
	for _, t := range a.programs.running() {
		tasks = append(tasks, domain.BackgroundTask{ID: t.id, Kind: domain.BackgroundTerminal, Title: t.command})
	}
	if a.proc.Ended() {
		return tasks, false
	}
	running := process.Descendants(a.proc.PID)
	b := &a.background
	b.mu.Lock()
	defer b.mu.Unlock()
	tasks = append(tasks, b.goal.tasks()...)
	for _, id := range slices.Sorted(maps.Keys(b.calls)) {
		tasks = append(tasks, domain.BackgroundTask{ID: id, Kind: domain.BackgroundToolCall, Title: b.calls[id]})
	}
	begun := make(map[int]time.Time)
	for _, p := range running { // parents come first
		_, isPart := begun[p.Parent]
		if !isPart && b.isOwn(p.PID) {
			continue
		}
		first, known := b.seen[p.PID]
		if !known {
			first = time.Now()
		}
		begun[p.PID] = first
		title, isCommand := b.titleOf(p.Command)
		switch {
		case isPart:
		case isCommand || time.Since(first) >= lookAtBackground/2:
			tasks = append(tasks, domain.BackgroundTask{ID: strconv.Itoa(p.PID), Kind: domain.BackgroundProcess, Title: title})
		default:
			more = true
		}
	}
	b.seen = begun
	return tasks[:min(len(tasks), maxBackground)], more
}

// titleOf finds the tool's command in a process's command line; agents wrap the command in a
// shell line of their own. The caller holds mu.
func (b *backgroundWork) titleOf(line string) (title string, isCommand bool) {
	for _, command := range slices.Backward(b.commands) {
		if strings.Contains(line, command) {
			return command, true
		}
	}
	return bounded(line), false
}

// reportBackground reports background work to the hub, and keeps the report up to date until
// there is none.
func (a *agent) reportBackground() {
	more := a.reportBackgroundNow(a.backgroundTasks, false)
	b := &a.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.reported) == 0 && !more || b.watched {
		return
	}
	b.watched = true
	a.driver.work.Go(a.watchBackground)
}

func (a *agent) watchBackground() {
	tick := time.NewTicker(lookAtBackground)
	defer tick.Stop()
	for {
		more := false
		select {
		case <-tick.C:
			if a.turns.now() != nil { // reported again when the turn ends
				continue
			}
			more = a.reportBackgroundNow(a.backgroundTasks, false)
		case <-a.life.Done():
			a.reportBackgroundNow(noTasks, true)
		}
		b := &a.background
		b.mu.Lock()
		over := len(b.reported) == 0 && !more
		b.watched = !over
		b.mu.Unlock()
		if over {
			return
		}
	}
}

func noTasks() (tasks []domain.BackgroundTask, more bool) { return []domain.BackgroundTask{}, false }

// reportBackgroundNow reports background work if it has changed. ended means that the agent has
// ended. It returns the value of more from now.
func (a *agent) reportBackgroundNow(now func() (tasks []domain.BackgroundTask, more bool), ended bool) (more bool) {
	b := &a.background
	b.reporting.Lock()
	defer b.reporting.Unlock()
	if !ended && a.turns.isRetired() { // its work ends with it, even if the agent ends it in order
		return false
	}
	tasks, more := now()
	b.mu.Lock()
	same := slices.Equal(b.reported, tasks) // nil equals empty
	b.reported = tasks
	b.mu.Unlock()
	if !same {
		a.reportBetween(catalog.Session{Background: tasks, Ended: ended})
	}
	return more
}
