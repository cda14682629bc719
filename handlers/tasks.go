package handlers

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerTasks registers task.* and chat.send (AIWG). Who calls one of
// them gets the broadcasts event.task… from then on.
func registerTasks(reg *server.Registry, d Domain) *broadcasts {
	t := &tasks{Domain: d, broadcasts: newBroadcasts(d.Logger)}
	handle(reg, d, dialect.Task, "task.submit", joined(t, t.submit),
		server.Doc("Starts a task, or queues it if no place is free. event.task… notifications tell what becomes of it."))
	handle(reg, d, dialect.Task, "task.cancel", joined(t, t.cancel),
		server.Doc("Cancels a queued task, or begins to end a running one."))
	handle(reg, d, dialect.Task, "task.list", joined(t, t.list),
		server.Doc("Lists tasks, the newest first."))
	handle(reg, d, dialect.Task, "task.get", joined(t, t.get),
		server.Doc("Tells everything about a task, with its output so far."))
	handle(reg, d, dialect.Task, "task.stats", t.stats,
		server.Doc("Counts tasks by state. Its since is for who was told of tasks by a hub that has gone."))
	handle(reg, d, dialect.Task, "task.usage", t.usage,
		server.Doc("Tells what tasks have used, as far as their agents say: tokens, cost and time."))
	handle(reg, d, dialect.Chat, "chat.send", joined(t, t.chat),
		server.Doc("Sends a message to the project's chat, a conversation that goes on from task to task. It is with the default agent: when that is another one than before, "+
			"the chat goes on with it in a new conversation, and it is told what was said."))
	return t.broadcasts
}

type tasks struct {
	Domain
	broadcasts *broadcasts
}

// joined makes the caller one that gets broadcasts.
func joined[P, R any](t *tasks, h func(context.Context, *hub.Hub, P) (R, error)) func(context.Context, *hub.Hub, P) (R, error) {
	return func(ctx context.Context, hb *hub.Hub, p P) (R, error) {
		t.broadcasts.watch(hb)
		t.broadcasts.join(ctx, hb, nil)
		return h(ctx, hb, p)
	}
}

type submitParams struct {
	Prompt   string `json:"prompt" doc:"What the agent is to do."`
	Agent    string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	Priority *int   `json:"priority,omitempty" doc:"Higher first; 0 unless told."`
	CWD      string `json:"cwd,omitempty" doc:"The directory in which the agent works; absent: the project's root."`
	Title    string `json:"title,omitempty" doc:"What to call it."`
	promptContent
	Budget *runBudget `json:"budget,omitempty" doc:"How much it may use, in the place of what is configured ([budget.run])."`
	gated
}

func (p submitParams) check() error { return first(need("prompt", p.Prompt), p.promptContent.check()) }

type submitResult struct {
	TaskID    string `json:"taskId"`
	State     string `json:"state" doc:"running or queued."`
	Agent     string `json:"agent" doc:"The agent that was taken."`
	SessionID string `json:"session_id" doc:"The same under its name as a session."`
}

func (t *tasks) submit(ctx context.Context, h *hub.Hub, p submitParams) (submitResult, error) {
	prompt, _ := p.with(p.Prompt) // it was checked
	spec := hub.LaunchSpec{Prompt: prompt.text, Content: prompt.content, Title: p.Title, Agent: p.Agent, CWD: p.CWD, Source: domain.SourceTask, Gates: p.spec()}
	if p.Priority != nil {
		spec.Priority = *p.Priority
	}
	if p.Budget != nil {
		spec.Settings.Budget = p.Budget.value()
	}
	s, err := h.Launch(ctx, spec)
	return submitted(s), err
}

func submitted(s domain.Session) submitResult {
	return submitResult{domain.TaskName(s.Task), dialect.SubmittedStateOf(s.State), s.Agent, s.SessionID}
}

// chatPriority is that of chat messages (AIWG): somebody waits.
const chatPriority = 5

type chatParams struct {
	Message  string `json:"message" doc:"What to say."`
	Priority *int   `json:"priority,omitempty" doc:"Higher first; 5 unless told."`
}

