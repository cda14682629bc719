package acpagent

import (
	"context"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/wire"
	"github.com/duet-rpc/duet-rpc/server"
)

// steer sends a message to the agent in the middle of its turn, or queues it behind the turn.
// An idle session answers promptRequired: only session/prompt reports the end of a turn.
func (a *agent) steer(ctx context.Context, p schema.SteerRequest) (schema.SteerResponse, error) {
	s, err := a.find(p.SessionID)
	if err != nil {
		return schema.SteerResponse{}, err
	}
	full := readPrompt(p.Prompt)
	if strings.TrimSpace(full.text) == "" {
		return schema.SteerResponse{}, server.InvalidParam(server.ParamError{Param: "prompt", Expected: "a text, or something beside text", Received: "nothing"})
	}
	s.mu.Lock()
	isIdle := s.start != nil || s.running == "" && len(s.turns) == 0
	if !isIdle && !s.version2 { // where each message is echoed
		s.told = append(s.told, full.text)
	}
	s.mu.Unlock()
	if isIdle {
		return schema.SteerResponse{Outcome: schema.PromptRequired, Reason: "noRunningTurn"}, nil
	}
	params := map[string]any{"session_id": s.id, "query": full.text, "deliver": "steer"}
	if len(full.content) > 0 {
		params["content"] = full.content
	}
	started, err := s.started(ctx, "continueSession", params)
	if err != nil {
		s.forgetTold(full.text)
		return schema.SteerResponse{}, full.refused(err)
	}
	if started.Delivered == wire.DeliveredInjected {
		return schema.SteerResponse{Outcome: schema.Injected}, nil
	}
	s.forgetTold(full.text)
	s.mu.Lock()
	s.ours[started.SessionID] = true // the client knows its text
	s.mu.Unlock()
	return schema.SteerResponse{Outcome: schema.Queued}, nil
}

// forgetTold removes a message that this client has steered, and reports whether there was one.
func (s *session) forgetTold(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.told, text)
	if i < 0 {
		return false
	}
	s.told = slices.Delete(s.told, i, i+1)
	return true
}
