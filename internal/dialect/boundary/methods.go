package boundary

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/dialect/aiwg"
	"github.com/duet-rpc/duet-rpc/internal/dialect/native"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// Codes of failures that have data.
const (
	codeBuildFailed = -32001
	codeGateFailed  = -32002
)

// Family has the codes of application boundaries.
var Family = protocol.Family{Name: "boundary", Codes: map[string]protocol.Code{
	domain.KindPermissionDenied: {Code: -32003, Kind: "permission_denied", Message: "Permission denied: "},
	domain.KindTaskCancelled:    {Code: -32004, Kind: "task_cancelled", Message: "Task cancelled: "},
	domain.KindPreviewLoad:      {Code: -32005, Kind: "preview_load_failed", Message: "Preview load failed: "},
	domain.KindNavigation:       {Code: -32006, Kind: "navigation_failed", Message: "Navigation failed: "},
	domain.KindMCPServer:        {Code: -32007, Kind: "mcp_server_error", Message: "MCP server error: "},
	domain.KindContextOverflow:  {Code: -32008, Kind: "context_overflow", Message: "Context overflow: "},
	domain.KindTurnNotFound:     {Code: jsonrpc2.CodeInternalError, Kind: "task_not_found", Message: "Internal error: "},
}, Params: map[string]string{"working_dir": "cwd", "session_id": "thread", "session": "thread"}, Tasks: true}

// Register registers the methods of application boundaries.
func Register(m native.Methods) {
	b := boundary{
		native: m, work: native.NewWork(m),
		interrupt: native.Call[protocol.InterruptTurnParams, protocol.InterruptTurnResult](m, "turn.interrupt"),
	}
	native.Over(m, Family, "askUser", "approval.ask", "Asks the user a question and waits for the answer. Cancelling the request withdraws "+
		"the question, and so does the end of the connection unless keep is set.",
		func(p AskUserParams) protocol.AskParams {
			return protocol.AskParams{Message: p.Message, Subject: p.Subject, Options: p.Options, AskedIn: p.native()}
		}, native.Same[protocol.Answer])
	native.Over(m, Family, "requestPermission", "approval.request", "Asks whether a tool may run, and waits for the decision. Rules and "+
		"modes decide first, then the user; a denial is the error -32003. The question is withdrawn as with askUser.",
		func(p RequestPermissionParams) protocol.RequestParams {
			return protocol.RequestParams{ToolName: p.ToolName, ToolInput: p.ToolInput, ToolUseID: p.ToolUseID, AskedIn: p.native()}
		}, native.Same[protocol.Permission])
	native.Compose(m, Family, "sendTask", "Starts a task and waits for the end of its work. If another client ends the task, the error is "+
		"-32004; if its gates still fail, -32002. Cancelling the request ends the task. The end of the connection does not. "+
		"Meanwhile the caller gets notifications: progress {taskId, session_id, state, gate?}, whose state is that of a session or checking; "+
		"with gates iterationStart {taskId, session_id, iteration, max_iterations, gates} and "+
		"gateResult {taskId, session_id, iteration, max_iterations, gate, passed, findings, duration_ms, ...}; and finally complete {taskId, "+
		"session_id, state, gates?}.",
		b.sendTask, server.LongRunning())
	native.Compose(m, Family, "cancelTask", "Cancels a queued task, or begins to stop a running one. A task that has ended is no error.",
		b.cancelTask)
	native.Compose(m, Family, "build", "Like build.run. A failed build is the error -32001.", b.build(false), server.LongRunning())
	native.Compose(m, Family, "buildBackend", "Like build.run with backend. A failed build is the error -32001.", b.build(true),
		server.LongRunning())
	registerPreview(m)
}

