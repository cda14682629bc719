//go:build unix && !linux

package hub

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// readOnly makes a directory unwritable.
func readOnly(t testing.TB, dir string) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	require.NoError(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
}
