//go:build unix

package executor_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

func shell(t *testing.T, x *executor.Executor, script string) string {
	t.Helper()
	result, err := x.SpawnTerminal(context.Background(), catalog.SpawnTerminalParams{
		Shell: "sh", Args: []string{"-c", script}, CWD: t.TempDir(), Env: map[string]string{"WORD": "there"},
	})
	require.NoError(t, err)
	assert.Positive(t, result.PTYPID)
	return result.TerminalID
}

func (h *hub) printed(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.output[id]
}

func (h *hub) exit(id string) *catalog.TerminalExitParams {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.exits {
		if h.exits[i].TerminalID == id {
			return &h.exits[i]
		}
	}
	return nil
}

// A terminal's program that ends by itself is not hung up on while it does.
func TestTerminalsEndInPeace(t *testing.T) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{})
	ctx := context.Background()
	for range 40 {
		r, err := x.SpawnTerminal(ctx, catalog.SpawnTerminalParams{Shell: "cat"})
		require.NoError(t, err)
		require.NoError(t, x.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: r.TerminalID, Data: "typed\n\x04"}))
		h.wait(t, func() bool { return h.exit(r.TerminalID) != nil }, "the exit")
		require.Equal(t, catalog.TerminalExitParams{TerminalID: r.TerminalID}, *h.exit(r.TerminalID))
	}
}

func TestTerminals(t *testing.T) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{})
	ctx := context.Background()
	t.Run("size, keys and exit", func(t *testing.T) {
		id := shell(t, x, `stty size; read a; stty size; echo "$WORD $a"; exit 3`)
		h.wait(t, func() bool { return strings.Contains(h.printed(id), "24 80") }, "the default size")
		require.NoError(t, x.TerminalResize(ctx, catalog.TerminalResizeParams{TerminalID: id, Cols: 100, Rows: 30}))
		require.NoError(t, x.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: id, Data: "w7ZrCg==", Encoding: "base64"}))
		h.wait(t, func() bool { return h.exit(id) != nil }, "the exit")
		assert.Equal(t, 3, h.exit(id).ExitCode)
		assert.Contains(t, h.printed(id), "30 100")
		assert.Contains(t, h.printed(id), "there ök")
	})
	t.Run("what is no text", func(t *testing.T) {
		id := shell(t, x, `printf 'a\303'; sleep 0.2; printf '\244b'; sleep 0.2; printf '\377'`)
		h.wait(t, func() bool { return h.exit(id) != nil }, "the exit")
		assert.Equal(t, "utf-8:autf-8:äbbase64:/w==", h.printed(id))
	})
	t.Run("close", func(t *testing.T) {
		id := shell(t, x, `trap '' HUP; echo up; sleep 600`)
		h.wait(t, func() bool { return strings.Contains(h.printed(id), "up") }, "that it is up")
		began := time.Now()
		closed, err := x.TerminalClose(ctx, catalog.TerminalCloseParams{TerminalID: id})
		require.NoError(t, err)
		assert.True(t, closed.Closed)
		h.wait(t, func() bool { return h.exit(id) != nil }, "the exit")
		assert.Equal(t, "SIGKILL", h.exit(id).Signal)
		assert.GreaterOrEqual(t, time.Since(began), time.Second, "it has a moment to end by itself")
		_, err = x.TerminalClose(ctx, catalog.TerminalCloseParams{TerminalID: id})
		requireKind(t, err, "terminal_not_found")
	})
	t.Run("a program that does not read", func(t *testing.T) {
		id := shell(t, x, `stty raw -echo; echo up; sleep 600`)
		h.wait(t, func() bool { return strings.Contains(h.printed(id), "up") }, "that it is up")
		var err error
		for i := 0; i < 10 && err == nil; i++ {
			err = x.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: id, Data: strings.Repeat("x", 1<<19)})
		}
		requireKind(t, err, "overloaded")
	})
	t.Run("nobody", func(t *testing.T) {
		requireKind(t, x.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: "no"}), "terminal_not_found")
		requireKind(t, x.TerminalResize(ctx, catalog.TerminalResizeParams{TerminalID: "no"}), "terminal_not_found")
		_, err := x.SpawnTerminal(ctx, catalog.SpawnTerminalParams{Shell: "no-such-shell"})
		requireKind(t, err, "terminal_failed")
	})
	t.Run("no tmux", func(t *testing.T) {
		_, err := x.SpawnTerminal(ctx, catalog.SpawnTerminalParams{UseTmux: true, Env: map[string]string{"PATH": t.TempDir()}})
		requireKind(t, err, "tmux_not_found")
	})
	t.Run("tmux", func(t *testing.T) {
		if _, err := exec.LookPath("tmux"); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal("tmux is not installed")
			}
			t.Skip("tmux is not installed")
		}
		dir := t.TempDir()
		env := map[string]string{"TMUX_TMPDIR": dir}
		result, err := x.SpawnTerminal(ctx, catalog.SpawnTerminalParams{UseTmux: true, TmuxSessionName: "duet-test", TmuxWindowName: "w1", Env: env})
		require.NoError(t, err)
		h.wait(t, func() bool { return strings.Contains(h.printed(result.TerminalID), "w1") }, "the window's name")
		kill := exec.Command("tmux", "kill-server")
		kill.Env = []string{"TMUX_TMPDIR=" + dir, "PATH=/usr/bin:/bin"}
		require.NoError(t, kill.Run())
		h.wait(t, func() bool { return h.exit(result.TerminalID) != nil }, "the exit")
	})
}

func requireKind(t *testing.T, err error, kind string) {
	t.Helper()
	var wire *jsonrpc2.Error
	require.ErrorAs(t, err, &wire)
	require.NotNil(t, wire.Data)
	assert.Contains(t, string(*wire.Data), `"`+kind+`"`)
}
