package history

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// Whatever is in a database, taking its history over ends, and leaves a good
// one behind.
func TestDamagedDatabases(t *testing.T) {
	content, err := os.ReadFile(full(t, "/x", 12, 2, 12))
	require.NoError(t, err)
	taken := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 0))
		bad := append([]byte(nil), content...)
		for range 1 + rng.IntN(40) {
			bad[100+rng.IntN(len(bad)-100)] = byte(rng.Uint32())
		}
		path := filepath.Join(t.TempDir(), "bad.db")
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		from, err := sqlite.OpenForeign(ctx, path)
		if err != nil {
			require.ErrorAs(t, err, new(*sqlite.OpenError), "seed %d", seed)
			continue
		}
		into := filepath.Join(t.TempDir(), "good.db")
		s, err := sqlite.Open(ctx, into, store.Options{})
		require.NoError(t, err)
		_, _ = Look(ctx, from)
		if _, err := TakeOver(ctx, from, s, Options{Root: t.TempDir()}); err == nil {
			taken++
		}
		sessions, err := s.Sessions(ctx, domain.RunFilter{})
		require.NoError(t, err, "seed %d", seed)
		for _, session := range sessions {
			assert.True(t, session.State.Ended(), "seed %d: %s", seed, session.State)
			assert.Equal(t, "default", session.Thread.Mode)
		}
		require.NoError(t, s.Close())
		require.NoError(t, from.Close())
		require.NoError(t, sqlite.Check(ctx, into), "seed %d", seed)
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, bad, now, "seed %d", seed)
	}
	t.Logf("%d of 40 were taken over", taken)
	assert.NotZero(t, taken)
}
