package hub

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// secretPatience is how long a human has to give a key that was asked for.
const secretPatience = 25 * time.Second

// GetAPIKey fetches the key of a service, from where the configuration says
// or from a human. Each access is noted in the audit log; the key is kept in
// memory alone, to be taken out of what the agent says and does.
func (h *Hub) GetAPIKey(ctx context.Context, p catalog.GetAPIKeyParams) (catalog.GetAPIKeyResult, error) {
	token, err := h.token(p.SessionToken)
	if err != nil {
		return catalog.GetAPIKeyResult{}, err
	}
	service := p.Service
	if service == "" {
		service = strings.ToLower(strings.TrimSuffix(p.CredentialKey, "_API_KEY"))
	}
	if service == "" {
		return catalog.GetAPIKeyResult{}, domain.Invalid("service", "the name of a service", "an empty string")
	}
	key, outcome := h.fetchKey(ctx, token.Run, service)
	if err := h.write(ctx, func(t store.Tx) error { return t.NoteKeyAccess(token.Run, service, outcome) }); err != nil {
		return catalog.GetAPIKeyResult{}, err
	}
	if key == "" {
		return catalog.GetAPIKeyResult{}, domain.Errorf(domain.KindNoAPIKey, "no API key for %s: %s; configure [keys.%s], or set %s_API_KEY", service, outcome, service, strings.ToUpper(service))
	}
	h.keys.add(token.Thread, strings.TrimSpace(key))
	return catalog.GetAPIKeyResult{APIKey: key}, nil
}

// withoutSecrets is a question without the keys that the agent was given.
func (h *Hub) withoutSecrets(p catalog.RequestPermissionParams, thread int64) catalog.RequestPermissionParams {
	s := h.keys.Of(thread)
	if s.None() {
		return p
	}
	p.ToolInput, p.ToolParams, p.Title = s.JSON(p.ToolInput), s.JSON(p.ToolParams), s.Piece(p.Title)
	p.Diffs = slices.Clone(p.Diffs)
	for i, d := range p.Diffs {
		if d.OldText != nil {
			old := s.Text(*d.OldText)
			d.OldText = &old
		}
		d.NewText = s.Text(d.NewText)
		p.Diffs[i] = d
	}
	return p
}

// fetchKey returns a key, or "" and why there is none.
func (h *Hub) fetchKey(ctx context.Context, run int64, service string) (key, outcome string) {
	session, err := h.SessionOf(ctx, run)
	if err != nil {
		return "", "failed"
	}
	if k, ok := h.keysOf(session.Run)[service]; ok {
		key, err := k.Fetch(ctx, h.opts.Getenv)
		if err == nil && key != "" {
			return key, "configured"
		}
		if err != nil {
			h.log.Warn("a key could not be fetched", "service", service, "err", err)
		}
	} else if key := h.opts.Getenv(strings.ToUpper(service) + "_API_KEY"); key != "" {
		return key, "environment"
	}
	request := uuid.NewString()
	given := make(chan string, 1)
	h.mu.Lock()
	h.secrets[request] = given
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.secrets, request)
		h.mu.Unlock()
	}()
	if h.events.Publish(eventOf(session.Run, domain.SecretRequested{RequestID: request, Service: service, Agent: session.Agent})) == 0 {
		return "", "none is configured and no client is there to ask"
	}
	select {
	case key := <-given:
		if key == "" {
			return "", "the client that was asked gave none"
		}
		return key, "given by a client"
	case <-time.After(secretPatience):
		return "", "nobody gave one in time"
	case <-ctx.Done():
		return "", "cancelled"
	}
}

// ProvideSecret gives a key that was asked for: the one of a request, or of
// all that ask for a service. "" refuses.
func (h *Hub) ProvideSecret(_ context.Context, request, _, secret string) error {
	h.mu.Lock()
	given := h.secrets[request]
	delete(h.secrets, request)
	h.mu.Unlock()
	if given == nil {
		return domain.Invalid("request_id", "the id of a request that waits", "another one")
	}
	given <- secret
	return nil
}
