// Package wire tests what a peer of the program meets: frames, pipes, terminals, descriptors, its end.
package wire

import (
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// An object is a JSON object.
type object = map[string]any

func TestMain(m *testing.M) { e2e.Main(m) }
