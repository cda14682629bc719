package demoagent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coder/acp-go-sdk"
)

// methodSteering is the extension by which a client gives the agent a message while it works.
const methodSteering = "_session/steering"

// HandleExtensionMethod takes a message while a turn runs; the turn repeats it at its next
// step.
func (a *agent) HandleExtensionMethod(_ context.Context, method string, params json.RawMessage) (any, error) {
	if method != methodSteering {
		return nil, acp.NewMethodNotFound(method)
	}
	var p struct {
		SessionID acp.SessionId      `json:"sessionId"`
		Prompt    []acp.ContentBlock `json:"prompt"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, acp.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	s, err := a.open(p.SessionID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.heeds {
		return map[string]any{"outcome": "promptRequired", "reason": "noRunningTurn"}, nil
	}
	s.meanwhile = append(s.meanwhile, promptText(p.Prompt))
	return map[string]any{"outcome": "injected"}, nil
}

// heed repeats what the human has said meanwhile.
func (t *turn) heed(ctx context.Context) error {
	t.session.mu.Lock()
	said := t.session.meanwhile
	t.session.meanwhile = nil
	t.session.mu.Unlock()
	for _, text := range said {
		if err := t.say(ctx, fmt.Sprintf("You said meanwhile: %s ", quote(text))); err != nil {
			return err
		}
	}
	return nil
}

// takesMessages notes whether the turn takes messages from now on.
func (t *turn) takesMessages(takes bool) {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.session.heeds = takes
}
