// Package web tests `duet-rpc web` with the real program: what a paired device may do.
package web

import (
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// An object is a JSON object.
type object = map[string]any

func TestMain(m *testing.M) { e2e.Main(m) }
