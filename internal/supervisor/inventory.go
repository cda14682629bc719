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

// An inventory is what one executor was given to do, and what it has started
// for that: what must not be left behind when it has gone. The zero value is
// empty. Its methods may be called from any goroutine.
type inventory struct {
	mu     sync.Mutex            // guards the fields below
	closed bool                  // the executor has gone
	agents map[string]remembered // by mark; commands of the configuration are among them
	prunes int                   // how many agents there are when those that have ended are forgotten; 0: leastPruned
	// terminals: true while they run, false if one ended before its start was
	// answered
	terminals map[string]bool
	owners    map[string]string   // the tasks of agents' terminals among them
	tasks     map[string]struct{} // that it was given: agents' terminals outlive them
	past      []string            // the tasks among them that have ended, the oldest first
	commands  map[string]string   // the marks of those that run, by their ids
}

// A remembered is a process, and when it was remembered first.
type remembered struct {
	domain.Process
	since time.Time
}

const (
	// pastTasks is how many tasks that have ended an executor may still report about.
	pastTasks = 1024
	// leastPruned is how many agents are remembered at least before those that have ended
	// are forgotten.
	leastPruned = 256
	// pruneAfter is how long an agent is remembered in any case. One that is just being
	// started shows no mark yet.
	pruneAfter = time.Minute
)

// give notes a task that the executor is given; ended is called when it has answered.
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

// forgetPast forgets the oldest tasks that have ended, but those of terminals that still
// run; mu is held.
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

// has reports whether the executor was given a task, or none is meant.
func (i *inventory) has(task string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, ok := i.tasks[task]
	return ok || task == ""
}

// tasksMeant are the tasks that something which the executor had to say of a task
// may be about: of "", or one that is not its own, it is any of its tasks.
func (i *inventory) tasksMeant(task string) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, own := i.tasks[task]; own {
		return []string{task}
	}
	return slices.Sorted(maps.Keys(i.tasks))
}

// command remembers a command that the executor is given; ended is called when nothing
// of it is left.
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

// commandStarted remembers the process of a command.
func (i *inventory) commandStarted(id string, pid int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if mark, ok := i.commands[id]; ok && pid > 1 {
		i.remember(domain.Process{PID: pid, Mark: mark})
	}
}

// terminal remembers a terminal that runs in the executor, or that it has
// ended.
func (i *inventory) terminal(id string, running bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return
	}
	delete(i.owners, id)
	if _, known := i.terminals[id]; known {
		delete(i.terminals, id) // it ended, or had ended before its start was answered
		return
	}
	if i.terminals == nil {
		i.terminals = make(map[string]bool)
	}
	i.terminals[id] = running
}

// agentTerminal remembers a terminal of an agent.
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

// agent remembers an agent that the executor has started.
func (i *inventory) agent(data json.RawMessage) {
	var agent catalog.Process
	if json.Unmarshal(data, &agent) != nil || agent.PID <= 1 || agent.Mark == "" {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.remember(domain.Process{PID: agent.PID, Mark: agent.Mark})
}

// remember keeps the process of an agent or a command; mu is held.
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
	if len(i.agents) >= cmp.Or(i.prunes, leastPruned) {
		i.prune()
		i.prunes = max(2*len(i.agents), leastPruned)
	}
}

// prune forgets agents that have ended; mu is held.
func (i *inventory) prune() {
	var old []domain.Process
	for _, p := range i.agents {
		if time.Since(p.since) >= pruneAfter {
			old = append(old, p.Process)
		}
	}
	if len(old) == 0 {
		return
	}
	for _, mark := range i.commands { // the executor says when one has ended
		old = slices.DeleteFunc(old, func(p domain.Process) bool { return p.Mark == mark })
	}
	running := runningMarks(old)
	for _, p := range old {
		if !running[p.Mark] {
			delete(i.agents, p.Mark)
		}
	}
}

// close is called when the executor has gone. It returns the agents that it
// has started, and the terminals that run, with their tasks.
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
