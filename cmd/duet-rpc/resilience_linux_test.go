package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/procenv"
)

// A running is a process of a site.
type running struct {
	pid     int
	command string
}

// running lists the processes of the site, with those that they started.
func (s *site) running() (list []running) {
	want := "HOME=" + s.home
	for _, pid := range procenv.Find(func(variable string) bool { return variable == want }) {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		list = append(list, running{pid, strings.ReplaceAll(string(bytes.TrimRight(command, "\x00")), "\x00", " ")})
	}
	return list
}

// processes tells of them in words.
func (s *site) processes() (list []string) {
	for _, r := range s.running() {
		list = append(list, strconv.Itoa(r.pid)+" "+r.command)
	}
	return list
}

// find is the one process whose command contains text.
func (s *site) find(t testing.TB, text string) running {
	t.Helper()
	var found []running
	for _, r := range s.running() {
		if strings.Contains(r.command, text) {
			found = append(found, r)
		}
	}
	require.Len(t, found, 1, "processes with %q of %v", text, s.processes())
	return found[0]
}

func containsText(b []byte, text string) bool { return bytes.Contains(b, []byte(text)) }

// readOnly makes a directory one that cannot be written, for root too.
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
