package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/dialect/aiwg"
	dboundary "github.com/duet-rpc/duet-rpc/internal/dialect/boundary"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerTasks registers task.* and chat.send (AIWG). A connection that calls one of them gets the
// broadcasts event.task… from then on.
func registerTasks(reg *server.Registry, d Domain) *broadcasts {
	t := &tasks{Domain: d, broadcasts: newBroadcasts(d.Logger)}
	handle(reg, d, taskFamily, "task.submit", joined(t, t.submit), server.Releasing(), // it may make a worktree
		server.Doc("Starts a task, or queues it if no slot is free. The notifications event.task… report its progress."))
	handle(reg, d, taskFamily, "task.cancel", joined(t, t.cancel),
		server.Doc("Cancels a queued task, or begins to stop a running one."))
	handle(reg, d, taskFamily, "task.list", joined(t, t.list),
		server.Doc("Lists tasks, the newest first."))
	handle(reg, d, taskFamily, "task.get", joined(t, t.get),
		server.Doc("Returns a task with its output so far."))
	handle(reg, d, taskFamily, "task.stats", t.stats,
		server.Doc("Counts tasks by state. With since, a client that lost the hub also gets the notifications that it missed."))
	handle(reg, d, nativeFamily, "usage.get", t.usage,
		server.Doc("Returns the tokens, cost and time that turns used, as their agents report them."))
	handle(reg, d, chatFamily, "chat.send", joined(t, t.chat),
		server.Doc("Sends a message to the project's chat, a conversation that continues from task to task. It uses the default agent. If the default agent has changed, the chat continues in a new conversation, and the new agent gets the transcript."))
	return t.broadcasts
}

type tasks struct {
	Domain
	broadcasts *broadcasts
}

// joined wraps a handler so that its caller gets broadcasts.
func joined[P, R any](t *tasks, h func(context.Context, *hub.Hub, P) (R, error)) func(context.Context, *hub.Hub, P) (R, error) {
	return func(ctx context.Context, hb *hub.Hub, p P) (R, error) {
		t.broadcasts.watch(hb)
		t.broadcasts.join(ctx, hb, nil)
		return h(ctx, hb, p)
	}
}

func checkSubmit(p aiwg.SubmitTaskParams) error {
	return cmp.Or(protocol.NotEmpty("prompt", p.Prompt), checkContent(p.PromptContent), p.Budget.Check())
}

func (t *tasks) submit(ctx context.Context, h *hub.Hub, p aiwg.SubmitTaskParams) (aiwg.SubmitTaskResult, error) {
	prompt, _ := promptWith(p.PromptContent, p.Prompt) // checked before
	spec := hub.LaunchSpec{Prompt: prompt.text, Content: prompt.content, Title: p.Title, Agent: p.Agent, CWD: p.CWD, Source: domain.SourceTask, Gates: gateSpec(p.Gated)}
	spec.Priority = protocol.Value(p.Priority)
	spec.Waiting = func() { server.Release(ctx) }
	if p.Budget != nil {
		spec.Settings.Budget = budgetOf(*p.Budget)
	}
	s, err := h.Launch(ctx, spec)
	return submitted(s), err
}

func submitted(s domain.TurnInSession) aiwg.SubmitTaskResult {
	return aiwg.SubmitTaskResult{TaskID: domain.TaskName(s.Task), State: aiwg.SubmittedStateOf(s.State), Agent: s.Agent, SessionID: s.HumanLayerSession}
}

// chatPriority is the priority of chat messages (AIWG): a user waits for the answer.
const chatPriority = 5

func (t *tasks) chat(ctx context.Context, h *hub.Hub, p aiwg.ChatParams) (aiwg.SubmitTaskResult, error) {
	priority := chatPriority
	if p.Priority != nil {
		priority = *p.Priority
	}
	s, err := h.Chat(ctx, p.Message, priority)
	return submitted(s), err
}

func (t *tasks) cancel(ctx context.Context, h *hub.Hub, p aiwg.TaskCancelParams) (aiwg.TaskCancelResult, error) {
	_, err := h.Interrupt(ctx, p.TaskID, p.Reason)
	return aiwg.TaskCancelResult{Cancelled: err == nil}, err
}

const (
	tasksByDefault = 20
	tasksAtMost    = 1000
)

