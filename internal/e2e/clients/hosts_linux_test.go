//go:build clients

package clients

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// An sshHost is a host that an SSH server on the loopback serves, with keys and a home directory of its own. It has
// no duet-rpc on its PATH.
type sshHost struct {
	t         *testing.T
	dir, home string
	port      int
	server    *exec.Cmd
}

func newSSHHost(t *testing.T) *sshHost {
	testkit.NeedTool(t, "ssh")
	dir := t.TempDir()
	h := &sshHost{t: t, dir: dir, home: filepath.Join(dir, "home")}
	require.NoError(t, os.Mkdir(h.home, 0o700))
	for _, key := range []string{"hostkey", "key"} {
		out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h.port = free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	e2e.WriteFile(t, filepath.Join(dir, "sshd_config"), fmt.Sprintf(`Port %d
ListenAddress 127.0.0.1
HostKey %s/hostkey
AuthorizedKeysFile %s/key.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
SetEnv HOME=%s PATH=/usr/bin:/bin XDG_CONFIG_HOME= XDG_STATE_HOME= XDG_CACHE_HOME= XDG_DATA_HOME=
`, h.port, dir, dir, h.home))
	public := strings.Fields(e2e.ReadFile(t, filepath.Join(dir, "hostkey.pub")))
	e2e.WriteFile(t, filepath.Join(dir, "known_hosts"), fmt.Sprintf("[127.0.0.1]:%d %s %s\n", h.port, public[0], public[1]))
	h.serve()
	return h
}

// serve starts the server.
func (h *sshHost) serve() {
	h.t.Helper()
	path, err := exec.LookPath("sshd")
	if err != nil {
		path = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(path); err != nil {
		testkit.SkipMissing(h.t, "sshd is not installed")
	}
	if os.Getuid() == 0 {
		_ = os.MkdirAll("/run/sshd", 0o755) // sshd needs the directory; the package's service makes it
	}
	h.server = exec.Command(path, "-D", "-E", filepath.Join(h.dir, "log"), "-f", filepath.Join(h.dir, "sshd_config"))
	require.NoError(h.t, h.server.Start())
	h.t.Cleanup(h.stop)
	require.Eventually(h.t, func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", h.port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, e2e.Watchdog/10, e2e.PollEvery)
}

// stop ends the server; its connections go on.
func (h *sshHost) stop() {
	if h.server != nil {
		_ = h.server.Process.Kill()
		_ = h.server.Wait()
		h.server = nil
	}
}

// table is the host in the configuration.
func (h *sshHost) table() string {
	return fmt.Sprintf(`[hosts.devbox]
command = ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "UserKnownHostsFile=%s/known_hosts", "-i", "%s/key", "-p", "%d", "127.0.0.1"]
shell = true
`, h.dir, h.dir, h.port)
}

// there runs a command of duet-rpc on the host itself.
func (h *sshHost) there(s *e2e.Site, args ...string) string {
	h.t.Helper()
	own := *s
	own.Env = append(own.Env, "HOME="+h.home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "XDG_DATA_HOME=")
	cmd := own.ShellCommand(args...)
	out, err := cmd.CombinedOutput()
	require.NoError(h.t, err, "%s", out)
	return string(out)
}

// lines returns the processes of ssh that are lines to the host.
func (h *sshHost) lines() (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		text, _ := os.ReadFile(path)
		if words := strings.Split(string(text), "\x00"); words[0] == "ssh" && strings.Contains(string(text), h.dir+"/key") &&
			strings.Contains(string(text), "connect") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func (h *sshHost) signal(s syscall.Signal) {
	h.t.Helper()
	pids := h.lines()
	require.NotEmpty(h.t, pids)
	for _, pid := range pids {
		require.NoError(h.t, syscall.Kill(pid, s))
	}
}

// A day with a host over SSH: the program gets there by itself, and a question survives a line that is killed, that
// is stopped, and a host that cannot be reached.
func TestAHostOverSSH(t *testing.T) {
	h := newSSHHost(t)
	s := e2e.NewSite(e2e.Parallel(t), h.table())
	out, _ := s.Command("hosts", "check", "devbox")
	require.Contains(t, out, "devbox: duet-rpc ")
	require.Contains(t, out, "no agent is installed there")
	copies, err := filepath.Glob(h.home + "/.cache/duet-rpc/bin/duet-rpc-*")
	require.NoError(t, err)
	require.Len(t, copies, 1, "this program was copied there")
	t.Cleanup(func() { h.there(s, "daemon", "stop", "--force") })

	p := startTalk(s, t, "--host", "devbox")
	p.sees("devbox:"+s.Root+" · /help lists", idleFooter)
	p.presses("quiet write it\r", "You asked: quiet write it", idleFooter)
	p.presses("write it\r", "? Write demo.txt", "[?] Keys: ")
	h.signal(syscall.SIGKILL)
	p.sees("? Write demo.txt", "[?] Keys: ")
	p.presses("y", "I wrote demo.txt", "tokens", idleFooter)

	// Answered on the host while the line is dead.
	p.presses("write more\r", "? Write demo.txt", "[?] Keys: ")
	h.signal(syscall.SIGSTOP)
	open := strings.Fields(h.there(s, "approvals", "--wait"))
	h.there(s, "approvals", "allow", open[len(open)-6])
	h.signal(syscall.SIGKILL)
	p.sees("I wrote demo.txt", idleFooter)

	// The host is away, and comes back.
	h.stop()
	h.signal(syscall.SIGKILL)
	p.sees("again until you press C-c, and the agents there go on")
	h.serve()
	p.sees(idleFooter)
	p.presses("!pwd\r", s.Root, "exit status 0")
	p.presses("quiet last\r", "You asked: quiet last", idleFooter)
	p.presses("\x04", "back with: duet-rpc --host devbox prompt --continue 1")
	assert.Zero(t, p.status())
	assert.Contains(t, s.Run("--host", "devbox", "session", "list"), "completed")
}

// The files of this machine go to a host over SSH, which has no duet-rpc and no clone yet, and the work comes back; the
// line is killed while a question is open.
func TestFilesOverSSH(t *testing.T) {
	h := newSSHHost(t)
	s := e2e.NewSite(e2e.Parallel(t), h.table()+fmt.Sprintf("directory = %q\n", h.home+"/src"))
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@localhost", "-C", s.Root}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	e2e.WriteFile(t, filepath.Join(s.Root, "a"), "1\n")
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	e2e.WriteFile(t, filepath.Join(s.Root, "b"), "not committed\n")
	t.Cleanup(func() { h.there(s, "--root", h.home+"/src/project", "daemon", "stop", "--force") })

	p := startTalk(s, t, "prompt")
	p.sees("/help lists", idleFooter)
	p.presses("/on devbox\r", "devbox has your commit and 1 file that you did not commit", "devbox:"+h.home+"/src/project · /help lists", idleFooter)
	p.presses("write it\r", "? Write demo.txt", "[?] Keys: ")
	h.signal(syscall.SIGKILL)
	p.sees("? Write demo.txt", "[?] Keys: ")
	p.presses("y", "I wrote demo.txt", idleFooter)
	p.presses("!cat b\r", "not committed", "exit status 0")
	p.presses("/land patch\r", "landed without a commit: 1 file", idleFooter)
	assert.Equal(t, "?? b\n?? demo.txt", git("status", "--short"))
	p.presses("/on\r", "back with: duet-rpc --host devbox prompt --continue 1", "/help lists", idleFooter)
	p.presses("\x04")
	assert.Zero(t, p.status())
	assert.Contains(t, s.Run("session", "list"), "1@devbox")
}

// Each session has a container of its own, which Podman makes of this machine's files and removes: the recipe of
// docs/hosts.md. The user talks in one, lands its work and discards it.
//
// It is skipped without Podman, also with CI=true: machines for tests are often containers themselves, in which
// Podman runs none. The script hosts_made.txtar has the same steps with a stand-in, on each machine.
func TestASessionInItsOwnContainer(t *testing.T) {
	podman, err := exec.LookPath("podman")
	if err != nil {
		t.Skip("podman is not installed")
	}
	if out, err := exec.Command(podman, "run", "--rm", "--rootfs", "/:O", "true").CombinedOutput(); err != nil {
		t.Skipf("podman runs no container here: %s", out)
	}
	s := e2e.NewSite(e2e.Parallel(t), `[hosts.box]
command = ["podman", "exec", "-i", "{host}"]
start = ["podman", "run", "-d", "--name", "{host}", "--rootfs", "/:O", "sleep", "infinity"]
stop = ["podman", "rm", "-f", "-t", "0", "{host}"]
directory = "/src"
per = "session"
`)
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@localhost", "-C", s.Root}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	e2e.WriteFile(t, filepath.Join(s.Root, "a"), "1\n")
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	made := func() []string {
		return slices.DeleteFunc(strings.Fields(s.Run("hosts", "--names")), func(name string) bool { return name == "box" })
	}
	containers := func(name string) string {
		out, err := exec.Command(podman, "ps", "--quiet", "--all", "--filter", "name=^duet-"+name+"$").Output()
		require.NoError(t, err)
		return string(out)
	}
	t.Cleanup(func() {
		for _, name := range made() {
			_ = exec.Command(podman, "rm", "-f", "-t", "0", "duet-"+name).Run()
		}
	})

	p := startTalk(s, t, "prompt")
	p.sees("/help lists", idleFooter)
	p.presses("/on box\r", "has the commit", ":/src/project · /help lists", idleFooter)
	require.Len(t, made(), 1)
	name := made()[0]
	assert.NotEmpty(t, containers(name))
	p.presses("write it\r", "? Write demo.txt", "[?] Keys: ")
	p.presses("y", "I wrote demo.txt", idleFooter)
	p.presses("/land patch\r", "landed without a commit: 1 file", idleFooter)
	assert.Equal(t, "?? demo.txt", git("status", "--short"))
	p.presses("/discard\r", "Discard the worktree with this work?")
	p.presses("y\r", name+" is removed", "/help lists", idleFooter)
	assert.Empty(t, containers(name))
	assert.Empty(t, made())

	// Without a prompt there is no session, and the container goes.
	p.presses("/on box\r", "has your commit and 1 file", ":/src/project · /help lists", idleFooter)
	require.Len(t, made(), 1)
	p.presses("\x04")
	assert.Zero(t, p.status())
	assert.Empty(t, made())
}
