package git

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A program that git starts, as a filter of the user, may wait for a pipe as long as it likes.
func TestPipeOf(t *testing.T) {
	testkit.NeedTool(t, "git")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	start := func(args ...string) *exec.Cmd {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
		})
		return cmd
	}
	require.NoError(t, start("init", "-q").Wait())
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	filter := start("-c", "alias.waits=!echo $$ >pid; exec cat pipe", "waits")
	require.Eventually(t, func() bool {
		pid, _ := os.ReadFile(filepath.Join(dir, "pid"))
		wait, _ := os.ReadFile(fmt.Sprintf("/proc/%s/wchan", strings.TrimSpace(string(pid))))
		return string(wait) == "wait_for_partner"
	}, time.Minute, 10*time.Millisecond)
	_, waits := pipeOf(filter.Process.Pid)
	assert.False(t, waits)

	ignore := filepath.Join(dir, ".gitignore")
	require.NoError(t, syscall.Mkfifo(ignore, 0o600))
	status := start("status")
	var found string
	require.Eventually(t, func() bool { found, waits = pipeOf(status.Process.Pid); return waits }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, ignore, found)
}
