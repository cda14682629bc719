//go:build clients

package executor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/sandbox"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// confined returns a prompt for the fake agent in a sandbox, and a directory that is outside.
func confined(t *testing.T, text string) (p catalog.ExecutePromptParams, outside string) {
	testkit.NeedTool(t, "bwrap")
	bwrap, err := new(sandbox.Finder).Find(t.Context(), domain.SandboxWorkspace)
	if err != nil {
		testkit.SkipMissing(t, err.Error())
	}
	p = prompt(t, "plain", text)
	base := "/var" // not /tmp, which is private in the sandbox
	if os.Getuid() != 0 {
		base = os.Getenv("HOME")
	}
	outside, err = os.MkdirTemp(base, ".duet-outside-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(outside) })
	p.Launch.Sandbox = &catalog.Sandbox{Level: domain.SandboxWorkspace, Program: bwrap}
	return p, outside
}

// What Duet does for an agent is confined as the agent is: its files and its terminals.
func TestRequestsOfAConfinedAgent(t *testing.T) {
	h, x := hubAndExecutor(t)
	p, outside := confined(t, "")
	git := filepath.Join(p.CWD, ".git")
	require.NoError(t, os.MkdirAll(filepath.Join(git, "hooks"), 0o700))
	hook, config := filepath.Join(git, "hooks", "pre-commit"), filepath.Join(git, "config")
	require.NoError(t, os.WriteFile(config, nil, 0o600))
	require.NoError(t, os.WriteFile(hook, nil, 0o600))
	link, inside := filepath.Join(p.CWD, "link"), filepath.Join(p.CWD, "new", "inside")
	require.NoError(t, os.Symlink(filepath.Join(git, "hooks"), link))
	p.Prompt = "touch " + hook + " " + config + " " + filepath.Join(link, "pre-commit") + " " + inside
	execute(t, x, p)
	assert.Equal(t, hook+" true false\n"+config+" true false\n"+filepath.Join(link, "pre-commit")+" true false\n"+inside+" false true\n", h.text())
	assert.Empty(t, must(os.ReadFile(hook))(t))

	p.TaskID, p.Prompt = "task-2", "shell echo in > made || exit 3; echo out > "+outside+"/made && exit 4; touch "+hook+"2 && exit 5; exit 0"
	execute(t, x, p)
	assert.Contains(t, h.text(), `"exitCode":0`)
	assert.FileExists(t, filepath.Join(p.CWD, "made"))
	assert.NoFileExists(t, filepath.Join(outside, "made"))
}

// An agent in a sandbox gets SIGINT, ends by itself, and reports its exit status; a kill ends what
// ignores signals; and no process is left.
func TestSignalsReachAConfinedAgent(t *testing.T) {
	for name, c := range map[string]struct{ script, left string }{
		"interrupt": {`trap 'echo int > int; exit 7' INT; echo ready; while :; do sleep 0.05; done`, "int"},
		"terminate": {`trap '' INT; trap 'echo term > term; exit 7' TERM; echo ready; while :; do sleep 0.05; done`, "term"},
		"kill":      {`trap '' INT TERM; (trap '' INT TERM; setsid sleep 1000) & echo ready; while :; do sleep 0.05; done`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, x := hubAndExecutor(t)
			p, _ := confined(t, "work")
			p.Launch.Driver, p.Launch.Command, p.Launch.History = "command", []string{"/bin/sh", "-c", c.script}, "none"
			done := executing(t, x, p)
			stopAtWork(t, h, x)
			assert.Equal(t, catalog.StatusCancelled, (<-done).Status)
			if c.left != "" {
				assert.FileExists(t, filepath.Join(p.CWD, c.left))
			}
			requireNoProcess(t, h)
		})
	}
	h, x := hubAndExecutor(t)
	p, _ := confined(t, "work")
	p.Launch.Driver, p.Launch.Command, p.Launch.History = "command", []string{"/bin/sh", "-c", "setsid sleep 1000 & echo why >&2; exit 9"}, "none"
	failed := execute(t, x, p)
	require.NotNil(t, failed.Error)
	assert.Contains(t, failed.Error.Message, "exited with status 9: why")
	requireNoProcess(t, h)
}

// A sandbox that is required and that the agent cannot have is an error, and the agent does not start.
func TestNoAgentOutsideOfItsSandbox(t *testing.T) {
	_, x := hubAndExecutor(t)
	p, outside := confined(t, "echo hello")
	t.Setenv("HOME", filepath.Join(p.CWD, "home"))
	require.NoError(t, os.Mkdir(filepath.Join(p.CWD, "home"), 0o700))
	result := execute(t, x, p)
	require.NotNil(t, result.Error)
	assert.Equal(t, "SANDBOX_FAILED", result.Error.Code, string(must(json.Marshal(result.Error))(t)))
	p, _ = confined(t, "echo hello")
	p.TaskID, p.Launch.Sandbox.Program = "task-3", filepath.Join(outside, "bwrap")
	result = execute(t, x, p)
	require.NotNil(t, result.Error)
	assert.Equal(t, catalog.StatusFailed, result.Status)
}
