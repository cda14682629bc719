package config

import (
	"context"
	"time"
)

// RunFor runs the key's command with another limit than 10 s.
func (k Key) RunFor(ctx context.Context, limit time.Duration) (string, error) {
	return k.run(ctx, limit)
}
