//go:build clients && unix

package shellcommand_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// The parser is not a shell. The test gives allowed commands to the installed shells, in an
// empty directory and with only two programs. They run no other program than the one in the
// rule.
func TestRealShellsRunNothingElse(t *testing.T) {
	var shells []string
	for _, name := range []string{"bash", "dash", "zsh", "busybox"} {
		if found, err := exec.LookPath(name); err == nil {
			shells = append(shells, found)
		}
	}
	if len(shells) == 0 {
		testkit.SkipMissing(t, "there is no shell")
	}
	programs, dir := t.TempDir(), t.TempDir()
	ran := filepath.Join(t.TempDir(), "ran")
	for _, name := range []string{"touch", "rm"} {
		testkit.Program(t, filepath.Join(programs, name), "#!/bin/sh\necho "+name+" >>"+ran+"\n")
	}
	pieces := []string{
		"touch", "touch", "touch", "rm", "rm", " ", " ", " ", ";", "\n", "\\\n", "#", "'", "'", "\"", "\"", "$'", "\\", "\\'", "`", "`", "$(", ")", "(", "{", "}", "<<E", "\nE\n", "&", "|", "&&",
		"!", "x", "y", "=", "$", "${", "if ", "then ", "fi", "case ", " in ", ";;", "esac", "for ", "do ", "done", "~", "*", "[", "]", "\t", "é", "2>&1", ">/dev/null", "function ", "()",
	}
	random := rand.New(rand.NewPCG(1, 2))
	rules := globs("touch*")
	allowed := 0
	commands := append([]string(nil), evasions...)
	for range 150_000 {
		var b strings.Builder
		b.WriteString("touch ")
		for range 1 + random.IntN(9) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		commands = append(commands, b.String())
	}
	const most = 400
	for _, command := range commands {
		if allowed == most || !strings.Contains(command, "rm") || !shellcommand.Read(command).AllowedBy(rules, nil) {
			continue
		}
		allowed++
		for _, shell := range shells {
			args := []string{"-c", command}
			if filepath.Base(shell) == "busybox" {
				args = append([]string{"sh"}, args...)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			cmd := exec.CommandContext(ctx, shell, args...)
			cmd.Dir, cmd.Env = dir, []string{"PATH=" + programs}
			_ = cmd.Run()
			cancel()
			said, err := os.ReadFile(ran)
			if err == nil {
				require.NoError(t, os.Remove(ran))
			}
			assert.NotContains(t, string(said), "rm", "%s runs it for %q", shell, command)
		}
	}
	assert.Greater(t, allowed, 50, "enough of them were allowed")
	t.Log(allowed, "commands,", shells)
}
