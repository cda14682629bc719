package acp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// steering is a message in flight to a working agent, an extension of the protocol that
// _meta.steering.supported of initialize announces. The goroutine that reads the agent records
// the message when it reads the answer, so it precedes the text that reacts to it.
type steering struct {
	one sync.Mutex // locked from request to answer

	mu        sync.Mutex // guards the fields below
	supported bool       // the agent announces it
	text      string     // the message in flight, or ""
	id        string     // its request id as raw JSON; "" before it is written
}

type steerRequest struct {
	SessionID string          `json:"sessionId"`
	Prompt    []acp.Content   `json:"prompt"`
	Meta      json.RawMessage `json:"_meta"`
}

// refuseIdle makes an idle agent refuse the message instead of starting a turn.
var refuseIdle = json.RawMessage(`{"steering":{"idleBehavior":"promptRequired"}}`)

// Steer sends a message to the agent in the middle of a task's turn.
func (d *Driver) Steer(ctx context.Context, p catalog.SteerParams) catalog.SteerResult {
	refused := catalog.SteerResult{Outcome: catalog.SteerRefused}
	a := d.workingOn(p.TaskID)
	if a == nil || !a.steering.isSupported() {
		return refused
	}
	s := &a.steering
	s.one.Lock()
	defer s.one.Unlock()
	t := a.turns.now()
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
	result, err := acp.Call[steerAnswer](ctx, a.conn, acp.MethodSessionSteering, steerRequest{
		SessionID: a.session, Prompt: []acp.Content{acp.TextContent(p.Text)}, Meta: refuseIdle,
	})
	if err != nil || result.Outcome != catalog.SteerInjected {
		return refused
	}
	return catalog.SteerResult{Outcome: catalog.SteerInjected}
}

type steerAnswer struct {
	Outcome string `json:"outcome"`
}

// introduced notes what the _meta of an agent announces.
func (s *steering) introduced(meta json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.supported = string(toolinput.At(meta, "steering", "supported")) == "true"
}

func (s *steering) isSupported() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.supported
}

func (s *steering) begin(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.id = text, ""
}

// written records the id of the request that carries the message.
func (s *steering) written(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text != "" && s.id == "" && string(rawjson.Member(message, "method")) == `"`+acp.MethodSessionSteering+`"` {
		s.id = string(rawjson.Member(message, "id"))
	}
}

// answered returns the message if this is the answer that accepts it, or "".
func (s *steering) answered(id, result []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answer steerAnswer
	if s.id == "" || s.id != string(id) || json.Unmarshal(result, &answer) != nil || answer.Outcome != catalog.SteerInjected {
		return ""
	}
	return s.text
}