func (p chatParams) check() error { return need("message", p.Message) }

func (t *tasks) chat(ctx context.Context, h *hub.Hub, p chatParams) (submitResult, error) {
	priority := chatPriority
	if p.Priority != nil {
		priority = *p.Priority
	}
	s, err := h.Chat(ctx, p.Message, priority)
	return submitted(s), err
}

type taskParams struct {
	TaskID string `json:"taskId" doc:"The task; every id of the run will do."`
}

func (p taskParams) check() error { return need("taskId", p.TaskID) }

type cancelParams struct {
	TaskID string `json:"taskId" doc:"The task; every id of the run will do."`
	Reason string `json:"reason,omitempty" doc:"Why, for the record."`
}

func (p cancelParams) check() error { return need("taskId", p.TaskID) }

type cancelResult struct {
	Cancelled bool `json:"cancelled" doc:"The task was cancelled, or its end has begun."`
}

func (t *tasks) cancel(ctx context.Context, h *hub.Hub, p cancelParams) (cancelResult, error) {
	_, err := h.Interrupt(ctx, p.TaskID, p.Reason)
	return cancelResult{err == nil}, err
}

const (
	tasksByDefault = 20
	tasksAtMost    = 1000
)

type listTasksParams struct {
	State  dialect.TaskState `json:"state,omitempty" doc:"Only tasks in this state."`
	Limit  *uint             `json:"limit,omitempty" doc:"How many; 20 unless told, 1000 at most."`
	Agent  string            `json:"agent,omitempty" doc:"Only tasks of this agent."`
	Before string            `json:"before,omitempty" doc:"Only tasks older than this one, for paging."`
}

func (t *tasks) list(ctx context.Context, h *hub.Hub, p listTasksParams) ([]*task, error) {
	before, err := beforeRow(ctx, h, p.Before)
	if err != nil {
		return nil, err
	}
	sessions, err := h.Query().Sessions(ctx, domain.RunFilter{
		States: p.State.States(), Agent: p.Agent, Before: before,
		Limit: pageSize(p.Limit, tasksByDefault, tasksAtMost),
	})
	if err != nil {
		return nil, err
	}
	list := make([]*task, 0, len(sessions))
	gates, err := allGates(ctx, h, sessions)
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		one := taskOf(s, s.Result)
		one.Gates = gates[s.Run.ID]
		list = append(list, one)
	}
	return fit(list, room(ctx)), nil
}

func (t *tasks) get(ctx context.Context, h *hub.Hub, p taskParams) (task, error) {
	s, err := h.Query().Session(ctx, p.TaskID)
	if err != nil {
		return task{}, err
	}
	output, err := h.Query().Output(ctx, s)
	if err != nil {
		return task{}, err
	}
	one := []*task{taskOf(s, output)}
	if one[0].Gates, err = gatesOf(ctx, h, s); err != nil {
		return task{}, err
	}
	fit(one, room(ctx))
	return *one[0], nil
}

type statsResult struct {
	Total     int `json:"total"`
	Running   int `json:"running"`
	Queued    int `json:"queued"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
}

type statsParams struct {
	Since *int64 `json:"since,omitempty" doc:"If this connection was not told of tasks before: first what became of them after this seq, the last that an event.task… notification had; -1: after the end of the hub before this one."`
}

func (t *tasks) stats(ctx context.Context, h *hub.Hub, p statsParams) (statsResult, error) {
	t.broadcasts.watch(h)
	t.broadcasts.join(ctx, h, p.Since)
	counts, err := h.Query().Counts(ctx)
	return statsOf(counts), err
}

func statsOf(counts domain.Counts) (s statsResult) {
	in := map[string]*int{
		"running": &s.Running, "queued": &s.Queued, "completed": &s.Completed, "failed": &s.Failed, "cancelled": &s.Cancelled,
	}
	for state, n := range counts {
		if field := in[dialect.TaskStateOf(state)]; field != nil {
			*field += n
			s.Total += n
		}
	}
	return s
}
