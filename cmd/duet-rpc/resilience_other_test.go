//go:build unix && !linux

package main_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// processes cannot be told.
func (s *site) processes() []string { return nil }

// readOnly makes the project's directory one that cannot be written.
func (s *site) readOnly(t testing.TB) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	require.NoError(t, os.Chmod(s.root, 0o555))
	t.Cleanup(func() { _ = os.Chmod(s.root, 0o755) })
}
