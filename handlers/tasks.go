package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerTasks registers task.* and chat.send (AIWG). Who calls one of
// them gets the broadcasts event.task… from then on.
func registerTasks(reg *server.Registry, d Domain) *broadcasts {
	t := &tasks{Domain: d, broadcasts: newBroadcasts(d.Logger)}
	handle(reg, d, taskFamily, "task.submit", joined(t, t.submit),
		server.Doc("Starts a task, or queues it if no place is free. event.task… notifications tell what becomes of it."))
	handle(reg, d, taskFamily, "task.cancel", joined(t, t.cancel),
		server.Doc("Cancels a queued task, or begins to end a running one."))
	handle(reg, d, taskFamily, "task.list", joined(t, t.list),
		server.Doc("Lists tasks, the newest first."))
	handle(reg, d, taskFamily, "task.get", joined(t, t.get),
		server.Doc("Tells everything about a task, with its output so far."))
	handle(reg, d, taskFamily, "task.stats", t.stats,
		server.Doc("Counts tasks by state. Its since is for who was told of tasks by a hub that has gone."))
	handle(reg, d, taskFamily, "task.usage", t.usage,
		server.Doc("Tells what tasks have used, as far as their agents say: tokens, cost and time."))
	handle(reg, d, chatFamily, "chat.send", joined(t, t.chat),
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
	return submitResult{domain.TaskName(s.Task), protocol.SubmittedStateOf(s.State), s.Agent, s.SessionID}
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
	State  protocol.TaskState `json:"state,omitempty" doc:"Only tasks in this state."`
	Limit  *uint              `json:"limit,omitempty" doc:"How many; 20 unless told, 1000 at most."`
	Agent  string             `json:"agent,omitempty" doc:"Only tasks of this agent."`
	Before string             `json:"before,omitempty" doc:"Only tasks older than this one, for paging."`
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
		if field := in[protocol.TaskStateOf(state)]; field != nil {
			*field += n
			s.Total += n
		}
	}
	return s
}

// A task is a run as AIWG shows it, and our names for it.
type task struct {
	ID          string          `json:"id"`
	Prompt      string          `json:"prompt"`
	Agent       *string         `json:"agent"`
	Priority    int             `json:"priority"`
	State       string          `json:"state" doc:"queued, running, completed, failed or cancelled."`
	CreatedAt   string          `json:"createdAt"`
	StartedAt   *string         `json:"startedAt"`
	CompletedAt *string         `json:"completedAt" doc:"When it ended, however it ended."`
	PID         *int            `json:"pid" doc:"Always null: agents are none of the caller's processes."`
	Result      *string         `json:"result" doc:"The agent's last message, once the task is completed."`
	Error       *string         `json:"error"`
	Output      string          `json:"output" doc:"What the agent said so far. In task.list: its last message."`
	Metadata    json.RawMessage `json:"metadata"`

	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	ThreadID  string `json:"thread_id"`
	CWD       string `json:"cwd"`
	Title     string `json:"title"`
	Summary   string `json:"summary" doc:"The beginning of what a human asked for, or why the agent went on by itself."`
	ErrorCode string `json:"error_code,omitempty" doc:"In capitals: TIMEOUT, ORPHANED, ..."`
	Status    string `json:"status" doc:"The state as sessions have it."`

	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty" doc:"It failed because somebody has to sign in, or to give the agent its key: the ways that the agent offers."`
	Gates       *gates              `json:"gates,omitempty" doc:"Of work that has gates (\"Gates\"): where it stands."`
}

