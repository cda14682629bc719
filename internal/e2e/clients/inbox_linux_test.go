package clients

import (
	"fmt"
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
command = ["sh", "-c", 'echo $$ >>%s; export XDG_STATE_HOME=%s/there; exec "$@"', "line"]
program = %q
`, lines, s.Home, e2e.Program))
	s.Run("--host", "far", "prompt", "--background", "permit:1")
	p := startTalk(s, t, "approvals", "--all-projects")
	p.sees("· far:", "[?] Keys: ")
	all := strings.Fields(e2e.ReadFile(t, lines))
	pid, err := strconv.Atoi(all[len(all)-1])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	p.sees("reached;", "· far:", "[?] Keys: ")
	p.presses("y", "no question is open")
	s.Run("prompt", "--background", "permit:1")
	p.sees("1.1 · /", "[?] Keys: ")
	p.presses("q")
	<-p.Ended
	assert.Zero(t, p.status())
	s.Run("--host", "far", "daemon", "stop")
}
