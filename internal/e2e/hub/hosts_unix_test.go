//go:build unix

package hub

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

// A far site is a site that is reached as a host: by a command that records the process of each line.
type farSite struct {
	*e2e.Site
	lines string // the file with the processes
}

func newFarSite(t *testing.T) farSite {
	t.Helper()
	s := e2e.NewSite(t)
	lines := filepath.Join(s.Home, "lines")
	s.Agents(fmt.Sprintf(`[hosts.far]
command = ["sh", "-c", 'test -e %s.down && { echo "no way there" >&2; exit 255; }; echo $$ >>%s; exec "$@"', "line"]
program = %q
`, lines, lines, e2e.Program))
	return farSite{s, lines}
}

// open starts an editor with --host and a subscription.
func (f farSite) open() *e2e.Client {
	over := *f.Site
	over.Args = []string{"--host", "far", "--test-methods"}
	return over.Open()
}

// cut kills the process of the last line.
func (f farSite) cut() {
	f.T.Helper()
	all := strings.Fields(e2e.ReadFile(f.T, f.lines))
	require.NotEmpty(f.T, all)
	pid, err := strconv.Atoi(all[len(all)-1])
	require.NoError(f.T, err)
	require.NoError(f.T, syscall.Kill(pid, syscall.SIGKILL))
}

// When the line to a host breaks the agent there goes on: the editor's pending request is lost, its
// subscription has no gap, and a question that another client answers there is answered here.
func TestLineBreaks(t *testing.T) {
	f := newFarSite(e2e.Parallel(t))
	f.Args = []string{"--test-methods"}
	there := f.Open() // a client on the host itself
	here := f.open()
	l := here.Launch("write it", "")
	q := here.Open(e2e.AnyQuestion)

	pending := make(chan error, 1)
	go func() { pending <- here.Try("test.sleep", map[string]any{"ms": 60_000}, nil) }()
	here.Call("ping", map[string]any{}, nil) // so the one before is on the line
	f.cut()
	err := <-pending
	require.Equal(t, "hub_lost", e2e.KindOf(t, err))
	require.ErrorContains(t, err, "the line to far broke before an answer came")

	there.Call("approval.decide", map[string]any{"approval": q.ID, "decision": "approve"}, nil)
	here.Completes(l)

	// While the host cannot be reached requests say so.
	require.NoError(t, os.WriteFile(f.lines+".down", nil, 0o600))
	f.cut()
	require.Eventually(t, func() bool {
		err := here.Try("session.list", map[string]any{}, nil)
		return err != nil && strings.Contains(err.Error(), "far: no way there")
	}, e2e.Watchdog, e2e.PollEvery)
	m := there.Runs("quiet")
	there.Completes(m)
	require.NoError(t, os.Remove(f.lines+".down"))
	here.Completes(m)
	assert.Equal(t, seen(there), seen(here), "no event is missing, none came twice")
	e2e.Leave(here, there)
}

// seen returns the events of a client, without pieces of text, which may come in one piece.
func seen(c *e2e.Client) (list []string) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for _, e := range c.Events {
		if e.Seq > 0 && e.Type != "message_delta" {
			list = append(list, fmt.Sprintf("%d %s", e.Seq, e.Type))
		}
	}
	return list
}

// What a command prints that runs on a host has no effect on the terminal here.
func TestHostCannotDriveTheTerminal(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Agents(fmt.Sprintf(`[hosts.evil]
command = ["sh", "-c", 'case "$*" in *config*) printf "red \033[31mred\n"; printf "red \033[31mred\n" >&2;; *) exec "$@";; esac', "line"]
program = %q
`, e2e.Program))
	w := s.Window(80, 24, "--host", "evil", "config")
	assert.Zero(t, w.Leaves())
	printed := w.Printed.String()
	assert.Equal(t, 2, strings.Count(printed, "U+001B"), "%q", printed)
	assert.NotContains(t, printed, "\x1b[31m")
}
