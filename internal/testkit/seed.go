package testkit

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Seed returns and logs the seed of a random test: always 1, and a new one in `make soak`.
// DUET_TEST_SEED repeats a seed.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if Soak {
		seed = rand.Uint64()
	}
	if text := os.Getenv("DUET_TEST_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("DUET_TEST_SEED=%d", seed)
	return seed
}
