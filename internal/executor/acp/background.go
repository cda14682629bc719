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
// calls that it has begun in a turn and not ended, programs in terminals, and processes. What
// the agent needs itself is no work: processes that it had when it got its first prompt, such
// as its MCP servers, and those of its own programs.
type backgroundWork struct {
	mu       sync.Mutex        // guards the fields below
	calls    map[string]string // titles of tool calls, by their ids
	own      map[int]bool      // processes that the agent had before its first prompt; nil: it has none yet
	programs []string          // the agent's own: files, or directories with a slash at the end
	past     map[string]string // tasks of ended turns, by the ids of their tool calls
	commands []string          // of tool calls that were to run in the background, the latest last
	seen     map[int]time.Time // when processes were seen first: agents start some for a moment
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

// installation is what a program is installed with: the packages of its node_modules, or else
// itself.
func installation(program string) string {
	const packages = "/node_modules/"
	if before, _, found := strings.Cut(program, packages); found {
		return before + packages
	}
	return program
}

// isOwn reports whether a process is one of the agent's own; mu is held.
func (b *backgroundWork) isOwn(pid int) bool {
	if b.own == nil || b.own[pid] {
		return true
	}
	program := process.Program(pid)
	return program != "" && slices.ContainsFunc(b.programs, func(own string) bool {
		return program == own || strings.HasSuffix(own, "/") && strings.HasPrefix(program, own)
	})
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

// backgroundTasks is what the agent does in the background now. more says that there are
// processes that are perhaps no work: they are if they are still there at the next look.
func (a *agent) backgroundTasks() (tasks []catalog.BackgroundTask, more bool) {
	tasks = []catalog.BackgroundTask{}
	a.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(a.terminals)) {
		if t := a.terminals[id]; !t.proc.Ended() {
			tasks = append(tasks, catalog.BackgroundTask{ID: id, Kind: catalog.BackgroundTerminal, Title: t.command})
		}
	}
	a.mu.Unlock()
	if a.proc.Ended() {
		return tasks, false
	}
	running := process.Descendants(a.proc.PID)
	b := &a.background
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(b.calls)) {
		tasks = append(tasks, catalog.BackgroundTask{ID: id, Kind: catalog.BackgroundToolCall, Title: b.calls[id]})
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
			tasks = append(tasks, catalog.BackgroundTask{ID: strconv.Itoa(p.PID), Kind: catalog.BackgroundProcess, Title: title})
		default:
			more = true
		}
	}
	b.seen = begun
	return tasks[:min(len(tasks), maxBackground)], more
}

// titleOf is the command that a tool was to run, if a process runs it: agents wrap it in
// lines of their own. mu is held.
func (b *backgroundWork) titleOf(line string) (title string, isCommand bool) {
	for _, command := range slices.Backward(b.commands) {
		if strings.Contains(line, command) {
			return command, true
		}
	}
	return bounded(line), false
}

// tellBackground tells the hub what the agent does in the background, and goes on with that
// until there is nothing.
func (a *agent) tellBackground() {
	tasks, more := a.backgroundTasks()
	a.tellBackgroundNow(tasks, false)
	b := &a.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.told) == 0 && !more || b.watched {
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
			if a.current.Load() != nil { // the end of its turn tells
				continue
			}
			var tasks []catalog.BackgroundTask
			tasks, more = a.backgroundTasks()
			a.tellBackgroundNow(tasks, false)
		case <-a.life.Done():
			a.tellBackgroundNow([]catalog.BackgroundTask{}, true)
		}
		b := &a.background
		b.mu.Lock()
		over := len(b.told) == 0 && !more
		b.watched = !over
		b.mu.Unlock()
		if over {
			return
		}
	}
}

// tellBackgroundNow tells the hub what the agent does in the background if it was told
// something else before. ended says that the agent has ended.
func (a *agent) tellBackgroundNow(tasks []catalog.BackgroundTask, ended bool) {
	b := &a.background
	b.mu.Lock()
	same := slices.Equal(b.told, tasks) // also where nothing was told, and there is nothing
	b.told = tasks
	b.mu.Unlock()
	if !same {
		a.reportBetween(catalog.Session{Background: tasks, Ended: ended})
	}
}
