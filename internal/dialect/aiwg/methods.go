package aiwg

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/dialect/native"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// The families of AIWG's methods: they differ in the name of the prompt.
var (
	Family = protocol.Family{Name: "AIWG", Codes: map[string]protocol.Code{
		domain.KindTurnNotFound:   {Code: -32000, Kind: "task_not_found", Message: "Task not found: "},
		domain.KindNotCancellable: {Code: -32001, Kind: "task_not_cancellable", Message: "Task not cancellable: "},
		domain.KindQueueFull:      {Code: -32002, Kind: "queue_full", Message: "Queue full: "},
		domain.KindUnavailable:    {Code: -32003, Kind: "subsystem_unavailable", Message: "Subsystem unavailable: "},
	}, Params: map[string]string{"working_dir": "cwd", "turn": "taskId"}, Tasks: true}
	ChatFamily = protocol.Family{Name: "AIWG chat", Codes: Family.Codes, Params: map[string]string{"prompt": "message"}, Tasks: true}
)

// Register registers AIWG's methods. A connection that calls task.* or chat.send gets the broadcasts
// event.task… from then on. flush waits until each has all broadcasts so far, or its context ends.
func Register(m native.Methods) (flush func(context.Context)) {
	t := &tasks{
		start:      native.Call[protocol.StartParams, protocol.Started](m, "session.start"),
		interrupt:  native.Call[protocol.InterruptTurnParams, protocol.InterruptTurnResult](m, "turn.interrupt"),
		turns:      native.Call[protocol.ListTurnsParams, protocol.TurnList](m, "turn.list"),
		turn:       native.Call[protocol.TurnParams, protocol.TurnResult](m, "turn.get"),
		items:      native.Call[protocol.ItemsParams, protocol.ItemList](m, "session.items"),
		count:      native.Call[protocol.Empty, protocol.TurnCounts](m, "turn.count"),
		broadcasts: newBroadcasts(m.Hub, m.Logger),
	}
	native.Compose(m, Family, "task.submit", "Starts a task, or queues it if no slot is free. The notifications event.task… report its "+
		"progress.",
		joined(t, t.submit), server.Releasing()) // it may make a worktree
	native.Compose(m, Family, "task.cancel", "Cancels a queued task, or begins to stop a running one.", joined(t, t.cancel))
	native.Compose(m, Family, "task.list", "Lists tasks, the newest first.", joined(t, t.list))
	native.Compose(m, Family, "task.get", "Returns a task with its output so far.", joined(t, t.get))
	native.Compose(
		m, Family, "task.stats", "Counts tasks by state. With since, a client that lost the hub also gets the notifications that it missed.",
		t.stats,
	)
	native.Compose(m, ChatFamily, "chat.send", "Sends a message to the project's chat, a conversation that continues from task to task. It "+
		"uses the default agent. If the default agent has changed, the chat continues in a new conversation, and the new agent gets the "+
		"transcript.", joined(t, t.chat))
	native.Over(m, Family, "automation.status", "trigger.list", "Lists the configured triggers and their last executions.",
		func(p protocol.Empty) protocol.Empty { return p },
		func(_ context.Context, l protocol.TriggerList) protocol.AutomationStatus {
			return protocol.AutomationOf(l)
		})
	native.Compose(m, Family, "automation.enable", "Enables one trigger, or all as a whole. That holds until it is changed again.",
		switched(m, "trigger.enable"))
	native.Compose(m, Family, "automation.disable", "Disables one trigger, or all as a whole. That holds until it is changed again.",
		switched(m, "trigger.disable"))
	return t.broadcasts.flushed
}

type tasks struct {
	start      func(context.Context, protocol.StartParams) (protocol.Started, error)
	interrupt  func(context.Context, protocol.InterruptTurnParams) (protocol.InterruptTurnResult, error)
	turns      func(context.Context, protocol.ListTurnsParams) (protocol.TurnList, error)
	turn       func(context.Context, protocol.TurnParams) (protocol.TurnResult, error)
	items      func(context.Context, protocol.ItemsParams) (protocol.ItemList, error)
	count      func(context.Context, protocol.Empty) (protocol.TurnCounts, error)
	broadcasts *broadcasts
}

// joined wraps a handler so that its caller gets broadcasts.
func joined[P, R any](t *tasks, h func(context.Context, P) (R, error)) func(context.Context, P) (R, error) {
	return func(ctx context.Context, p P) (R, error) {
		if err := t.broadcasts.join(ctx, nil); err != nil {
			var none R
			return none, err
		}
		return h(ctx, p)
	}
}

func (t *tasks) submit(ctx context.Context, p SubmitTaskParams) (SubmitTaskResult, error) {
	r, err := t.start(ctx, protocol.StartParams{
		Prompt: p.Prompt, PromptContent: p.PromptContent, Title: p.Title, Agent: p.Agent, WorkingDir: p.CWD, Priority: protocol.Value(p.Priority),
		AgentSettings: protocol.AgentSettings{Budget: p.Budget}, Gated: p.Gated, Source: domain.SourceTask,
	})
	return submitted(r.Of), err
}

func submitted(s domain.TurnInSession) SubmitTaskResult {
	return SubmitTaskResult{TaskID: domain.TaskName(s.Task), State: SubmittedStateOf(s.State), Agent: s.Agent, SessionID: s.HumanLayerSession}
}

// chatPriority is the priority of chat messages (AIWG): a user waits for the answer.
const chatPriority = 5