func (t *tasks) list(ctx context.Context, h *hub.Hub, p aiwg.ListTasksParams) ([]*aiwg.Task, error) {
	before, err := beforeRow(ctx, h, p.Before)
	if err != nil {
		return nil, err
	}
	turns, err := h.Query().Turns(ctx, domain.TurnFilter{
		States: p.State.States(), Agent: p.Agent, Before: before,
		Limit: pageSize(p.Limit, tasksByDefault, tasksAtMost),
	})
	if err != nil {
		return nil, err
	}
	list := make([]*aiwg.Task, 0, len(turns))
	gates, err := allGates(ctx, h, turns)
	if err != nil {
		return nil, err
	}
	for _, s := range turns {
		one := taskOf(s, s.Result)
		one.Gates = gates[s.Turn.ID]
		list = append(list, one)
	}
	return fit(list, room(ctx)), nil
}

func (t *tasks) get(ctx context.Context, h *hub.Hub, p aiwg.TaskParams) (aiwg.Task, error) {
	s, err := h.Query().Turn(ctx, p.TaskID)
	if err != nil {
		return aiwg.Task{}, err
	}
	output, err := h.Query().Output(ctx, s)
	if err != nil {
		return aiwg.Task{}, err
	}
	one := []*aiwg.Task{taskOf(s, output)}
	if one[0].Gates, err = gatesOf(ctx, h, s); err != nil {
		return aiwg.Task{}, err
	}
	fit(one, room(ctx))
	return *one[0], nil
}

func (t *tasks) stats(ctx context.Context, h *hub.Hub, p aiwg.TaskStatsParams) (aiwg.TaskStats, error) {
	t.broadcasts.watch(h)
	t.broadcasts.join(ctx, h, p.Since)
	counts, err := h.Query().Counts(ctx)
	return statsOf(counts), err
}

func statsOf(counts domain.Counts) (s aiwg.TaskStats) {
	in := map[string]*int{
		"running": &s.Running, "queued": &s.Queued, "completed": &s.Completed, "failed": &s.Failed, "cancelled": &s.Cancelled,
	}
	for state, n := range counts {
		if field := in[aiwg.StateOf(state)]; field != nil {
			*field += n
			s.Total += n
		}
	}
	return s
}

func taskAtMost(t *aiwg.Task) int {
	return 4096 + textAtMost(t.Texts()...) + textAtMost(&t.CWD, &t.Title) + len(t.Metadata) + authMethodsAtMost(t.AuthMethods) + gatesAtMost(t.Gates)
}

// authMethodsAtMost returns an upper limit for the length of methods as JSON, in bytes.
func authMethodsAtMost(methods []domain.AuthMethod) (total int) {
	for _, m := range methods {
		total += 100 + textAtMost(&m.ID, &m.Name, &m.Description, &m.Type)
	}
	return total
}

func taskOf(s domain.TurnInSession, output string) *aiwg.Task {
	t := &aiwg.Task{
		ID: domain.TaskName(s.Task), Prompt: s.Prompt, Agent: orNil(s.Agent), Priority: s.Priority, State: aiwg.StateOf(s.State),
		CreatedAt: protocol.Timestamp(s.Created), StartedAt: protocol.TimestampOrNull(s.Started), CompletedAt: protocol.TimestampOrNull(s.Ended),
		Error: orNil(protocol.ErrorText(s.Turn)), Output: output, Metadata: metadataOf(s.Turn),
		SessionID: s.HumanLayerSession, RunID: s.HumanLayerRun, ThreadID: s.Session.UUID, CWD: s.Session.CWD, Title: titleOf(s), Summary: headline(summaryOf(s.Turn), summaryShown),
		ErrorCode: s.ErrorCode, Status: protocol.StatusOf(s.State), AuthMethods: s.SignIn,
	}
	if s.State == domain.Completed {
		t.Result = &s.Result
	}
	return t
}

