package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// The inbox of all projects asks the questions of this machine and of hosts, also after a line has broken.
func TestInboxOfAllProjects(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	lines := filepath.Join(s.Home, "lines")
	s.Agents(fmt.Sprintf(`[hosts.far]
command = ["sh", "-c", 'echo $$ >>%[1]s; if test -e %[1]s.most && test $(wc -l <%[1]s) -gt $(cat %[1]s.most); then exit 255; fi; export XDG_STATE_HOME=%[2]s/there; exec "$@"', "line"]
program = %[3]q
`, lines, s.Home, e2e.Program))
	s.Run("--host", "far", "prompt", "--background", "permit:1")
	p := startTalk(s, t, "approvals", "--all-projects")
	p.sees("· far:", "[?] Keys: ")
	all := strings.Fields(e2e.ReadFile(t, lines))
	pid, err := strconv.Atoi(all[len(all)-1])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	p.sees("reached;", "· far:", "[?] Keys: ")
	p.presses("l", "no other question is open")
	s.Run("prompt", "--background", "permit:1")
	p.sees("1.1 · /", "[?] Keys: ")
	p.presses("q")
	<-p.Ended
	assert.Zero(t, p.status())

	// A host that lists its questions, and cannot be reached then, holds up nothing.
	e2e.WriteFile(t, lines+".most", strconv.Itoa(len(strings.Fields(e2e.ReadFile(t, lines)))+1))
	p = startTalk(s, t, "approvals", "--all-projects", "--once")
	p.sees("1.1 · /", "[?] Keys: ")
	p.presses("l")
	<-p.Ended
	assert.Zero(t, p.status())
	require.NoError(t, os.Remove(lines+".most"))
	s.Run("--host", "far", "daemon", "stop")
}