func (t *tasks) chat(ctx context.Context, p ChatParams) (SubmitTaskResult, error) {
	priority := chatPriority
	if p.Priority != nil {
		priority = *p.Priority
	}
	r, err := t.start(ctx, protocol.StartParams{
		Prompt: p.Message, Priority: priority, Chat: true, Metadata: json.RawMessage(`{"source":"ipc-chat"}`),
	})
	return submitted(r.Of), err
}

func (t *tasks) cancel(ctx context.Context, p TaskCancelParams) (TaskCancelResult, error) {
	_, err := t.interrupt(ctx,
		protocol.InterruptTurnParams{Turn: protocol.Ref(p.TaskID), Reason: p.Reason})
	return TaskCancelResult{Cancelled: err == nil}, err
}

const (
	tasksByDefault = 20
	tasksAtMost    = 1000
)

func (t *tasks) list(ctx context.Context, p ListTasksParams) ([]*Task, error) {
	limit := uint(protocol.PageSize(p.Limit, tasksByDefault, tasksAtMost))
	found, err := t.turns(ctx, protocol.ListTurnsParams{
		Agent: p.Agent, Before: protocol.Ref(p.Before), Limit: &limit, States: p.State.States(),
	})
	list := make([]*Task, 0, len(found.Turns))
	for _, turn := range found.Turns {
		list = append(list, taskOf(turn, turn.Of.Result))
	}
	return protocol.Fit(list, protocol.Room(ctx)), err
}

func (t *tasks) get(ctx context.Context, p TaskParams) (Task, error) {
	r, err := t.turn(ctx, protocol.TurnParams{Turn: protocol.Ref(p.TaskID)})
	if err != nil {
		return Task{}, err
	}
	said, err := t.items(ctx, protocol.ItemsParams{Turn: protocol.Ref(r.Turn.ID), Uncut: &protocol.UncutItems{Spoken: true}})
	one := []*Task{taskOf(&r.Turn, outputOf(said))}
	protocol.Fit(one, protocol.Room(ctx))
	return *one[0], err
}

// outputOf returns the text of the agent's messages.
func outputOf(l protocol.ItemList) string {
	var texts []string
	for _, i := range l.Items {
		if i.Type == protocol.ItemMessage && i.Role == "assistant" {
			texts = append(texts, i.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

func (t *tasks) stats(ctx context.Context, p TaskStatsParams) (TaskStats, error) {
	if err := t.broadcasts.join(ctx, p.Since); err != nil {
		return TaskStats{}, err
	}
	counts, err := t.count(ctx, protocol.Empty{})
	return statsOf(counts.States), err
}

func statsOf[S ~string](counts map[S]int) (s TaskStats) {
	in := map[string]*int{
		"running": &s.Running, "queued": &s.Queued, "completed": &s.Completed, "failed": &s.Failed, "cancelled": &s.Cancelled,
	}
	for state, n := range counts {
		if field := in[StateOf(domain.State(state))]; field != nil {
			*field += n
			s.Total += n
		}
	}
	return s
}

// switched is trigger.enable or trigger.disable for AIWG, where an unknown rule is no error.
func switched(m native.Methods, method string) func(context.Context, RuleParams) (Switched, error) {
	call := native.Call[protocol.TriggerParams, protocol.TriggerSwitched](m, method)
	return func(ctx context.Context, p RuleParams) (Switched, error) {
		r, err := call(ctx, protocol.TriggerParams{Trigger: p.RuleID})
		if native.KindOf(err) == domain.KindTriggerNotFound {
			return Switched{RuleID: p.RuleID}, nil
		}
		return Switched{Enabled: r.Enabled, Success: err == nil, RuleID: p.RuleID}, err
	}
}

// AtMost returns an upper limit for the length of the task as JSON, in bytes.
func (t *Task) AtMost() int {
	return 4096 + protocol.TextAtMost(t.Texts()...) + protocol.TextAtMost(
		&t.CWD, &t.Title,
	) + len(t.Metadata) + protocol.AuthMethodsAtMost(t.AuthMethods) + protocol.GatesAtMost(t.Gates)
}

func taskOf(t *protocol.Turn, output string) *Task {
	s := t.Of
	one := &Task{
		ID: domain.TaskName(s.Task), Prompt: t.Prompt, Agent: protocol.OrNil(t.Agent), Priority: t.Priority, State: StateOf(s.State),
		CreatedAt: protocol.Timestamp(s.Created), StartedAt: protocol.TimestampOrNull(s.Started), CompletedAt: protocol.TimestampOrNull(s.Ended),
		Error: protocol.OrNil(t.Error), Output: output, Metadata: metadataOf(s.Turn),
		SessionID: s.HumanLayerSession, RunID: s.HumanLayerRun, ThreadID: t.SessionUUID, CWD: t.WorkingDir, Title: t.Title, Summary: t.Summary,
		ErrorCode: t.ErrorCode, Status: humanlayer.StatusOf(s.State), AuthMethods: t.AuthMethods, Gates: t.Gates,
	}
	if s.State == domain.Completed {
		one.Result = &t.Result
	}
	return one
}

// metadataOf returns the metadata as an object, with AIWG's source of chat messages.
func metadataOf(r domain.Turn) json.RawMessage {
	members := map[string]json.RawMessage{}
	if len(r.Metadata) > 0 && json.Unmarshal(r.Metadata, &members) != nil || members == nil {
		members = map[string]json.RawMessage{}
	}
	if _, has := members["source"]; !has && r.Source == domain.SourceChat {
		members["source"] = json.RawMessage(`"ipc-chat"`)
	}
	b, err := json.Marshal(members)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}
