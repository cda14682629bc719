// Package hub tests the daemon: its start and end, its loss, its files and what outlives it.
package hub

import (
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// An object is a JSON object.
type object = map[string]any

func TestMain(m *testing.M) { e2e.Main(m) }
