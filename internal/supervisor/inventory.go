package supervisor

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An inventory records the tasks of one executor, and the processes that it has started for
// them: those must not outlive it. The zero value is empty. Its methods may be called from any
// goroutine.
type inventory struct {
	mu      sync.Mutex            // guards the fields below
	closed  bool                  // the executor has gone
	agents  map[string]remembered // by mark; includes commands of the configuration
	pruneAt int                   // number of agents that triggers the next prune; 0: leastPruned
	// terminals: true while they run, false if one ended before the response to its start
	terminals map[string]bool
	owners    map[string]string   // the tasks of agents' terminals by terminal
	tasks     map[string]struct{} // of the executor: agents' terminals outlive them
	past      []string            // the ended tasks among them, the oldest first
	commands  map[string]string   // the marks of running commands, by id
}

// A remembered is a process, and when it was first recorded.
type remembered struct {
	domain.Process
	since time.Time
}

const (
	// pastTasks is the number of ended tasks that an executor may still report about.
	pastTasks = 1024
	// leastPruned is the minimum number of agents before ended ones are forgotten.
	leastPruned = 256
	// pruneAfter is how long an agent is remembered at least, unless its process has ended. A
	// starting agent shows no mark yet.
	pruneAfter = time.Minute
)

// give records a task of the executor; ended is called after the executor's response.
func (i *inventory) give(task string) (ended func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.tasks == nil {
		i.tasks = make(map[string]struct{})
	}
	i.tasks[task] = struct{}{}
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.past = append(i.past, task)
		if len(i.past) >= 2*pastTasks {
			i.forgetPast()
		}
	}
}

// forgetPast forgets the oldest ended tasks, except those of running terminals; mu is held.
func (i *inventory) forgetPast() {
	owning := make(map[string]bool)
	for _, task := range i.owners {
		owning[task] = true
	}
	var kept []string
	old := len(i.past) - pastTasks
	for n, task := range i.past {
		if n >= old || owning[task] {
			kept = append(kept, task)
			continue
		}
		delete(i.tasks, task)
	}
	i.past = kept
}

// has reports whether a task belongs to the executor, or is empty.
func (i *inventory) has(task string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, ok := i.tasks[task]
	return ok || task == ""
}

// affectedTasks returns the tasks that a report may be about. For "", or a task of another
// executor, those are all of the executor's tasks.
func (i *inventory) affectedTasks(task string) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, own := i.tasks[task]; own {
		return []string{task}
	}
	return slices.Sorted(maps.Keys(i.tasks))
}

// command records a command of the executor; ended is called after all its processes have ended.
func (i *inventory) command(id, mark string) (ended func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.commands == nil {
		i.commands = make(map[string]string)
	}
	i.commands[id] = mark
	i.remember(domain.Process{Mark: mark})
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.commands, id)
		delete(i.agents, mark)
	}
}

// hasCommand reports whether a command of that id runs in the executor.
func (i *inventory) hasCommand(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, ok := i.commands[id]
	return ok
}

// commandStarted records the process of a command.
func (i *inventory) commandStarted(id string, pid int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if mark, ok := i.commands[id]; ok && pid > 1 {
		i.remember(domain.Process{PID: pid, Mark: mark})
	}
}

// terminal records that a terminal runs in the executor, or has ended.
func (i *inventory) terminal(id string, running bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return
	}
	delete(i.owners, id)
	if _, known := i.terminals[id]; known {
		delete(i.terminals, id) // it ended, also if that was before the response to its start
		return
	}
	if i.terminals == nil {
		i.terminals = make(map[string]bool)
	}
	i.terminals[id] = running
}

// agentTerminal records a terminal of an agent.
func (i *inventory) agentTerminal(id, task string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return
	}
	if i.terminals == nil {
		i.terminals = make(map[string]bool)
	}
	if i.owners == nil {
		i.owners = make(map[string]string)
	}
	i.terminals[id], i.owners[id] = true, task
}

// agent records an agent that the executor has started.
func (i *inventory) agent(data json.RawMessage) {
	var agent catalog.Process
	if json.Unmarshal(data, &agent) != nil || agent.PID <= 1 || agent.Mark == "" {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.remember(domain.Process{PID: agent.PID, Mark: agent.Mark})
}

// remember stores the process of an agent or a command; mu is held.
func (i *inventory) remember(p domain.Process) {
	if i.closed {
		return
	}
	if i.agents == nil {
		i.agents = make(map[string]remembered)
	}
	since := time.Now()
	if known, ok := i.agents[p.Mark]; ok {
		since = known.since
	}
	i.agents[p.Mark] = remembered{p, since}
	if len(i.agents) >= cmp.Or(i.pruneAt, leastPruned) {
		i.prune()
		i.pruneAt = max(2*len(i.agents), leastPruned)
	}
}

// prune forgets agents that have ended; mu is held.
func (i *inventory) prune() {
	var old []domain.Process
	for _, p := range i.agents {
		if time.Since(p.since) >= pruneAfter || isGone(p.PID) {
			old = append(old, p.Process)
		}
	}
	if len(old) == 0 {
		return
	}
	for _, mark := range i.commands { // the executor reports their end
		old = slices.DeleteFunc(old, func(p domain.Process) bool { return p.Mark == mark })
	}
	running := runningMarks(old)
	for _, p := range old {
		if !running[p.Mark] {
			delete(i.agents, p.Mark)
		}
	}
}

// close handles the end of the executor. It returns the agents that it has started, and the
// running terminals, with their tasks.
func (i *inventory) close() (agents []domain.Process, terminals map[string]string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	terminals = make(map[string]string)
	for id, running := range i.terminals {
		if running {
			terminals[id] = i.owners[id]
		}
	}
	for _, p := range i.agents {
		agents = append(agents, p.Process)
	}
	return agents, terminals
}
