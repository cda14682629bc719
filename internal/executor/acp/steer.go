package acp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// methodSteering is an extension of the protocol, by which claude-agent-acp and codex-acp take
// a message while they work. They say so in the _meta of their answer to initialize.
const methodSteering = "_session/steering"

// steering is a message that an agent is given while it works. The agent's answer is read in
// the order of what it prints, so that the message stands in front of what comes of it.
type steering struct {
	one sync.Mutex // held for one message at a time

	mu   sync.Mutex // guards the fields below
	text string     // of the message that is being sent; "": none is
	id   string     // of its request, as it is written; "": it is not yet
}

type steerRequest struct {
	SessionID acp.SessionId      `json:"sessionId"`
	Prompt    []acp.ContentBlock `json:"prompt"`
	Meta      json.RawMessage    `json:"_meta"`
}

// refuseIdle has an agent that does not work any more begin no turn.
var refuseIdle = json.RawMessage(`{"steering":{"idleBehavior":"promptRequired"}}`)

// Steer gives the agent of a task a message while it works on that.
func (d *Driver) Steer(ctx context.Context, p catalog.SteerParams) catalog.SteerResult {
	refused := catalog.SteerResult{Outcome: catalog.SteerRefused}
	a := d.workingOn(p.TaskID)
	if a == nil || string(toolinput.At(a.info.Meta, "steering", "supported")) != "true" {
		return refused
	}
	s := &a.steering
	s.one.Lock()
	defer s.one.Unlock()
	t := a.current.Load()
	if t == nil || t.ID != p.TaskID {
		return refused
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.StartTimeout)
	defer cancel()
	select {
	case <-t.prompted:
	case <-t.Context().Done():
	case <-a.life.Done():
	case <-ctx.Done():
	}
	if t.Stopped() || !t.hasPrompt() {
		return refused
	}
	s.begin(p.Text)
	defer s.begin("")
	defer a.responses.Took()
	result, err := acp.SendRequest[steerAnswer](a.conn, ctx, methodSteering, steerRequest{
		SessionID: a.session, Prompt: []acp.ContentBlock{acp.TextBlock(p.Text)}, Meta: refuseIdle,
	})
	if err != nil || result.Outcome != catalog.SteerInjected {
		return refused
	}
	return catalog.SteerResult{Outcome: catalog.SteerInjected}
}

type steerAnswer struct {
	Outcome string `json:"outcome"`
}

// workingOn is the agent whose turn a task is, or nil.
func (d *Driver) workingOn(task string) *agent {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conversations {
		if a := c.working.Load(); a != nil {
			if t := a.current.Load(); t != nil && t.ID == task {
				return a
			}
		}
	}
	return nil
}

func (s *steering) begin(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.id = text, ""
}

// written notes the request of a message that is being sent.
func (s *steering) written(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text != "" && s.id == "" && string(frame.Member(message, "method")) == `"`+methodSteering+`"` {
		s.id = string(frame.Member(message, "id"))
	}
}

// answered is the message that the agent has taken with this answer, or "".
func (s *steering) answered(id, result []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answer steerAnswer
	if s.id == "" || s.id != string(id) || json.Unmarshal(result, &answer) != nil || answer.Outcome != catalog.SteerInjected {
		return ""
	}
	return s.text
}