func registerPreview(m native.Methods) {
	at := func(p protocol.PreviewParams) protocol.PreviewParams { return p }
	native.Over(m, Family, "fetch", "preview.fetch", "Like preview.fetch. If there is nothing to show, the error is -32005; an address "+
		"outside of the preview is the error -32006.",
		at, native.Same[protocol.PreviewFile])
	native.Over(m, Family, "navigate", "preview.navigate", "Like preview.navigate. An address outside of the preview is the error -32006.", at,
		native.Same[protocol.PreviewShown])
	native.Over(m, Family, "refresh", "preview.refresh", "Like preview.refresh.", func(p protocol.Empty) protocol.Empty { return p }, native.Same[protocol.PreviewShown])
	native.Over(m, Family, "console", "preview.console", "Like preview.console.", func(p ConsoleParams) protocol.ConsoleParams {
		p.Session = cmp.Or(p.Session, protocol.Ref(p.SessionID))
		return p.ConsoleParams
	}, native.Same[protocol.PreviewKept])
	native.Over(m, Family, "error", "preview.error", "Like preview.error.", func(p PageErrorParams) protocol.PageErrorParams {
		p.Session = cmp.Or(p.Session, protocol.Ref(p.SessionID))
		return p.PageErrorParams
	}, native.Same[protocol.PreviewKept])
	native.Over(m, Family, "updateNavigationState", "preview.navigated", "Like preview.navigated.", func(p NavigationParams) protocol.NavigationParams {
		p.Session = cmp.Or(p.Session, protocol.Ref(p.SessionID))
		return p.NavigationParams
	}, native.Same[protocol.PreviewKept])
}

type boundary struct {
	native    native.Methods
	work      native.Work
	interrupt func(context.Context, protocol.InterruptTurnParams) (protocol.InterruptTurnResult, error)
}

// build returns build or buildBackend.
func (b boundary) build(backend bool) func(context.Context, BuildParams) (protocol.BuildResult, error) {
	run := native.Call[protocol.RunBuildParams, protocol.BuildResult](b.native, "build.run")
	return func(ctx context.Context, p BuildParams) (protocol.BuildResult, error) {
		r, err := run(ctx, protocol.RunBuildParams{Name: p.Name, Backend: backend})
		var wire *jsonrpc2.Error
		if errors.As(err, &wire) && wire.Data != nil && native.KindOf(err) == "" {
			var failure protocol.BuildFailure
			if json.Unmarshal(*wire.Data, &failure) == nil && failure.Kind == "build_failed" {
				return r, &jsonrpc2.Error{Code: codeBuildFailed, Message: "Build failed: " + wire.Message, Data: wire.Data}
			}
		}
		return r, err
	}
}

func (b boundary) cancelTask(ctx context.Context, p aiwg.TaskCancelParams) (CancelTaskResult, error) {
	_, err := b.interrupt(ctx, protocol.InterruptTurnParams{Turn: protocol.Ref(p.TaskID), Reason: p.Reason})
	if native.KindOf(err) == domain.KindNotCancellable {
		return CancelTaskResult{}, nil
	}
	return CancelTaskResult{Cancelled: err == nil}, err
}

func (b boundary) sendTask(ctx context.Context, p SendTaskParams) (SendTaskResult, error) {
	h, err := b.native.Hub(ctx) // for the notifications
	if err != nil {
		return SendTaskResult{}, err
	}
	since := h.Events().Last()
	s, err := b.work.Start(ctx, p.Native())
	if err != nil {
		return SendTaskResult{}, err
	}
	notices, err := reportTask(ctx, h, s, p, since)
	if err != nil {
		return SendTaskResult{}, b.work.Abandon(ctx, s, h.OrEnding(ctx, err))
	}
	defer notices.Close()
	ended, err := b.work.End(ctx, s)
	if err != nil {
		return SendTaskResult{}, err
	}
	if err := notices.CatchUp(ctx); err != nil {
		return SendTaskResult{}, h.OrEnding(ctx, err)
	}
	failed := ended.Gates != nil && ended.Gates.State == domain.LoopFailed
	r, err := sentTask(s, ended)
	if err == nil || failed {
		r.Gates = ended.Gates
	}
	notices.reportEnd(ctx, r, ended.Of)
	if failed {
		return SendTaskResult{}, gateFailed(s, r)
	}
	return r, err
}

