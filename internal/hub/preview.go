package hub

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/preview"
)

// Preview shows the pages that the project makes, and keeps what they say.
func (h *Hub) Preview() *preview.Preview { return h.preview }

func (h *Hub) newPreview() *preview.Preview {
	return preview.New(preview.Options{
		Root: h.opts.Root, Store: h.store, Write: h.write, Scope: h.query.Scope,
		Configured: func(ctx context.Context) (config.Preview, error) {
			if h.opts.Preview == nil {
				return config.Preview{}, nil
			}
			return h.opts.Preview(clientenv.IsRestricted(ctx))
		},
		Run: func(ctx context.Context, id string) (domain.Session, error) {
			if id != "" {
				return h.query.Session(ctx, id)
			}
			s, err := h.query.Session(ctx, domain.LastRun)
			var e *domain.Error
			if errors.As(err, &e) && e.Kind == domain.KindRunNotFound { // nothing was asked of an agent yet
				return domain.Session{}, nil
			}
			return s, err
		},
		WithoutKeys: func(thread int64, text string) string { return h.keys.Of(thread).Text(text) },
	})
}
