package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/form"
)

var (
	declined  = acp.ElicitationResponse{Action: "decline"}
	dismissed = acp.ElicitationResponse{Action: "cancel"}
)

// A link is an address that the user was asked to open.
type link struct {
	done     chan struct{} // closed when the agent reports completion
	approval string        // the id of the user's answer; "" before it
}

// errDone means that the agent no longer needs an answer.
var errDone = errors.New("the agent says that it is done")

// elicit asks the hub, and waits for the answer like requestPermission.
func (a *agent) elicit(ctx context.Context, p acp.ElicitationRequest) (acp.ElicitationResponse, error) {
	t := a.turns.now()
	if err := checkElicitation(p); err != nil {
		if t != nil {
			t.Problem(task.CodePermission, "the agent's question was not shown to the user, because it is not valid: "+err.Error())
		}
		return acp.ElicitationResponse{}, acp.InvalidParams(err)
	}
	if t == nil {
		return dismissed, nil
	}
	if t.Stopped() {
		t.awaitCancel(a.life, true, a.driver.opts.CancelGrace)
		return dismissed, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.Context(), func() { cancel(nil) })()
	defer a.requests.asks()()
	call := p.ToolCallID
	if call == "" { // a request without a call gets an id of its own
		call = "elicitation-" + uuid.NewString()
	}
	t.delivered(t.answers.questionAsked(call))
	defer t.answers.questionClosed(call)
	asked := a.links.add(p)
	if asked != nil {
		a.driver.work.Go(func() {
			select {
			case <-asked.done:
				cancel(errDone)
			case <-ctx.Done():
			}
		})
	}
	answer, err := a.driver.hub.RequestPermission(ctx, catalog.RequestPermissionParams{
		SessionToken: t.Params.SessionToken, TaskID: t.ID, ToolUseID: p.ToolCallID, Title: p.Message, IsQuestion: true,
		Elicitation: &catalog.Elicitation{Mode: p.Mode, Schema: p.Schema, URL: p.URL, ID: p.ID},
	})
	switch {
	case errors.Is(context.Cause(ctx), errDone):
		return acp.ElicitationResponse{Action: "accept"}, nil
	case ctx.Err() != nil, err == nil && answer.Cancelled:
		a.links.forget(p.ID)
		t.awaitCancel(a.life, answer.Cancelled && !answer.Dismissed, a.driver.opts.CancelGrace)
		return dismissed, nil
	case err != nil: // no answer is not a refusal by the user
		a.links.forget(p.ID)
		why := fmt.Sprintf("cannot ask the hub (%s), so Duet cancelled the agent's question: %v", p.Message, err)
		t.Problem(task.CodePermission, why)
		t.Fail(task.CodePermission, why)
		return dismissed, nil
	case !answer.Approved && answer.Reason == "timeout":
		a.links.forget(p.ID)
		return dismissed, nil
	case !answer.Approved:
		a.links.forget(p.ID)
		return declined, nil
	}
	accepted := acp.ElicitationResponse{Action: "accept", Content: answer.Content}
	if answer.ApprovalID != "" {
		t.answers.answered(answer.ApprovalID, call, accepted)
		if asked != nil {
			a.links.answered(asked, answer.ApprovalID)
		}
	}
	return accepted, nil
}

// checkElicitation returns an error for a request that cannot be shown to a user.
func checkElicitation(p acp.ElicitationRequest) error {
	switch p.Mode {
	case "form":
		_, err := form.Read(p.Schema)
		return err
	case "url":
		if p.URL == "" {
			return errors.New("there is no address to open")
		}
		return nil
	}
	return fmt.Errorf("there is no mode %q, only form and url", p.Mode)
}

// maxLinks limits the remembered addresses of an agent.
const maxLinks = 1000

// links are the addresses that the user was asked to open, by the agent's ids. The zero value has none.
type links struct {
	mu   sync.Mutex // guards byID, and the approval of each link
	byID map[string]*link
}

// add remembers the address that the user is asked to open. It returns nil for a form.
func (l *links) add(p acp.ElicitationRequest) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Mode != "url" || p.ID == "" || l.byID[p.ID] != nil || len(l.byID) >= maxLinks {
		return nil
	}
	if l.byID == nil {
		l.byID = make(map[string]*link)
	}
	one := &link{done: make(chan struct{})}
	l.byID[p.ID] = one
	return one
}

func (l *links) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, id)
}

// answered notes the user's answer.
func (l *links) answered(one *link, approval string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.approval = approval
}

// finish ends the wait for an address, and returns the id of the user's answer, or "". An unknown id is
// ignored, as the protocol requires.
func (l *links) finish(id string) (approval string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.byID[id]
	if one == nil {
		return ""
	}
	delete(l.byID, id)
	close(one.done)
	return one.approval
}

// elicited handles the agent's report that the task at an address is done.
func (a *agent) elicited(params []byte) {
	var p struct {
		ID string `json:"elicitationId"`
	}
	_ = json.Unmarshal(params, &p) // on failure the id stays empty
	approval := a.links.finish(p.ID)
	if t := a.turns.now(); t != nil && approval != "" {
		t.delivered(t.answers.agentActed())
		t.Event(catalog.EventElicitationDone, catalog.ElicitationDone{ApprovalID: approval})
	}
}
