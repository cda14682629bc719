package handlers

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

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
	case dialect.IsContextOverflow(s.Run):
		return sendTaskResult{}, domain.Errorf(domain.KindContextOverflow, "%s: %s", name, cmp.Or(s.Error, "the agent's model has no room for it"))
	case s.State == domain.Completed && loop != nil && loop.State == domain.LoopStopped:
		return sendTaskResult{}, domain.Errorf(domain.KindTaskCancelled, "the check of %s was ended: %s", name, loop.Reason)
	}
	return sendTaskResult{
		TaskID: name, SessionID: sent.SessionID, State: string(dialect.TaskStateOf(s.State)), Result: s.Result, Error: s.Error, ErrorCode: s.ErrorCode,
		StopReason: s.Stop, Agent: s.Agent,
	}, nil
}

// A gateFailure is the data of the error of a task whose gates still fail.
type gateFailure struct {
	Kind          string               `json:"kind"`
	Gate          string               `json:"gate"` // the first one that fails
	Findings      []dialect.Diagnostic `json:"findings"`
	Gates         []dialect.GateResult `json:"gates"` // all that fail
	Reason        string               `json:"reason"`
	Iterations    int                  `json:"iterations"`
	MaxIterations int                  `json:"max_iterations"`
	TaskID        string               `json:"taskId"`
	SessionID     string               `json:"session_id"`
	Result        string               `json:"result"`
}

func gateFailed(s domain.Session, r sendTaskResult, l domain.GateLoop) error {
	failing := l.Failing()
	f := gateFailure{
		Kind: "gate_failed", Gates: dialect.GateResultsOf(failing), Reason: l.Reason, Iterations: l.Iteration, MaxIterations: l.MaxIterations,
		TaskID: domain.TaskName(s.Task), SessionID: s.SessionID, Result: r.Result,
	}
	var names []string
	for _, one := range failing {
		names = append(names, one.Gate)
	}
	f.Gate, f.Findings = f.Gates[0].Gate, f.Gates[0].Findings
	return dialect.GateFailed(strings.Join(names, ", ")+": "+l.Reason, f)
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
	dialect.GateResult
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
		return n.conn.Notify(ctx, "gateResult", gateNews{n.id, e.Ref.SessionID, p.Iteration, p.MaxIterations, dialect.GateResultOf(p.GateResult)})
	}
	return nil
}

// tellEnd tells that the work has ended.
func (n *taskNews) tellEnd(ctx context.Context, r sendTaskResult, ended domain.Session) {
	_ = n.conn.Notify(ctx, "complete", completeNews{n.id, ended.SessionID, string(ended.State), r.Gates})
}
