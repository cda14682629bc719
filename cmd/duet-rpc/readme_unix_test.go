//go:build unix

package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the README tells to type in a shell does what it says, in a clone whose
// only agents are the demo agent and one that is called claude. What it tells to
// type in Node and in Emacs is run where those are tested.
func TestReadmeInAShell(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	s := newSite(t)
	s.agents("[agents.claude]\ndriver = \"acp\"\ncommand = [" + `"` + program + `", "demo-agent"]` + "\nenv = { DUET_DEMO_DELAY = \"0\" }\n")
	require.NoError(t, os.Mkdir(filepath.Join(s.root, "bin"), 0o755))
	require.NoError(t, os.Symlink(program, filepath.Join(s.root, "bin", "duet-rpc")))
	run := func(script string) string {
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-e", "-c", script)
		cmd.Dir = s.root
		cmd.Env = append(cleanEnvironment(), s.launch().env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal to ask on
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", script, out)
		return string(out)
	}
	run("git init -q")
	tried := 0
	for block := range strings.SplitSeq(string(readme), "```sh\n") {
		block, _, _ = strings.Cut(block, "```")
		switch {
		case strings.Contains(block, "duet-rpc prompt"):
			out := run(block)
			assert.Equal(t, 4, strings.Count(out, "— completed; go on with: "), out)
			assert.Contains(t, out, "agent claude")
			assert.Contains(t, out, "You asked: Why does the build fail?")
			assert.Contains(t, out, "You asked: Review this")
			assert.Contains(t, out, "allowed by --yes")
			assert.Contains(t, out, "You asked: And now fix it")
		case strings.Contains(block, "duet-rpc daemon start"):
			run(`export PATH="$PWD/bin:$PATH"` + "\n" + block + "duet-rpc daemon status\nduet-rpc daemon stop\n")
		default:
			assert.NotContains(t, block, "duet-rpc ", "a block that nobody tries")
			continue
		}
		tried++
	}
	assert.Equal(t, 2, tried)
}
