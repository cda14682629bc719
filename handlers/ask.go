package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerAsking registers the methods by which a program asks the user, and waits for the answer.
func registerAsking(reg *server.Registry, d Domain) {
	handle(reg, d, nativeFamily, "approval.ask", ask, server.LongRunning(),
		server.Doc("Asks the user a question and waits for the answer. Cancelling the request withdraws the question, and so does the end of "+
			"the connection unless keep is set."))
	handle(reg, d, nativeFamily, "approval.request", request, server.LongRunning(),
		server.Doc("Asks whether a tool may run, and waits for the decision. Rules and modes decide first, then the user; a denial is the "+
			"error `permission_denied`. The question is withdrawn as with approval.ask."))
}

// consult asks a question and waits for the answer.
func consult(ctx context.Context, h *hub.Hub, in protocol.AskedIn, s approval.Spec) (domain.Approval, error) {
	s.Turn = in.Session
	if _, _, number := domain.ParseNumber(in.Session); number && !in.Named {
		of, err := h.Query().Turn(ctx, in.Session)
		if err != nil {
			return domain.Approval{}, err
		}
		s.Turn = of.HumanLayerSession
	}
	q := approval.Inquiry{Spec: s, CWD: in.WorkingDir}
	if in.Keep {
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
	return h.Approvals().Consult(ctx, q)
}

func checkAsk(p protocol.AskParams) error {
	_, err := askOptions(p)
	return cmp.Or(protocol.NotEmpty("message", p.Message), err)
}

// askOptions returns the answers to choose from. A plain text is both name and id.
func askOptions(p protocol.AskParams) ([]domain.Option, error) {
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
		return nil, server.InvalidParam(server.ParamError{
			Param: "options", Expected: "an array of texts, or of {option_id,name,kind}", Received: "something else",
		})
	}
	return list, nil
}

func ask(ctx context.Context, h *hub.Hub, p protocol.AskParams) (protocol.Answer, error) {
	options, err := askOptions(p)
	if err != nil {
		return protocol.Answer{}, err // checked before the call
	}
	a, err := consult(ctx, h, p.AskedIn, approval.Spec{Type: domain.HumanContact, Title: p.Message, Subject: p.Subject, Options: options})
	return protocol.Answer{Response: a.Response, Option: a.Option, ApprovalID: a.ID}, err
}

func request(ctx context.Context, h *hub.Hub, p protocol.RequestParams) (protocol.Permission, error) {
	a, err := consult(ctx, h, p.AskedIn, approval.Spec{
		Type: domain.FunctionCall, Tool: p.ToolName, Input: protocol.OrAbsent(p.ToolInput), CallID: p.ToolUseID,
	})
	if err != nil {
		return protocol.Permission{}, err
	}
	r := protocol.Permission{Approved: true, Reason: a.DecidedBy, Comment: a.Comment, UpdatedInput: a.UpdatedInput}
	if a.DecidedBy == domain.DecidedByUser {
		r.Reason, r.ApprovalID = "user_approved", a.ID
	}
	return r, nil
}
