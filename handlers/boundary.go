package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/dialect/aiwg"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerBoundary registers the methods of application boundaries by which a program asks users
// and agents, and waits for the answer.
func registerBoundary(reg *server.Registry, d Domain) {
	b := boundary{executor{d}}
	f := boundaryFamily
	handle(reg, d, f, "askUser", b.askUser, server.LongRunning(),
		server.Doc("Asks the user a question and waits for the answer. Cancelling the request withdraws the question, and so does the end of the connection unless keep is set."))
	handle(reg, d, f, "requestPermission", b.requestPermission, server.LongRunning(),
		server.Doc("Asks whether a tool may run, and waits for the decision. Rules and modes decide first, then the user; a denial is the error -32003. The question is withdrawn as with askUser."))
	handle(reg, d, f, "sendTask", b.sendTask, server.LongRunning(),
		server.Doc("Starts a task and waits for the end of its work. If another client ends the task, the error is -32004; if its gates still fail, -32002. Cancelling the request ends the task. The end of the connection does not. "+
			"Meanwhile the caller gets notifications: progress {taskId, session_id, state, gate?}, whose state is that of a session or checking; with gates iterationStart {taskId, session_id, iteration, max_iterations, gates} and "+
			"gateResult {taskId, session_id, iteration, max_iterations, gate, passed, findings, duration_ms, ...}; and finally complete {taskId, session_id, state, gates?}."))
	handle(reg, d, f, "cancelTask", b.cancelTask, server.Doc("Cancels a queued task, or begins to stop a running one. A task that has ended is no error."))
}

type boundary struct{ executor }

// inquiryOf returns the conversation of a question, and what happens when its caller leaves.
func inquiryOf(p protocol.AskedIn, ctx context.Context, s approval.Spec) approval.Inquiry {
	s.Turn = p.Thread
	q := approval.Inquiry{Spec: s, CWD: p.CWD}
	if p.Keep {
		conn := server.ConnFrom(ctx)
		q.Keep = func() bool {
			select {
			case <-conn.Stopping():
				return true
			default: // the caller has cancelled the request
				return false
			}
		}
	}
	return q
}

func checkAskUser(p protocol.AskUserParams) error {
	_, err := askUserOptions(p)
	return cmp.Or(protocol.NotEmpty("message", p.Message), err)
}

// askUserOptions returns the answers to choose from. A plain text is both name and id.
func askUserOptions(p protocol.AskUserParams) ([]domain.Option, error) {
	var names []string
	if json.Unmarshal(p.Options, &names) == nil {
		list := make([]domain.Option, 0, len(names))
		for _, name := range names {
			if strings.TrimSpace(name) == "" {
				return nil, server.InvalidParam(server.ParamError{Param: "options", Expected: "texts that are not empty", Received: "an empty one"})
			}
			list = append(list, domain.Option{ID: name, Name: name})
		}
		return list, nil
	}
	list, err := protocol.ReadOptions(p.Options)
	if err != nil {
		return nil, server.InvalidParam(server.ParamError{Param: "options", Expected: "an array of texts, or of {option_id,name,kind}", Received: "something else"})
	}
	return list, nil
}

func (boundary) askUser(ctx context.Context, h *hub.Hub, p protocol.AskUserParams) (protocol.AskUserResult, error) {
	options, err := askUserOptions(p)
	if err != nil {
		return protocol.AskUserResult{}, err // checked before the call
	}
	a, err := h.Approvals().Consult(ctx, inquiryOf(p.AskedIn, ctx, approval.Spec{Type: domain.HumanContact, Title: p.Message, Subject: p.Subject, Options: options}))
	return protocol.AskUserResult{Response: a.Response, Option: a.Option, ApprovalID: a.ID}, err
}

func (boundary) requestPermission(ctx context.Context, h *hub.Hub, p protocol.RequestPermissionParams) (protocol.RequestPermissionResult, error) {
	a, err := h.Approvals().Consult(ctx, inquiryOf(p.AskedIn, ctx, approval.Spec{Type: domain.FunctionCall, Tool: p.ToolName, Input: orAbsent(p.ToolInput), CallID: p.ToolUseID}))
	if err != nil {
		return protocol.RequestPermissionResult{}, err
	}
	r := protocol.RequestPermissionResult{Approved: true, Reason: a.DecidedBy, Comment: a.Comment, UpdatedInput: a.UpdatedInput}
	if a.DecidedBy == domain.DecidedByUser {
		r.Reason, r.ApprovalID = "user_approved", a.ID
	}
	return r, nil
}

func (boundary) cancelTask(ctx context.Context, h *hub.Hub, p aiwg.TaskCancelParams) (protocol.CancelTaskResult, error) {
	_, err := h.Interrupt(ctx, p.TaskID, p.Reason)
	if hubKind(err) == domain.KindNotCancellable {
		return protocol.CancelTaskResult{}, nil
	}
	return protocol.CancelTaskResult{Cancelled: err == nil}, err
}
