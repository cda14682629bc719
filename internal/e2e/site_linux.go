package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/procenv"
)

// NewDaemonSite returns a site whose daemon stays until the test stops it.
func NewDaemonSite(t testing.TB, more ...string) *Site {
	t.Helper()
	s := NewSite(t, more...)
	s.DaemonStays.Store(true)
	s.ClearDaemons()
	return s
}

// ClearDaemons kills the site's daemons after a failed test, and shows their log.
func (s *Site) ClearDaemons() {
	s.T.Cleanup(func() {
		if !s.T.Failed() {
			return
		}
		for _, d := range s.Daemons() {
			_ = syscall.Kill(d.PID, syscall.SIGKILL)
		}
		s.T.Logf("the daemon's log:\n%s", s.DaemonLog())
	})
}

// Daemons returns the site's processes that started as daemons.
func (s *Site) Daemons() (list []Running) {
	for _, r := range s.Running() {
		if strings.Contains(r.Command, " daemon start --foreground ") {
			list = append(list, r)
		}
	}
	return list
}

// A Running is a process of a site.
type Running struct {
	PID     int
	Command string
}

// Running lists the site's processes with their children.
func (s *Site) Running() (list []Running) {
	want := "HOME=" + s.Home
	for _, pid := range procenv.Find(func(variable string) bool { return variable == want }) {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		list = append(list, Running{pid, strings.ReplaceAll(string(bytes.TrimRight(command, "\x00")), "\x00", " ")})
	}
	return list
}

// Processes describes the site's processes.
func (s *Site) Processes() (list []string) {
	for _, r := range s.Running() {
		list = append(list, strconv.Itoa(r.PID)+" "+r.Command)
	}
	return list
}

// Find returns the only process whose command contains text.
func (s *Site) Find(t testing.TB, text string) Running {
	t.Helper()
	var found []Running
	for _, r := range s.Running() {
		if strings.Contains(r.Command, text) {
			found = append(found, r)
		}
	}
	require.Len(t, found, 1, "processes with %q of %v", text, s.Processes())
	return found[0]
}

// Kill sends SIGKILL, as the kernel does when memory runs out.
func Kill(t testing.TB, r Running) {
	t.Helper()
	require.NoError(t, syscall.Kill(r.PID, syscall.SIGKILL))
}