// titleOf returns the turn's title, else its conversation's.
func titleOf(s domain.TurnInSession) string {
	return cmp.Or(s.Title, s.Session.Title)
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

func (b boundary) sendTask(ctx context.Context, h *hub.Hub, p dboundary.SendTaskParams) (dboundary.SendTaskResult, error) {
	since := h.Events().Last()
	// A request that is cancelled now must not leave an unknown run behind.
	s, err := h.Launch(context.WithoutCancel(ctx), hub.LaunchSpec{
		Prompt: cmp.Or(strings.TrimSpace(p.Prompt), p.Task), Agent: p.Agent, CWD: p.CWD, Title: p.Title, Priority: p.Priority, Source: domain.SourceTask,
		SessionAlias: p.Thread, CallerID: p.TaskID, Gates: gateSpec(p.Gated),
	})
	if err != nil {
		return dboundary.SendTaskResult{}, err
	}
	notices, err := b.reportTask(ctx, h, s, p, since)
	if err != nil {
		return dboundary.SendTaskResult{}, b.abandon(ctx, h, s, err)
	}
	defer notices.Close()
	ended, loop, err := endOfWork(ctx, h, s)
	if err != nil {
		return dboundary.SendTaskResult{}, b.abandon(ctx, h, s, err)
	}
	if err := notices.CatchUp(ctx); err != nil {
		return dboundary.SendTaskResult{}, err
	}
	r, err := sentTask(s, ended, loop)
	if err == nil || loop != nil && loop.State == domain.LoopFailed {
		r.Gates, _ = gatesOf(ctx, h, s) // the session was just read
	}
	notices.reportEnd(ctx, r, ended)
	if loop != nil && loop.State == domain.LoopFailed {
		return dboundary.SendTaskResult{}, gateFailed(s, r, *loop)
	}
	return r, err
}

// endOfWork waits until the work on a task has ended. It returns the last session, and the state of
// the gates or nil.
func endOfWork(ctx context.Context, h *hub.Hub, s domain.TurnInSession) (ended domain.TurnInSession, loop *domain.GateLoop, err error) {
	l, has, err := h.Gates().Await(ctx, s.Turn.ID)
	if err != nil {
		return s, nil, err
	}
	if !has {
		ended, err = h.Await(ctx, s.HumanLayerSession)
		return ended, nil, err
	}
	ended, err = h.Query().ByTurn(ctx, l.Turn)
	return ended, &l, err
}

// sentTask returns the result of a task to the client that waited for it.
func sentTask(sent, s domain.TurnInSession, loop *domain.GateLoop) (dboundary.SendTaskResult, error) {
	name := domain.TaskName(sent.Task)
	switch {
	case s.State == domain.Cancelled, s.State == domain.Interrupted, s.State == domain.Discarded:
		return dboundary.SendTaskResult{}, domain.Errorf(domain.KindTaskCancelled, "%s", cmp.Or(s.Error, name+" was ended before it was done"))
	case protocol.IsContextOverflow(s.Turn):
		return dboundary.SendTaskResult{}, domain.Errorf(domain.KindContextOverflow, "%s: %s", name, cmp.Or(s.Error, "the agent's model has no room for it"))
	case s.State == domain.Completed && loop != nil && loop.State == domain.LoopStopped:
		return dboundary.SendTaskResult{}, domain.Errorf(domain.KindTaskCancelled, "the check of %s was ended: %s", name, loop.Reason)
	}
	return dboundary.SendTaskResult{
		TaskID: name, SessionID: sent.HumanLayerSession, State: string(aiwg.StateOf(s.State)), Result: s.Result, Error: s.Error, ErrorCode: s.ErrorCode,
		StopReason: s.Stop, Agent: s.Agent,
	}, nil
}

func gateFailed(s domain.TurnInSession, r dboundary.SendTaskResult, l domain.GateLoop) error {
	failing := l.Failing()
	f := dboundary.GateFailure{
		Kind: "gate_failed", Gates: protocol.GateResultsOf(failing), Reason: l.Reason, Iterations: l.Iteration, MaxIterations: l.MaxIterations,
		TaskID: domain.TaskName(s.Task), SessionID: s.HumanLayerSession, Result: r.Result,
	}
	var names []string
	for _, one := range failing {
		names = append(names, one.Gate)
	}
	f.Gate, f.Findings = f.Gates[0].Gate, f.Gates[0].Findings
	return server.NewError(codeGateFailed, "Gate failed: "+strings.Join(names, ", ")+": "+l.Reason, f)
}

// A taskReports reports the progress of a task to the client that sent it.
type taskReports struct {
	*eventlog.Subscription
	conn *server.Conn
	id   string // of the task, as the caller knows it
	h    *hub.Hub
	sent domain.TurnInSession

	mu sync.Mutex // guards of
	of map[int64]bool
}

// reportTask starts the reports.
func (b boundary) reportTask(ctx context.Context, h *hub.Hub, s domain.TurnInSession, p dboundary.SendTaskParams, since int64) (*taskReports, error) {
	n := &taskReports{conn: server.ConnFrom(ctx), id: cmp.Or(p.TaskID, domain.TaskName(s.Task)), h: h, sent: s, of: map[int64]bool{s.Turn.ID: true}}
	kinds := []domain.EventKind{domain.EventTurnState, domain.EventIteration, domain.EventGateStart, domain.EventGate}
	var err error
	n.Subscription, err = h.Events().Subscribe(ctx, eventlog.Subscribing{Kinds: kinds, Turn: s.Session.UUID, Since: since}, n.report)
	if err == nil {
		n.Start()
	}
	return n, err
}

// isOurs reports whether a turn works for the task.
func (n *taskReports) isOurs(ctx context.Context, turn int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	ours, known := n.of[turn]
	if !known {
		mine, has, err := n.h.Gates().Of(ctx, n.sent.Turn.ID)
		its, hasToo, errToo := n.h.Gates().Of(ctx, turn)
		ours = err == nil && errToo == nil && has && hasToo && mine.ID == its.ID
		n.of[turn] = ours
	}
	return ours
}

// report sends an event to the client. The end of the connection ends the subscription.
func (n *taskReports) report(ctx context.Context, e eventlog.Notice) error {
	if !n.isOurs(ctx, e.Turn) {
		return nil
	}
	switch p := e.Payload.(type) {
	case domain.TurnStateChanged:
		return n.conn.Notify(ctx, "progress", dboundary.TaskProgress{TaskID: n.id, SessionID: e.Ref.HumanLayerSession, State: string(p.To)})
	case domain.IterationStarted:
		return n.conn.Notify(ctx, "iterationStart", dboundary.TaskIteration{TaskID: n.id, SessionID: e.Ref.HumanLayerSession, Iteration: p.Iteration, MaxIterations: p.MaxIterations, Gates: p.Gates})
	case domain.GateStarted:
		return n.conn.Notify(ctx, "progress", dboundary.TaskProgress{TaskID: n.id, SessionID: e.Ref.HumanLayerSession, State: domain.LoopChecking, Gate: p.Gate})
	case domain.GateChecked:
		return n.conn.Notify(ctx, "gateResult", dboundary.TaskGateResult{TaskID: n.id, SessionID: e.Ref.HumanLayerSession, Iteration: p.Iteration, MaxIterations: p.MaxIterations, GateResult: protocol.GateResultOf(p.GateResult)})
	}
	return nil
}

// reportEnd reports the end of the work.
func (n *taskReports) reportEnd(ctx context.Context, r dboundary.SendTaskResult, ended domain.TurnInSession) {
	_ = n.conn.Notify(ctx, "complete", dboundary.TaskComplete{TaskID: n.id, SessionID: ended.HumanLayerSession, State: string(ended.State), Gates: r.Gates})
}

func budgetOf(b protocol.RunBudget) domain.Budget {
	return domain.Budget{
		Turns: int(b.Turns), Time: milliseconds(b.TimeMS), Tokens: int64(b.Tokens), CostUSD: b.CostUSD, Repeats: int(b.Repeats),
	}
}

func usageOf(u domain.Usage) protocol.Usage {
	return protocol.Usage{Turns: u.Turns, InputTokens: u.Tokens.Input, OutputTokens: u.Tokens.Output, CacheReadTokens: u.Tokens.CacheRead, CacheWriteTokens: u.Tokens.CacheWrite, CostUSD: u.Tokens.CostUSD, TimeMS: u.Time.Milliseconds()}
}

// timeOrNone reads a time or a date.
func timeOrNone(param, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	return time.Time{}, server.InvalidParam(server.ParamError{Param: param, Expected: "a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31", Received: "another text"})
}

func checkUsage(p protocol.UsageParams) error {
	_, err := timeOrNone("since", p.Since)
	_, errUntil := timeOrNone("until", p.Until)
	switch domain.UsageBy(p.By) {
	case "", domain.UsageByDay, domain.UsageByAgent, domain.UsageBySession, domain.UsageByModel:
		return cmp.Or(err, errUntil)
	}
	return server.InvalidParam(server.ParamError{Param: "by", Expected: "what to group it by", Received: "another text", Accepted: []string{"day", "agent", "session", "model"}})
}

func (t *tasks) usage(ctx context.Context, h *hub.Hub, p protocol.UsageParams) (r protocol.UsageResult, err error) {
	var f domain.UsageFilter
	f.Since, _ = timeOrNone("since", p.Since) // checked before
	f.Til, _ = timeOrNone("until", p.Until)
	if p.Session != "" {
		s, err := h.Query().Turn(ctx, string(p.Session))
		if err != nil {
			return r, err
		}
		f.Session = s.Session.ID
	}
	total, rows, err := h.Query().Usage(ctx, f, domain.UsageBy(p.By), t.Now())
	r.Total = usageOf(total)
	for _, row := range rows {
		if p.By == string(domain.UsageBySession) && row.Title == "" {
			if s, err := h.Query().Turn(ctx, row.Key); err == nil { // else it was deleted meanwhile
				row.Title = headline(domain.RequestOf(s.FirstWords), summaryShown)
			}
		}
		r.Rows = append(r.Rows, protocol.UsageRow{Key: row.Key, Title: row.Title, Usage: usageOf(row.Usage)})
	}
	return r, err
}
