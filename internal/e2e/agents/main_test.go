// Package agents tests the program with agents: scripted, hostile and real ones.
package agents

import (
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// An object is a JSON object.
type object = map[string]any

func TestMain(m *testing.M) { e2e.Main(m) }
