package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Keys are the API keys that agents get.
func (h *Hub) Keys() *credential.Keys { return h.keys }

func (h *Hub) newKeys() *credential.Keys {
	return credential.NewKeys(credential.Options{
		Tokens: h.tokens, Runs: h.query, Events: publisher{h}, Configured: h.configured.KeysOf, Getenv: h.opts.Getenv, Logger: h.log,
		NoteAccess: func(ctx context.Context, run int64, service, outcome string) error {
			return h.write(ctx, func(t store.Tx) error { return t.NoteKeyAccess(run, service, outcome) })
		},
	})
}
