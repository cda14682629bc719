//go:build unix

package executor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/catalogrpc"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

// printed returns a terminal's output, however many pieces it came in.
func (h *hub) printed(id string) string {
	return strings.ReplaceAll(h.Printed(id), "utf-8:", "")
}

// Each call of the catalog reaches the terminals, directly and over the link. terminal_test.go
// tests their behaviour.
func TestTerminalsOfAnExecutor(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *hub) catalog.Executor{
		"here": func(t *testing.T, h *hub) catalog.Executor { return newExecutor(t, h, executor.Options{}) },
		"over the link": func(t *testing.T, h *hub) catalog.Executor {
			_, rpc := startProcess(t, h)
			return catalogrpc.Executor(rpc)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub()
			x := start(t, h)
			ctx := context.Background()
			terminal, err := x.SpawnTerminal(ctx, catalog.SpawnTerminalParams{
				Shell: "sh", Args: []string{"-c", `stty -echo; echo up; while read a; do stty size; echo "got $a"; done`}, CWD: t.TempDir(),
			})
			require.NoError(t, err)
			id := terminal.TerminalID
			h.Await(t, func() bool { return strings.Contains(h.printed(id), "up") }, "that it is up")
			require.NoError(t, x.TerminalResize(ctx, catalog.TerminalResizeParams{TerminalID: id, Cols: 100, Rows: 30}))
			require.NoError(t, x.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: id, Data: "one\n"}))
			h.Await(t, func() bool { return strings.Contains(h.printed(id), "30 100\r\ngot one\r\n") }, "what it read")
			require.NoError(t, x.PauseNotifications(ctx))
			require.NoError(t, x.ResumeNotifications(ctx))
			if name == "here" { // the link of this test passes no descriptors
				file, err := x.TerminalDescriptor(ctx, catalog.TerminalDescriptorParams{TerminalID: id})
				require.NoError(t, err)
				file.Close()
				require.NoError(t, x.TerminalReturn(ctx, catalog.TerminalReturnParams{TerminalID: id}))
			}
			require.NoError(t, x.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: id, Data: "two\n"}))
			h.Await(t, func() bool { return strings.Contains(h.printed(id), "got two\r\n") }, "that it is read")
			closed, err := x.TerminalClose(ctx, catalog.TerminalCloseParams{TerminalID: id})
			require.NoError(t, err)
			assert.True(t, closed.Closed)
			h.Await(t, func() bool { return h.Exit(id) != nil }, "the exit")
			assert.Error(t, x.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: id}), "it has ended")
		})
	}
}
