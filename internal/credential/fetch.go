package credential

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const (
	// askFor limits how long a person may take to provide a requested key.
	askFor = 25 * time.Second
	// comeWithin is how long after the creation of a turn a key request waits for a subscriber: a
	// client that starts a session subscribes only afterwards.
	comeWithin = 2 * time.Second
)

// GetAPIKey returns the key of a service for the agent of a session token: from the configured
// source, else from the environment variable SERVICE_API_KEY, else from a person ([Keys.Provide]).
// Each call is recorded in the database with its outcome; if that fails, no key is returned.
//
// Errors are of [domain.KindNoAPIKey] without a key, of KindInvalidToken and of KindInvalid.
func (k *Keys) GetAPIKey(ctx context.Context, p catalog.GetAPIKeyParams) (catalog.GetAPIKeyResult, error) {
	var result catalog.GetAPIKeyResult
	token, err := k.opts.Tokens.Find(p.SessionToken)
	if err != nil {
		return result, err
	}
	service := cmp.Or(p.Service, strings.ToLower(strings.TrimSuffix(p.CredentialKey, "_API_KEY")))
	if service == "" {
		return result, domain.Invalid("service", "the name of a service", "an empty string")
	}
	key, outcome := k.fetch(ctx, token.Turn, service)
	if err := k.opts.NoteAccess(ctx, token.Turn, service, outcome); err != nil {
		return result, err
	}
	if key == "" {
		return result, domain.Errorf(domain.KindNoAPIKey, "no API key for %s: %s; configure [keys.%s], or set %s", service, outcome, service,
			config.KeyVariable(service))
	}
	k.add(token.Session, strings.TrimSpace(key))
	result.APIKey = key
	return result, nil
}

// fetch returns a key, or "", and describes its source, or why none was found.
func (k *Keys) fetch(ctx context.Context, turn int64, service string) (key, outcome string) {
	of, err := k.opts.Turns.TurnOf(ctx, turn)
	if err != nil {
		return "", "failed"
	}
	if configured, ok := k.opts.Configured(of.Turn)[service]; ok {
		key, err := configured.Fetch(ctx, k.opts.Getenv(turn))
		if err == nil && key != "" {
			return key, "configured"
		}
		if err != nil {
			k.opts.Logger.Warn("a key could not be fetched", "service", service, "err", err)
		}
	} else if key := k.opts.Getenv(turn)(config.KeyVariable(service)); key != "" {
		return key, "environment"
	}
	return k.ask(ctx, of, service)
}

// ask asks subscribers for a key, and waits until one answers.
func (k *Keys) ask(ctx context.Context, of domain.TurnInSession, service string) (key, outcome string) {
	request := uuid.NewString()
	provided := make(chan string, 1)
	k.mu.Lock()
	k.requests[request] = provided
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.requests, request)
	}()
	heard, withdraw := k.opts.Events.Ask(requestEvent(of, request, service))
	defer withdraw()
	select {
	case <-heard:
	default:
		if outcome := waitForClient(ctx, heard, of.Turn.Created); outcome != "" {
			return "", outcome
		}
	}
	patience := time.NewTimer(askFor)
	defer patience.Stop()
	select {
	case key := <-provided:
		if key == "" {
			return "", "the client that was asked gave none"
		}
		return key, "given by a client"
	case <-patience.C:
		return "", "no client gave one in time"
	case <-ctx.Done():
		return "", "cancelled"
	}
}

// waitForClient waits until a subscriber has the request of a turn. It returns why none has it, or
// "".
func waitForClient(ctx context.Context, heard <-chan struct{}, created time.Time) (outcome string) {
	patience := time.NewTimer(min(comeWithin, comeWithin-time.Since(created))) // the clock may have been set back
	defer patience.Stop()
	select {
	case <-heard:
		return ""
	case <-patience.C:
		return "none is configured and no client is there to ask"
	case <-ctx.Done():
		return "cancelled"
	}
}

// requestEvent returns the event that requests a key from clients.
func requestEvent(of domain.TurnInSession, request, service string) domain.Event {
	turn := of.Turn
	return domain.Event{
		Time: time.Now(), Turn: turn.ID, Session: turn.Session, Ref: turn.Ref(),
		Payload: domain.SecretRequested{RequestID: request, Service: service, Agent: of.Agent},
	}
}

// Provide answers the key request of an event; "" refuses it. The first answer counts. If no such
// request is open, the error is of [domain.KindInvalid].
func (k *Keys) Provide(request, key string) error {
	k.mu.Lock()
	provided := k.requests[request]
	delete(k.requests, request)
	k.mu.Unlock()
	if provided == nil {
		return domain.Invalid("request_id", "the id of a request that waits", "another one")
	}
	provided <- key
	return nil
}
