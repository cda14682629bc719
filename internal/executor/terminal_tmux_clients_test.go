//go:build clients && unix

package executor_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func TestTmux(t *testing.T) {
	w := &terminalRecord{}
	s, _ := newSet(t, w)
	testkit.NeedTool(t, "tmux")
	dir := t.TempDir()
	env := map[string]string{"TMUX_TMPDIR": dir}
	result := must(s.Spawn(catalog.SpawnTerminalParams{UseTmux: true, TmuxSessionName: "duet-test", TmuxWindowName: "w1", Env: env}))(t)
	w.Await(t, func() bool { return strings.Contains(w.Printed(result.TerminalID), "w1") }, "the window's name")

	// A program runs in its own window, in an existing session or in a new one.
	for _, session := range []string{"duet-test", "duet-other"} {
		program := catalog.SpawnTerminalParams{UseTmux: true, TmuxSessionName: session, Shell: "sh", Args: []string{"-c", "echo r-u-n-s | tr -d -; read x"}, Env: env}
		started := must(s.Spawn(program))(t)
		w.Await(t, func() bool { return strings.Contains(w.Printed(started.TerminalID), "runs") }, "what the program prints")
	}
	kill := exec.Command("tmux", "kill-server")
	kill.Env = []string{"TMUX_TMPDIR=" + dir, "PATH=/usr/bin:/bin"}
	require.NoError(t, kill.Run())
	w.Await(t, func() bool { return w.Exit(result.TerminalID) != nil }, "the exit")
}
