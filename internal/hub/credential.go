package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/restricted"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Keys are the API keys that agents get.
func (h *Hub) Keys() *credential.Keys { return h.keys }

func (h *Hub) newKeys() *credential.Keys {
	return credential.NewKeys(credential.Options{
		Tokens: h.tokens, Runs: h.query, Events: publisher{h}, Configured: h.keysOf, Getenv: h.opts.Getenv, Logger: h.log,
		NoteAccess: func(ctx context.Context, run int64, service, outcome string) error {
			return h.write(ctx, func(t store.Tx) error { return t.NoteKeyAccess(run, service, outcome) })
		},
	})
}

// keysOf are the keys that the configuration has for a run.
func (h *Hub) keysOf(run domain.Run) map[string]config.Key {
	if !restricted.Marked(run) || h.opts.Restricted == nil {
		return h.configuredKeys()
	}
	c, err := h.opts.Restricted()
	if err != nil {
		h.log.Warn("the configuration cannot be read", "err", err)
		return nil
	}
	return c.Keys
}

// configuredKeys are the keys of the configuration as it is now.
func (h *Hub) configuredKeys() map[string]config.Key {
	if h.opts.Keys == nil {
		return nil
	}
	return h.opts.Keys()
}
