package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/form"
)

// Content blocks to and from an agent: images, sounds, resources, and links to them.
// https://agentclientprotocol.com/protocol/content

// Types of content blocks other than text.
const (
	image     = "image"
	audio     = "audio"
	resource  = "resource"
	linkBlock = "resource_link"
)

// readBlock reads a content block that is not text. The hub validates it; ok is false for an
// unknown type.
func readBlock(raw json.RawMessage) (b catalog.ContentBlock, ok bool) {
	if json.Unmarshal(raw, &b) != nil {
		return b, false
	}
	switch b.Type {
	case image, audio, resource, linkBlock:
		return b, true
	}
	return b, false
}

// addBlock adds a tool's content that is not text to a list. known is false for an unknown type.
func addBlock(list []catalog.ContentBlock, raw json.RawMessage) (_ []catalog.ContentBlock, known bool) {
	b, ok := readBlock(raw)
	if ok {
		list = append(list, b)
	}
	return list, ok || b.Type == "text"
}

// promptCapabilities lists the content that an agent accepts in prompts beside text and links.
type promptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// ForPrompt returns the attachments of a prompt in a form that the agent accepts. A link replaces
// a resource that the agent does not accept. It fails for content that a link cannot replace.
func (c promptCapabilities) ForPrompt(agent string, list []catalog.ContentBlock) ([]catalog.ContentBlock, *task.Failure) {
	taken := make([]catalog.ContentBlock, 0, len(list))
	for _, b := range list {
		takes := false
		switch b.Type {
		case image:
			takes = c.Image
		case audio:
			takes = c.Audio
		case resource:
			takes = b.Resource != nil
			if takes && !c.EmbeddedContext {
				b = linkTo(b)
			}
			if b.Type == resource { // a resource has no name in the protocol
				b.Name = ""
			}
		case linkBlock:
			takes = true
		}
		if !takes {
			return nil, &task.Failure{Code: task.CodeContent, Message: fmt.Sprintf("%s takes no content of the type %s in prompts: it takes %s", agent, b.Type, c)}
		}
		taken = append(taken, b)
	}
	return taken, nil
}

// linkTo returns a link to a resource. The protocol requires a name for each link.
func linkTo(b catalog.ContentBlock) catalog.ContentBlock {
	name := b.Name
	if name == "" {
		name = path.Base(b.Resource.URI)
	}
	return catalog.ContentBlock{Type: linkBlock, URI: b.Resource.URI, MIMEType: b.Resource.MIMEType, Name: name}
}

// Takes converts the capabilities to the hub's type.
func (c promptCapabilities) Takes() domain.PromptTakes {
	return domain.PromptTakes{Image: c.Image, Audio: c.Audio, Resource: c.EmbeddedContext}
}

// String describes for the user what the agent accepts in prompts.
func (c promptCapabilities) String() string { return domain.PromptTakes(c.Takes()).String() }

// todos returns the plan in the input of opencode's todowrite tool, or nil. opencode reports its
// plan in no other way.
func todos(input json.RawMessage) *catalog.Plan {
	var list struct {
		Todos []domain.PlanEntry `json:"todos"`
	}
	if json.Unmarshal(input, &list) != nil || list.Todos == nil {
		return nil
	}
	return &catalog.Plan{Entries: list.Todos}
}

// A promptBlocks is the parameters of session/prompt: texts and attachments.
type promptBlocks struct {
	Session string
	Texts   []acp.Content
	With    []catalog.ContentBlock
	Meta    json.RawMessage // an object; nil: none
}

func (p promptBlocks) MarshalJSON() ([]byte, error) {
	prompt := make([]any, 0, len(p.Texts)+len(p.With))
	for _, b := range p.Texts {
		prompt = append(prompt, b)
	}
	for _, b := range p.With {
		prompt = append(prompt, b)
	}
	m := map[string]any{"sessionId": p.Session, "prompt": prompt}
	if p.Meta != nil {
		m["_meta"] = p.Meta
	}
	return json.Marshal(m)
}

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
	t := a.current.Load()
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
	a.asking.Add(1)
	defer a.asking.Add(-1)
	call := p.ToolCallID
	if call == "" { // a request without a call gets an id of its own
		call = "elicitation-" + uuid.NewString()
	}
	t.delivered(t.answers.questionAsked(call))
	defer t.answers.questionClosed(call)
	asked := a.linkOf(p)
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
		a.forgetLink(p.ID)
		t.awaitCancel(a.life, answer.Cancelled && !answer.Dismissed, a.driver.opts.CancelGrace)
		return dismissed, nil
	case err != nil: // no answer is not a refusal by the user
		a.forgetLink(p.ID)
		why := fmt.Sprintf("cannot ask the hub (%s), so Duet cancelled the agent's question: %v", p.Message, err)
		t.Problem(task.CodePermission, why)
		t.Fail(task.CodePermission, why)
		return dismissed, nil
	case !answer.Approved && answer.Reason == "timeout":
		a.forgetLink(p.ID)
		return dismissed, nil
	case !answer.Approved:
		a.forgetLink(p.ID)
		return declined, nil
	}
	accepted := acp.ElicitationResponse{Action: "accept", Content: answer.Content}
	if answer.ApprovalID != "" {
		t.answers.answered(answer.ApprovalID, call, accepted)
		if asked != nil {
			a.mu.Lock()
			asked.approval = answer.ApprovalID
			a.mu.Unlock()
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

// linkOf remembers the address that the user is asked to open. It returns nil for a form.
func (a *agent) linkOf(p acp.ElicitationRequest) *link {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.Mode != "url" || p.ID == "" || a.links[p.ID] != nil || len(a.links) >= maxLinks {
		return nil
	}
	l := &link{done: make(chan struct{})}
	a.links[p.ID] = l
	return l
}

func (a *agent) forgetLink(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.links, id)
}

// elicited handles the agent's report that the task at an address is done. An unknown id is
// ignored, as the protocol requires.
func (a *agent) elicited(params []byte) {
	var p struct {
		ID string `json:"elicitationId"`
	}
	_ = json.Unmarshal(params, &p) // on failure the id stays empty
	a.mu.Lock()
	l := a.links[p.ID]
	delete(a.links, p.ID)
	var approval string
	if l != nil {
		approval = l.approval
		close(l.done)
	}
	a.mu.Unlock()
	if t := a.current.Load(); t != nil && approval != "" {
		t.delivered(t.answers.agentActed())
		t.Event(catalog.EventElicitationDone, catalog.ElicitationDone{ApprovalID: approval})
	}
}
