package config

import (
	"context"
	"slices"
	"time"
)

// KnownKeys returns all keys of all tables.
func KnownKeys() []string {
	return slices.Concat(topKeys, limitKeys, agentKeys, serverKeys, keyKeys, ruleKeys)
}

// RunFor runs the key's command with another limit than 10 s.
func (k Key) RunFor(ctx context.Context, limit time.Duration) (string, error) {
	return k.run(ctx, limit)
}
