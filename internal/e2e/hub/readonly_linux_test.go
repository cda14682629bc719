package hub

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// readOnly makes a directory unwritable, also for root.
func readOnly(t testing.TB, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		require.NoError(t, os.Chmod(dir, 0o555))
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
		return
	}
	err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, "mode=0755,size=64k")
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("root may write everywhere and can mount nothing here")
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}
