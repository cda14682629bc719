//go:build soak

package config_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// Loading a hostile file allocates no harmful multiple of its size.
func TestAHostileFileTakesLittle(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.project, text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = config.Load(w.sources())
			runtime.ReadMemStats(&after)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), "bytes")
		})
	}
}
