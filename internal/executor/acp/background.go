package acp

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

const (
	// lookAtBackground is how often it is looked whether an agent still works in the
	// background.
	lookAtBackground = 2 * time.Second
	// maxBackground is how many tasks in the background are told.
	maxBackground = 100
)

// backgroundWork is what an agent does while no prompt runs, as far as it can be seen: tool
// calls that it has begun in a turn and not ended, programs in terminals, and processes that
// were not there when the agent got its first prompt: what it needs itself, such as its MCP
// servers, was started before.
type backgroundWork struct {
	telling sync.Mutex // held while the hub is told

	mu       sync.Mutex        // guards the fields below
	calls    map[string]string // titles of tool calls, by their ids
	own      map[int]bool      // the agent's own processes; nil: it has no prompt yet
	past     map[string]string // tasks of ended turns, by the ids of their tool calls
	commands []string          // of tool calls that were to run in the background, the latest last
	told     []catalog.BackgroundTask
	watched  bool // told is kept up to date
}

// noteOwnProcesses notes which processes the agent has before its first prompt.
func (a *agent) noteOwnProcesses() {
	b := &a.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.own != nil {
		return
	}
	b.own = make(map[int]bool)
	for _, p := range process.Descendants(a.proc.PID) {
		b.own[p.PID] = true
	}
}

// backgroundCommand notes a command that a tool is to run in the background.
func (b *backgroundWork) backgroundCommand(command string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.commands = append(b.commands, command); len(b.commands) > maxBackground {
		b.commands = b.commands[1:]
	}
}

// leaveOpen notes the tool calls that are open when a turn ends.
func (b *backgroundWork) leaveOpen(calls map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls == nil {
		b.calls = make(map[string]string)
	}
	maps.Copy(b.calls, calls)
}

// turnEnded notes whose tool calls those of a turn are.
func (b *backgroundWork) turnEnded(task string, calls []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.past == nil || len(b.past)+len(calls) > maxToolCalls {
		b.past = make(map[string]string)
	}
	for _, id := range calls {
		b.past[id] = task
	}
}

// takeLate reports an update of a tool call that an earlier turn has begun, and whether it is
// one. It is called by who reads the agent.
func (a *agent) takeLate(kind string, update []byte, repaired bool) bool {
	if kind != "tool_call_update" || a.loading.Load() {
		return false
	}
	id, _ := frame.Text(frame.Member(update, "toolCallId"))
	of := a.background.taskOf(string(id))
	if t := a.current.Load(); t != nil && t.tools.has(string(id)) {
		t.taking.Lock()
		over := t.ended
		t.taking.Unlock()
		if of = t.ID; !over {
			return false
		}
	}
	last := a.last.Load()
	var u toolUpdate
	if of == "" || last == nil || last.conversation == "" || u.UnmarshalJSON(update) != nil {
		return false
	}
	u.repaired = repaired
	call, event := u.call(), catalog.EventToolUpdate
	if u.Status == "completed" || u.Status == "failed" {
		call.Result, event = u.result(), catalog.EventToolResult
		a.background.callEnded(u.ToolCallID)
	}
	data, err := task.JSON(call)
	if err == nil {
		err = a.driver.hub.ReportLate(a.driver.ctx, catalog.ReportLateParams{SessionID: last.conversation, TaskID: of, EventType: event, EventData: data})
	}
	if err != nil {
		a.driver.log.Info("what an agent told of an earlier tool call was not taken", "agent", a.name, "err", err)
	}
	if event == catalog.EventToolResult && a.current.Load() == nil { // else the end of the turn tells
		a.tellBackgroundNow(a.backgroundTasks, false)
	}
	return true
}

// taskOf is the task of the ended turn that has begun a tool call, or "".
func (b *backgroundWork) taskOf(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.past[id]
}

// callEnded notes the end of a tool call, perhaps one of an earlier turn.
func (b *backgroundWork) callEnded(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.calls, id)
}

// backgroundTasks is what the agent does in the background now.
func (a *agent) backgroundTasks() []catalog.BackgroundTask {
	tasks := []catalog.BackgroundTask{}
	a.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(a.terminals)) {
		if t := a.terminals[id]; !t.proc.Ended() {
			tasks = append(tasks, catalog.BackgroundTask{ID: id, Kind: catalog.BackgroundTerminal, Title: t.command})
		}
	}
	a.mu.Unlock()
	if a.proc.Ended() {
		return tasks
	}
	running := process.Descendants(a.proc.PID)
	b := &a.background
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(b.calls)) {
		tasks = append(tasks, catalog.BackgroundTask{ID: id, Kind: catalog.BackgroundToolCall, Title: b.calls[id]})
	}
	begun := make(map[int]bool)
	for _, p := range running { // parents come first
		if b.own == nil || b.own[p.PID] {
			continue
		}
		begun[p.PID] = true
		if !begun[p.Parent] {
			tasks = append(tasks, catalog.BackgroundTask{ID: strconv.Itoa(p.PID), Kind: catalog.BackgroundProcess, Title: b.titleOf(p.Command)})
		}
	}
	return tasks[:min(len(tasks), maxBackground)]
}

// titleOf is the command that a tool was to run, if a process runs it: agents wrap it in
// lines of their own. mu is held.
func (b *backgroundWork) titleOf(line string) string {
	for _, command := range slices.Backward(b.commands) {
		if strings.Contains(line, command) {
			return command
		}
	}
	return bounded(line)
}

// tellBackground tells the hub what the agent does in the background, and goes on with that
// until there is nothing.
func (a *agent) tellBackground() {
	a.tellBackgroundNow(a.backgroundTasks, false)
	b := &a.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.told) == 0 || b.watched {
		return
	}
	b.watched = true
	a.driver.work.Go(a.watchBackground)
}

func (a *agent) watchBackground() {
	tick := time.NewTicker(lookAtBackground)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if a.current.Load() != nil { // the end of its turn tells
				continue
			}
			a.tellBackgroundNow(a.backgroundTasks, false)
		case <-a.life.Done():
			a.tellBackgroundNow(noTasks, true)
		}
		b := &a.background
		b.mu.Lock()
		over := len(b.told) == 0
		b.watched = !over
		b.mu.Unlock()
		if over {
			return
		}
	}
}

func noTasks() []catalog.BackgroundTask { return []catalog.BackgroundTask{} }

// tellBackgroundNow tells the hub what the agent does in the background if it was told
// something else before. ended says that the agent has ended.
func (a *agent) tellBackgroundNow(now func() []catalog.BackgroundTask, ended bool) {
	b := &a.background
	b.telling.Lock()
	defer b.telling.Unlock()
	if !ended && a.own.isRetired() { // its work is cut, also where the agent ends it in order
		return
	}
	tasks := now()
	b.mu.Lock()
	same := slices.Equal(b.told, tasks) // also where nothing was told, and there is nothing
	b.told = tasks
	b.mu.Unlock()
	if !same {
		a.reportBetween(catalog.Session{Background: tasks, Ended: ended})
	}
}
