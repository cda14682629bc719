//go:build unix

package mcp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/mcp"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// server is a program that does what its argument says, and records its start.
const server = `#!/bin/sh
echo x >> "$0.started"
case $1 in
works) read -r line; echo 'a banner'; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}'; cat > /dev/null ;;
waits) while ! test -e "$2"; do sleep 0.05; done; exit 4 ;;
hangs) exec sleep 1000 ;;
fails) echo "first line" >&2; echo "no login with $TOKEN" >&2; exit 3 ;;
esac
`

// world is a Servers with its notices.
type world struct {
	t       *testing.T
	dir     string
	servers *mcp.Servers
	said    chan string
	enabled atomic.Bool
}

func newWorld(t *testing.T, patience time.Duration) *world {
	w := &world{t: t, dir: t.TempDir(), said: make(chan string, 100)}
	w.enabled.Store(true)
	testkit.Program(t, filepath.Join(w.dir, "server"), server)
	w.servers = mcp.NewServers(t.Context(), mcp.ServersOptions{
		Enabled: w.enabled.Load, Patience: patience,
		Tell: func(_ context.Context, turn int64, text string) { w.said <- fmt.Sprintf("%d: %s", turn, text) },
	})
	t.Cleanup(w.close)
	return w
}

// close ends the tests: no more notices follow.
func (w *world) close() { _ = w.servers.Close(context.WithoutCancel(w.t.Context())) }

// gets gives the agent of a turn servers with the given behaviour.
func (w *world) gets(turn, session int64, does ...string) {
	w.t.Helper()
	w.servers.Try(mcp.Gets{Turn: turn, Session: session, Dir: w.dir, Servers: []catalog.MCPServer{
		{Name: does[0], Command: "./server", Args: does, Env: map[string]string{"TOKEN": "guarded-secret"}},
	}})
}

// hears waits for the next notice.
func (w *world) hears() string {
	w.t.Helper()
	select {
	case text := <-w.said:
		return text
	case <-time.After(time.Minute):
		w.t.Fatal("nothing is reported")
		return ""
	}
}

// started returns how often servers were started.
func (w *world) started() int {
	text, _ := os.ReadFile(filepath.Join(w.dir, "server.started"))
	return strings.Count(string(text), "\n")
}

// awaitsStarted waits for a number of starts. Servers record them only in a file, and Servers
// reports nothing about a server that works or hangs.
func (w *world) awaitsStarted(times int) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.started() == times }, time.Minute, time.Millisecond)
}

const failed = "the MCP server fails ended with status 3 before it answered: no login with [secret]"

func TestASessionIsToldOfAServerThatEnds(t *testing.T) {
	w := newWorld(t, time.Minute)
	w.gets(1, 10, "fails")
	assert.Equal(t, "1: "+failed, w.hears())

	// The session has its notice; another session gets one after another test.
	w.gets(2, 10, "fails")
	w.gets(3, 11, "fails")
	assert.Equal(t, "3: "+failed, w.hears())
	assert.Equal(t, 2, w.started())
}

func TestAServerThatDoesNotAnswerIsTold(t *testing.T) {
	w := newWorld(t, 300*time.Millisecond)
	w.gets(1, 10, "hangs")
	assert.Regexp(t, `^1: the MCP server hangs does not answer within \d+s$`, w.hears())
}

// A working server is tested once, without a notice, until its definition changes.
func TestAServerThatWorksIsTriedOnce(t *testing.T) {
	w := newWorld(t, time.Minute)
	for turn := range int64(5) {
		w.gets(turn, turn, "works")
	}
	w.gets(9, 9, "fails") // its notice comes after the start of the other test
	assert.Equal(t, "9: "+failed, w.hears())
	w.awaitsStarted(2)
	w.gets(6, 6, "works", "differently")
	w.awaitsStarted(3)
	w.close()
	assert.Empty(t, w.said)
	assert.Equal(t, 3, w.started())
}

// A turn that gets a server during another turn's test is notified too.
func TestATryIsShared(t *testing.T) {
	w := newWorld(t, time.Minute)
	start := filepath.Join(w.dir, "go")
	w.gets(1, 10, "waits", start)
	w.gets(2, 11, "waits", start)
	w.gets(3, 11, "waits", start)
	for turn, want := range map[int64][]string{1: {"waits"}, 3: {"waits"}, 4: nil} {
		assert.Equal(t, want, w.servers.Unanswered(turn))
	}
	require.NoError(t, os.WriteFile(start, nil, 0o600))
	const text = ": the MCP server waits ended with status 4 before it answered"
	assert.ElementsMatch(t, []string{"1" + text, "2" + text}, []string{w.hears(), w.hears()})
	assert.Equal(t, 1, w.started())
	assert.Empty(t, w.servers.Unanswered(1))
}

func TestNothingIsTriedWhereThatIsTurnedOff(t *testing.T) {
	w := newWorld(t, time.Minute)
	w.enabled.Store(false)
	w.gets(1, 10, "fails")
	w.enabled.Store(true)
	w.servers.Try(mcp.Gets{Turn: 2, Session: 11, Dir: w.dir, Servers: []catalog.MCPServer{{Name: "gone", Command: "no-such-program"}}}) // the executor reports that
	w.gets(3, 12, "fails")
	assert.Equal(t, "3: "+failed, w.hears())
	w.close()
	assert.Empty(t, w.said)
	assert.Equal(t, 1, w.started())
}

func TestTheEndOfTheHubEndsATry(t *testing.T) {
	w := newWorld(t, time.Hour)
	w.gets(1, 10, "hangs")
	w.awaitsStarted(1)
	w.close()
	assert.Empty(t, w.said)
}
