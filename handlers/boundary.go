package handlers

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerBoundary registers what programs ask of people and of agents, and wait for:
// the methods of application boundaries.
func registerBoundary(reg *server.Registry, d Domain) {
	b := boundary{executor{d}}
	f := boundaryFamily
	handle(reg, d, f, "askUser", b.askUser, server.LongRunning(),
		server.Doc("Asks a human something, and waits for the answer. Cancelling the request takes the question back, and so does the end of the connection, unless keep is set."))
	handle(reg, d, f, "requestPermission", b.requestPermission, server.LongRunning(),
		server.Doc("Asks whether a tool may run, by rules and modes first and then a human, and waits for the answer; a denial is the error -32003. Its end is as that of askUser."))
	handle(reg, d, f, "sendTask", b.sendTask, server.LongRunning(),
		server.Doc("Starts a task and waits until the work on it has ended. One that somebody else ends is the error -32004, one whose gates still fail is -32002. Cancelling the request ends the task; at the end of the connection it goes on. "+
			"Notifications tell the caller meanwhile: progress {taskId, session_id, state, gate?}, whose state is one of a session or checking; with gates iterationStart {taskId, session_id, iteration, max_iterations, gates} and "+
			"gateResult {taskId, session_id, iteration, max_iterations, gate, passed, findings, duration_ms, ...}; and at last complete {taskId, session_id, state, gates?}."))
	handle(reg, d, f, "cancelTask", b.cancelTask, server.Doc("Cancels a queued task, or begins to end a running one. One that has ended is no error."))
}

type boundary struct{ executor }

// askedIn says where something is asked.
type askedIn struct {
	Thread string `json:"thread,omitempty" doc:"A session that works, by any id: the question is its own, and it waits too. Another name is that of a conversation of questions, which is made where there is none; absent: the project's."`
	CWD    string `json:"cwd,omitempty" doc:"The directory that paths and rules are read in, where the question is not a session's; absent: the project's root."`
	Keep   bool   `json:"keep,omitempty" doc:"The question stays open when the connection ends, or the hub: who asks the same again in the same thread gets the answer, for an hour. Has no effect on a question of a session."`
}

// inquiry is where something is asked, and what becomes of it without its caller.
func (p askedIn) inquiry(ctx context.Context, s approval.Spec) approval.Inquiry {
	s.Run = p.Thread
	q := approval.Inquiry{Spec: s, CWD: p.CWD}
	if p.Keep {
		conn := server.ConnFrom(ctx)
		q.Keep = func() bool {
			select {
			case <-conn.Stopping():
				return true
			default: // the caller wants no answer any more
				return false
			}
		}
	}
	return q
}

type askUserParams struct {
	Message string          `json:"message" doc:"What to ask."`
	Subject string          `json:"subject,omitempty" doc:"What it is about, in a few words."`
	Options json.RawMessage `json:"options,omitempty" doc:"Answers to choose from: strings, or {option_id,name,kind}. Absent: any words will do."`
	askedIn
}

func (p askUserParams) check() error {
	_, err := p.options()
	return first(need("message", p.Message), err)
}

// options are the answers to choose from, of which plain texts are names and ids in one.
func (p askUserParams) options() ([]domain.Option, error) {
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

type askUserResult struct {
	Response   string `json:"response" doc:"The answer in words: what was written, or the name of the option."`
	Option     string `json:"option,omitempty" doc:"The option_id of the option that was chosen."`
	ApprovalID string `json:"approval_id" doc:"The question, as getApproval has it."`
}

func (boundary) askUser(ctx context.Context, h *hub.Hub, p askUserParams) (askUserResult, error) {
	options, err := p.options()
	if err != nil {
		return askUserResult{}, err // check has looked
	}
	a, err := h.Approvals().Consult(ctx, p.inquiry(ctx, approval.Spec{Type: domain.HumanContact, Title: p.Message, Subject: p.Subject, Options: options}))
	return askUserResult{Response: a.Response, Option: a.Option, ApprovalID: a.ID}, err
}

type requestPermissionParams struct {
	ToolName  string          `json:"tool_name" doc:"The tool."`
	ToolInput json.RawMessage `json:"tool_input,omitempty" doc:"Its input."`
	ToolUseID string          `json:"tool_use_id,omitempty" doc:"The caller's own id of the tool call."`
	askedIn
}

func (p requestPermissionParams) check() error { return need("tool_name", p.ToolName) }

type requestPermissionResult struct {
	Approved     bool            `json:"approved" doc:"true"`
	Reason       string          `json:"reason,omitempty" doc:"user_approved, or the rule=… or mode=… that has answered."`
	Comment      string          `json:"comment,omitempty" doc:"What the human said with it."`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The tool is to run with this input instead."`
	ApprovalID   string          `json:"approval_id,omitempty" doc:"The question, as getApproval has it, where a human was asked."`
}

func (boundary) requestPermission(ctx context.Context, h *hub.Hub, p requestPermissionParams) (requestPermissionResult, error) {
	a, err := h.Approvals().Consult(ctx, p.inquiry(ctx, approval.Spec{Type: domain.FunctionCall, Tool: p.ToolName, Input: orAbsent(p.ToolInput), CallID: p.ToolUseID}))
	if err != nil {
		return requestPermissionResult{}, err
	}
	r := requestPermissionResult{Approved: true, Reason: a.DecidedBy, Comment: a.Comment, UpdatedInput: a.UpdatedInput}
	if a.DecidedBy == domain.DecidedByUser {
		r.Reason, r.ApprovalID = "user_approved", a.ID
	}
	return r, nil
}

type cancelTaskResult struct {
	Cancelled bool `json:"cancelled" doc:"The task was cancelled, or its end has begun. False: it has ended before."`
}

func (boundary) cancelTask(ctx context.Context, h *hub.Hub, p cancelParams) (cancelTaskResult, error) {
	_, err := h.Interrupt(ctx, p.TaskID, p.Reason)
	if hubKind(err) == domain.KindNotCancellable {
		return cancelTaskResult{}, nil
	}
	return cancelTaskResult{err == nil}, err
}
