// Package wire tests what a peer meets on the wire: frames, pipes, terminals, descriptors and the end of a process.
package wire

import (
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// An object is a JSON object.
type object = map[string]any

func TestMain(m *testing.M) { e2e.Main(m) }