// sentTask returns the result of a task to the client that waited for it.
func sentTask(sent domain.TurnInSession, ended protocol.Turn) (SendTaskResult, error) {
	name, s, gates := domain.TaskName(sent.Task), ended.Of, ended.Gates
	switch {
	case s.State == domain.Cancelled, s.State == domain.Interrupted, s.State == domain.Discarded:
		return SendTaskResult{}, domain.Errorf(domain.KindTaskCancelled, "%s", cmp.Or(s.Error, name+" was ended before it was done"))
	case protocol.IsContextOverflow(s.Turn):
		return SendTaskResult{}, domain.Errorf(domain.KindContextOverflow, "%s: %s", name,
			cmp.Or(s.Error, "the agent's model has no room for it"))
	case s.State == domain.Completed && gates != nil && gates.State == domain.LoopStopped:
		return SendTaskResult{}, domain.Errorf(domain.KindTaskCancelled, "the check of %s was ended: %s", name, gates.Reason)
	}
	return SendTaskResult{
		TaskID: name, SessionID: sent.HumanLayerSession, State: string(aiwg.StateOf(s.State)), Result: s.Result, Error: s.Error,
		ErrorCode:  s.ErrorCode,
		StopReason: s.Stop, Agent: s.Agent,
	}, nil
}

func gateFailed(s domain.TurnInSession, r SendTaskResult) error {
	g := r.Gates
	failing := slices.DeleteFunc(slices.Clone(g.Results), func(one protocol.GateResult) bool { return one.Passed })
	return server.NewError(codeGateFailed, "Gate failed: "+strings.Join(g.Failing, ", ")+": "+g.Reason, GateFailure{
		Kind: "gate_failed", Gate: failing[0].Gate, Findings: failing[0].Findings, Gates: failing, Reason: g.Reason, Iterations: g.Iteration,
		MaxIterations: g.MaxIterations, TaskID: domain.TaskName(s.Task), SessionID: s.HumanLayerSession, Result: r.Result,
	})
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
func reportTask(ctx context.Context, h *hub.Hub, s domain.TurnInSession, p SendTaskParams, since int64) (*taskReports, error) {
	n := &taskReports{
		conn: server.ConnFrom(ctx), id: cmp.Or(p.TaskID, domain.TaskName(s.Task)), h: h, sent: s, of: map[int64]bool{s.Turn.ID: true},
	}
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
		return n.conn.Notify(ctx, "progress", TaskProgress{TaskID: n.id, SessionID: e.Ref.HumanLayerSession, State: string(p.To)})
	case domain.IterationStarted:
		return n.conn.Notify(ctx, "iterationStart",
			TaskIteration{TaskID: n.id, SessionID: e.Ref.HumanLayerSession, Iteration: p.Iteration, MaxIterations: p.MaxIterations, Gates: p.Gates})
	case domain.GateStarted:
		return n.conn.Notify(ctx, "progress",
			TaskProgress{TaskID: n.id, SessionID: e.Ref.HumanLayerSession, State: domain.LoopChecking, Gate: p.Gate})
	case domain.GateChecked:
		return n.conn.Notify(ctx, "gateResult", TaskGateResult{
			TaskID: n.id, SessionID: e.Ref.HumanLayerSession, Iteration: p.Iteration, MaxIterations: p.MaxIterations,
			GateResult: protocol.GateResultOf(p.GateResult),
		})
	}
	return nil
}

// reportEnd reports the end of the work.
func (n *taskReports) reportEnd(ctx context.Context, r SendTaskResult, ended domain.TurnInSession) {
	_ = n.conn.Notify(ctx, "complete",
		TaskComplete{TaskID: n.id, SessionID: ended.HumanLayerSession, State: string(ended.State), Gates: r.Gates})
}
