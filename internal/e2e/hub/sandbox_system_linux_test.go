//go:build clients

package hub

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/sandbox"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// sandboxSite returns a site with a git repository whose home directory has a key, and another project.
// Its home and its project are outside of /tmp, which is private in a sandbox.
func sandboxSite(t *testing.T, config string) (s *e2e.Site, other string) {
	testkit.NeedTool(t, "bwrap")
	if _, err := new(sandbox.Finder).Find(t.Context(), domain.SandboxOffline); err != nil {
		testkit.SkipMissing(t, err.Error())
	}
	testkit.NeedTool(t, "python3")
	s = e2e.NewSite(t, plainAgent+config)
	base := "/var"
	if os.Getuid() != 0 {
		base = os.Getenv("HOME")
	}
	dir, err := os.MkdirTemp(base, ".duet-sandbox-")
	require.NoError(t, err)
	t.Cleanup(func() { s.EndDaemons(); _ = os.RemoveAll(dir) })
	s.Home, s.Root = filepath.Join(dir, "home"), filepath.Join(dir, "project")
	for _, dir := range []string{s.Home, s.Root} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	s.Agents(plainAgent + config)
	other = filepath.Join(dir, "other")
	require.NoError(t, os.Mkdir(other, 0o700))
	e2e.WriteFile(t, filepath.Join(s.Home, ".ssh", "id"), "the key")
	e2e.WriteFile(t, filepath.Join(s.Home, ".gitconfig"), "[user]\nname = u\nemail = u@localhost\n")
	e2e.WriteFile(t, filepath.Join(s.Root, "a.txt"), "one\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "first"}} {
		git := exec.Command("git", args...)
		git.Dir, git.Env = s.Root, append(e2e.CleanEnvironment(), "HOME="+s.Home)
		out, err := git.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return s, other
}

// tried returns what a shell in the agent's place printed: a line for each attempt that succeeded.
func tried(s *e2e.Site, attempts map[string]string, flags ...string) string {
	s.T.Helper()
	var script strings.Builder
	for name, attempt := range attempts {
		fmt.Fprintf(&script, "if ( %s ) >/dev/null 2>&1; then echo did-%s; fi\n", attempt, name)
	}
	return s.Run(append([]string{"prompt", "--agent", "plain", "--yes", script.String() + "echo tried"}, flags...)...)
}

// connect is a shell command that connects to a socket, sends a request and requires an answer.
func connect(path string) string {
	return `python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect("` + path + `")
s.sendall(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"); sys.exit(not s.recv(10))'`
}

// TestSandboxKeepsOut has an agent try what docs/security.md says that a sandbox keeps out. Without a
// sandbox all of it succeeds.
func TestSandboxKeepsOut(t *testing.T) {
	s, other := sandboxSite(t, "")
	extra := filepath.Join(s.Root, "extra.sock") // visible to the agent, but the daemon refuses it
	s.Daemon("--listen", extra)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	daemon, _, err := socket.Path(s.State())
	require.NoError(t, err)
	attempts := map[string]string{
		"home":    "echo > ~/new",
		"project": "echo > " + other + "/new",
		"hook":    "echo > .git/hooks/post-checkout",
		"config":  "git config alias.x '!true'",
		"git":     "mv .git .git2 && mv .git2 .git",
		"common":  "echo . > .git/commondir && rm .git/commondir",
		"key":     "grep -q key ~/.ssh/id",
		"state":   "ls " + s.State() + "/duet.db",
		"rules":   "grep -q scripted ~/config/duet/config.toml",
		"daemon":  connect(daemon),
		"extra":   connect(extra),
		"process": fmt.Sprintf("test -d /proc/%d", os.Getpid()),
		"agent":   `test -n "$SSH_AUTH_SOCK$DBUS_SESSION_BUS_ADDRESS$DISPLAY"`,
	}
	network := fmt.Sprintf(`python3 -c 'import socket; socket.create_connection(("127.0.0.1", %d), 5)'`, listener.Addr().(*net.TCPAddr).Port)
	work := map[string]string{"write": "echo in > inside && mv inside inside2 && rm inside2", "temporary": "mktemp", "status": "git status --short", "null": "echo > /dev/null"}
	s.Env = append(s.Env, "SSH_AUTH_SOCK=/run/none", "DISPLAY=:77")
	if os.Getuid() == 0 { // no other user can do these without a sandbox
		attempts["etc"], attempts["runtime"] = "echo > /etc/duet-test && rm /etc/duet-test", "grep -q it /run/duet-test/file"
		e2e.WriteFile(t, "/run/duet-test/file", "it")
		t.Cleanup(func() { _ = os.RemoveAll("/run/duet-test") })
	}

	free := tried(s, attempts)
	for name := range attempts {
		assert.Contains(t, free, "did-"+name+"\n", "without a sandbox")
	}
	require.NoError(t, os.RemoveAll(filepath.Join(s.Root, ".git", "hooks", "post-checkout")))
	for _, level := range []string{"workspace", "offline"} {
		confined := tried(s, attempts, "--sandbox="+level)
		assert.Equal(t, "tried\n", confined, level)
		works := tried(s, work, "--sandbox="+level)
		for name := range work {
			assert.Contains(t, works, "did-"+name+"\n", level)
		}
	}
	assert.Contains(t, tried(s, map[string]string{"network": network}, "--sandbox"), "did-network")
	assert.Equal(t, "tried\n", tried(s, map[string]string{"network": network}, "--sandbox=offline"))
	assert.NoFileExists(t, filepath.Join(s.Root, ".git", "hooks", "post-checkout"))
	s.Run("daemon", "stop")
}

// The agent of a session in a worktree commits there. It can neither change what git runs nor a branch
// or a log of the user.
func TestSandboxInAWorktree(t *testing.T) {
	s, _ := sandboxSite(t, "sandbox = \"workspace\"\n")
	assert.Equal(t, "did-commit\ntried\n", tried(s, map[string]string{"commit": "echo two >> a.txt && git commit -qam second"}, "--worktree"))
	branch := strings.TrimSpace(gitIn(t, s, "rev-parse", "--abbrev-ref", "HEAD"))
	assert.Equal(t, "tried\n", tried(s, map[string]string{
		"project":   "echo no >> " + filepath.Join(s.Root, "a.txt"),
		"config":    "git config alias.x '!true'",
		"own":       "cd $(git rev-parse --git-dir) && echo > config.worktree",
		"common":    "cd $(git rev-parse --git-dir) && echo /tmp > commondir",
		"link":      "mv .git .git2",
		"hook":      "echo > $(git rev-parse --git-common-dir)/hooks/post-commit",
		"main":      "git update-ref refs/heads/" + branch + " HEAD",
		"log":       "cd $(git rev-parse --git-common-dir)/logs && mv HEAD HEAD2",
		"ownlog":    "cd $(git rev-parse --git-dir) && rm logs/HEAD",
		"logs":      "cd $(git rev-parse --git-dir) && mv logs logs2",
		"worktrees": "mkdir $(git rev-parse --git-common-dir)/worktrees/new",
	}, "--worktree"))
	s.Run("land", "1")
	assert.Equal(t, "second\nfirst\n", gitIn(t, s, "log", "--format=%s"))
	assert.Regexp(t, "\\nsandbox +workspace\n", s.Run("session", "show", "1"))
	assert.Contains(t, s.Run("session", "list", "--json"), `"sandbox"`)
}

func gitIn(t *testing.T, s *e2e.Site, args ...string) string {
	git := exec.Command("git", args...)
	git.Dir, git.Env = s.Root, append(e2e.CleanEnvironment(), "HOME="+s.Home)
	out, err := git.Output()
	require.NoError(t, err)
	return string(out)
}

// A session keeps its sandbox: in later turns, in forks, and if the configuration no longer has one. Its
// gates are in it, too, since they run what the agent has written.
func TestSandboxStays(t *testing.T) {
	s, other := sandboxSite(t, "sandbox = \"offline\"\n")
	s.Run("prompt", "--agent", "plain", "--yes", "true")
	s.Agents(plainAgent)
	assert.Contains(t, s.Run("session", "show", "1"), "offline")
	for _, flags := range [][]string{{"--continue", "1"}, {"--fork", "1.1"}, {"--continue", "1", "--sandbox"}} {
		script := "(echo > " + other + "/new) 2>/dev/null || echo kept"
		assert.Contains(t, s.Run(append([]string{"prompt", "--yes", script}, flags...)...), "kept", flags)
	}
	e2e.WriteFile(t, filepath.Join(s.Root, "check"), "echo > "+other+"/new\n")
	_, err := s.Command("prompt", "--agent", "plain", "--sandbox", "--yes", "--gate", "sh check", "--max-iterations", "1", "true")
	assert.ErrorContains(t, err, "Read-only file system")
	assert.NoFileExists(t, filepath.Join(other, "new"))
	s.Run("prompt", "--agent", "plain", "--yes", "--gate", "sh check", "true")
	assert.FileExists(t, filepath.Join(other, "new"), "without a sandbox")
}

// An agent that speaks the protocol asks its questions in a sandbox and is interrupted there.
func TestQuestionsInASandbox(t *testing.T) {
	s, _ := sandboxSite(t, "")
	config := filepath.Join(s.Home, "config", "duet", "config.toml")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	e2e.WriteFile(t, config, strings.Replace(string(text), "[agents.scripted]", "[agents.scripted]\nsandbox = \"workspace\"", 1))
	rules, err := os.OpenFile(config, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = rules.WriteString("[[rules]]\neffect = \"deny\"\ntool = \"*\"\npath = \"*/demo.txt\"\n")
	require.NoError(t, errors.Join(err, rules.Close()))
	said, err := s.Command("prompt", "--yes", "edit")
	assert.NoError(t, err, said)
	assert.NoFileExists(t, filepath.Join(s.Root, "demo.txt"), "a deny rule holds, also with --yes")
	e2e.WriteFile(t, config, strings.Replace(string(text), "[agents.scripted]", "[agents.scripted]\nsandbox = \"workspace\"", 1))

	editor := s.Open()
	l, question := editor.Asks("edit", "")
	editor.Approve(question.Data.ApprovalID)
	editor.Completes(l)
	assert.Regexp(t, "\\nsandbox +workspace\n", s.Run("session", "show", "2"))
	assert.Contains(t, s.Run("prompt", "--yes", "editor:selection"), "gave me no server", "its program would reach the daemon")
	l = editor.Launch("hang", "")
	editor.AwaitText(l)
	editor.Interrupt(l)
	editor.AwaitEnd(l.SessionID)
}