func (t *task) texts() []*string {
	list := []*string{&t.Prompt, &t.Output}
	for _, s := range []*string{t.Result, t.Error} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

func (t *task) atMost() int {
	return 4096 + textAtMost(t.texts()...) + textAtMost(&t.CWD, &t.Title) + len(t.Metadata) + authMethodsAtMost(t.AuthMethods) + gatesAtMost(t.Gates)
}

// authMethodsAtMost is how long ways to sign in can be as JSON.
func authMethodsAtMost(methods []domain.AuthMethod) (total int) {
	for _, m := range methods {
		total += 100 + textAtMost(&m.ID, &m.Name, &m.Description, &m.Type)
	}
	return total
}

func taskOf(s domain.Session, output string) *task {
	t := &task{
		ID: domain.TaskName(s.Task), Prompt: s.Prompt, Agent: orNil(s.Agent), Priority: s.Priority, State: protocol.TaskStateOf(s.State),
		CreatedAt: protocol.Timestamp(s.Created), StartedAt: protocol.TimestampOrNull(s.Started), CompletedAt: protocol.TimestampOrNull(s.Ended),
		Error: orNil(protocol.ErrorText(s.Run)), Output: output, Metadata: metadataOf(s.Run),
		SessionID: s.SessionID, RunID: s.RunID, ThreadID: s.Thread.UUID, CWD: s.Thread.CWD, Title: titleOf(s), Summary: headline(summaryOf(s.Run), summaryShown),
		ErrorCode: s.ErrorCode, Status: protocol.StatusOf(s.State), AuthMethods: s.SignIn,
	}
	if s.State == domain.Completed {
		t.Result = &s.Result
	}
	return t
}

// titleOf is the run's title, else its thread's.
func titleOf(s domain.Session) string {
	if s.Title != "" {
		return s.Title
	}
	return s.Thread.Title
}

// metadataOf is an object, with the source that AIWG gives to
// chat messages.
func metadataOf(r domain.Run) json.RawMessage {
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

type sendTaskParams struct {
	Prompt   string `json:"prompt,omitempty" doc:"What the agent is to do. This or task is needed."`
	Task     string `json:"task,omitempty" doc:"Another name for prompt."`
	Agent    string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one, or that of the thread."`
	CWD      string `json:"cwd,omitempty" doc:"The directory in which the agent works; absent: the project's root."`
	Title    string `json:"title,omitempty" doc:"What to call it."`
	Priority int    `json:"priority,omitempty" doc:"Higher first; 0 unless told."`
	Thread   string `json:"thread,omitempty" doc:"The caller's own id of the conversation, or any id of one that there is. Tasks with the same one follow each other; absent: a new one."`
	TaskID   string `json:"taskId,omitempty" doc:"The caller's own id of the task, by which cancelTask finds it; it must be new, and not of the form task-0001, which is ours."`
	gated
}

func (p sendTaskParams) check() error {
	return need("prompt", cmp.Or(strings.TrimSpace(p.Prompt), p.Task))
}

type sendTaskResult struct {
	TaskID     string `json:"taskId"`
	SessionID  string `json:"session_id" doc:"The same under its name as a session."`
	State      string `json:"state" doc:"completed or failed."`
	Result     string `json:"result" doc:"What the agent said last."`
	Error      string `json:"error,omitempty" doc:"Why it failed."`
	ErrorCode  string `json:"error_code,omitempty" doc:"The same for programs."`
	StopReason string `json:"stop_reason,omitempty" doc:"The agent's own."`
	Agent      string `json:"agent" doc:"The agent that was taken."`
	Gates      *gates `json:"gates,omitempty" doc:"Of a task that has gates: where they stand."`
}

func (b boundary) sendTask(ctx context.Context, h *hub.Hub, p sendTaskParams) (sendTaskResult, error) {
	since := h.Events().Last()
	// A request that is cancelled just now must not leave a run behind that nobody
	// knows of.
	s, err := h.Launch(context.WithoutCancel(ctx), hub.LaunchSpec{
		Prompt: cmp.Or(strings.TrimSpace(p.Prompt), p.Task), Agent: p.Agent, CWD: p.CWD, Title: p.Title, Priority: p.Priority, Source: domain.SourceTask,
		ThreadAlias: p.Thread, CallerID: p.TaskID, Gates: p.spec(),
	})
	if err != nil {
		return sendTaskResult{}, err
	}
	told, err := b.tellOfTask(ctx, h, s, p, since)
	if err != nil {
		b.abandon(ctx, h, s) // the request was cancelled meanwhile
		return sendTaskResult{}, err
	}
	defer told.Close()
	ended, loop, err := endOfWork(ctx, h, s)
	if err != nil {
		b.abandon(ctx, h, s)
		return sendTaskResult{}, err
	}
	if err := told.CatchUp(ctx); err != nil {
		return sendTaskResult{}, err
	}
	r, err := sentTask(s, ended, loop)
	if err == nil || loop != nil && loop.State == domain.LoopFailed {
		r.Gates, _ = gatesOf(ctx, h, s) // it was read a moment ago
	}
	told.tellEnd(ctx, r, ended)
	if loop != nil && loop.State == domain.LoopFailed {
		return sendTaskResult{}, gateFailed(s, r, *loop)
	}
	return r, err
}

// endOfWork waits until the work on a task has ended, and is the session that has ended
// then: with gates, the last of several. loop is nil without.
func endOfWork(ctx context.Context, h *hub.Hub, s domain.Session) (ended domain.Session, loop *domain.GateLoop, err error) {
	l, has, err := h.Gates().Await(ctx, s.Run.ID)
	if err != nil {
		return s, nil, err
	}
	if !has {
		ended, err = h.Await(ctx, s.SessionID)
		return ended, nil, err
	}
	ended, err = h.Query().ByRun(ctx, l.Run)
	return ended, &l, err
}

// sentTask is what became of a task for who has waited for it.
func sentTask(sent, s domain.Session, loop *domain.GateLoop) (sendTaskResult, error) {
	name := domain.TaskName(sent.Task)
	switch {
	case s.State == domain.Cancelled, s.State == domain.Interrupted, s.State == domain.Discarded:
		return sendTaskResult{}, domain.Errorf(domain.KindTaskCancelled, "%s", cmp.Or(s.Error, name+" was ended before it was done"))
	case protocol.IsContextOverflow(s.Run):
		return sendTaskResult{}, domain.Errorf(domain.KindContextOverflow, "%s: %s", name, cmp.Or(s.Error, "the agent's model has no room for it"))
	case s.State == domain.Completed && loop != nil && loop.State == domain.LoopStopped:
		return sendTaskResult{}, domain.Errorf(domain.KindTaskCancelled, "the check of %s was ended: %s", name, loop.Reason)
	}
	return sendTaskResult{
		TaskID: name, SessionID: sent.SessionID, State: string(protocol.TaskStateOf(s.State)), Result: s.Result, Error: s.Error, ErrorCode: s.ErrorCode,
		StopReason: s.Stop, Agent: s.Agent,
	}, nil
}

// A gateFailure is the data of the error of a task whose gates still fail.
type gateFailure struct {
	Kind          string                `json:"kind"`
	Gate          string                `json:"gate"` // the first one that fails
	Findings      []domain.Diagnostic   `json:"findings"`
	Gates         []protocol.GateResult `json:"gates"` // all that fail
	Reason        string                `json:"reason"`
	Iterations    int                   `json:"iterations"`
	MaxIterations int                   `json:"max_iterations"`
	TaskID        string                `json:"taskId"`
	SessionID     string                `json:"session_id"`
	Result        string                `json:"result"`
}

func gateFailed(s domain.Session, r sendTaskResult, l domain.GateLoop) error {
	failing := l.Failing()
	f := gateFailure{
		Kind: "gate_failed", Gates: protocol.GateResultsOf(failing), Reason: l.Reason, Iterations: l.Iteration, MaxIterations: l.MaxIterations,
		TaskID: domain.TaskName(s.Task), SessionID: s.SessionID, Result: r.Result,
	}
	var names []string
	for _, one := range failing {
		names = append(names, one.Gate)
	}
	f.Gate, f.Findings = f.Gates[0].Gate, f.Gates[0].Findings
	return gateFailedError(strings.Join(names, ", ")+": "+l.Reason, f)
}

// A taskNews tells who sent a task how it goes on.
type taskNews struct {
	*eventlog.Subscription
	conn *server.Conn
	id   string // of the task, as the caller knows it
	h    *hub.Hub
	sent domain.Session

	mu sync.Mutex // guards of
	of map[int64]bool
}

// tellOfTask begins to tell.
func (b boundary) tellOfTask(ctx context.Context, h *hub.Hub, s domain.Session, p sendTaskParams, since int64) (*taskNews, error) {
	n := &taskNews{conn: server.ConnFrom(ctx), id: cmp.Or(p.TaskID, domain.TaskName(s.Task)), h: h, sent: s, of: map[int64]bool{s.Run.ID: true}}
	kinds := []domain.EventKind{domain.EventRunState, domain.EventIteration, domain.EventGateStart, domain.EventGate}
	var err error
	n.Subscription, err = h.Events().Subscribe(ctx, eventlog.Subscribing{Kinds: kinds, Run: s.Thread.UUID, Since: since}, n.tell)
	if err == nil {
		n.Start()
	}
	return n, err
}

// isOurs reports whether a run works for the task.
func (n *taskNews) isOurs(ctx context.Context, run int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	ours, known := n.of[run]
	if !known {
		mine, has, err := n.h.Gates().Of(ctx, n.sent.Run.ID)
		its, hasToo, errToo := n.h.Gates().Of(ctx, run)
		ours = err == nil && errToo == nil && has && hasToo && mine.ID == its.ID
		n.of[run] = ours
	}
	return ours
}

type iterationNews struct {
	TaskID        string   `json:"taskId"`
	SessionID     string   `json:"session_id"`
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"max_iterations"`
	Gates         []string `json:"gates"`
}

type gateNews struct {
	TaskID        string `json:"taskId"`
	SessionID     string `json:"session_id"`
	Iteration     int    `json:"iteration"`
	MaxIterations int    `json:"max_iterations"`
	protocol.GateResult
}

type progressNews struct {
	TaskID    string `json:"taskId"`
	SessionID string `json:"session_id"`
	State     string `json:"state"`
	Gate      string `json:"gate,omitempty"`
}

type completeNews struct {
	TaskID    string `json:"taskId"`
	SessionID string `json:"session_id"`
	State     string `json:"state"`
	Gates     *gates `json:"gates,omitempty"`
}

// tell tells of an event. A connection that has broken ends that by itself.
func (n *taskNews) tell(ctx context.Context, e eventlog.Notice) error {
	if !n.isOurs(ctx, e.Run) {
		return nil
	}
	switch p := e.Payload.(type) {
	case domain.RunStateChanged:
		return n.conn.Notify(ctx, "progress", progressNews{TaskID: n.id, SessionID: e.Ref.SessionID, State: string(p.To)})
	case domain.IterationStarted:
		return n.conn.Notify(ctx, "iterationStart", iterationNews{n.id, e.Ref.SessionID, p.Iteration, p.MaxIterations, p.Gates})
	case domain.GateStarted:
		return n.conn.Notify(ctx, "progress", progressNews{TaskID: n.id, SessionID: e.Ref.SessionID, State: domain.LoopChecking, Gate: p.Gate})
	case domain.GateChecked:
		return n.conn.Notify(ctx, "gateResult", gateNews{n.id, e.Ref.SessionID, p.Iteration, p.MaxIterations, protocol.GateResultOf(p.GateResult)})
	}
	return nil
}

// tellEnd tells that the work has ended.
func (n *taskNews) tellEnd(ctx context.Context, r sendTaskResult, ended domain.Session) {
	_ = n.conn.Notify(ctx, "complete", completeNews{n.id, ended.SessionID, string(ended.State), r.Gates})
}
