//go:build unix

package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/catalogrpc"
	"github.com/duet-rpc/duet-rpc/internal/executor"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/server"
)

// serveInherited runs an executor process.
func serveInherited() {
	link, err := executor.Inherited()
	if err == nil {
		err = executor.Serve(context.Background(), link, executor.Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startProcess starts an executor process for h, and returns it and the link.
func startProcess(t *testing.T, h *hub) (*exec.Cmd, *server.Conn) {
	fds := must(syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))(t)
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	theirs, ours := os.NewFile(uintptr(fds[0]), "executor"), os.NewFile(uintptr(fds[1]), "hub")
	conn := must(net.FileConn(ours))(t)
	ours.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playExecutor+"=1", catalogrpc.FDVariable+"=3", "GORACE=atexit_sleep_ms=0")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	theirs.Close()
	reg := server.NewRegistry()
	catalogrpc.RegisterDaemon(reg, h)
	rpc := server.New(reg, executor.LinkOptions(nil)).Connect(context.Background(), conn, frame.NDJSON)
	t.Cleanup(func() {
		rpc.End()
		cmd.Process.Kill()
		<-rpc.Done()
	})
	return cmd, rpc
}

func TestOverTheLink(t *testing.T) {
	h := newHub()
	cmd, rpc := startProcess(t, h)
	x := catalogrpc.Executor(rpc)
	for i, word := range []string{"flood", "edit", "invalid"} {
		p := prompt(t, "plain", word)
		p.TaskID = fmt.Sprint("task-", i)
		result := must(x.ExecutePrompt(context.Background(), p))(t)
		assert.Equal(t, catalog.StatusCompleted, result.Status, "%+v", result.Error)
	}
	h.Await(t, func() bool { return len(h.data(catalog.EventContentDelta)) >= 50_005 }, "all chunks")
	p := prompt(t, "plain", "crash")
	p.TaskID = "task-crash"
	assert.Equal(t, task.CodeExited, must(x.ExecutePrompt(context.Background(), p))(t).Error.Code)

	assert.Equal(t, "idle", must(x.Shutdown(context.Background(), catalog.ShutdownParams{Reason: "test"}))(t).Status)
	assert.NoError(t, cmd.Wait(), "the executor exits by itself")
	requireNoProcess(t, h)
}

func TestHubDies(t *testing.T) {
	h := newHub()
	cmd, rpc := startProcess(t, h)
	x := catalogrpc.Executor(rpc)
	must(x.SpawnTerminal(context.Background(), catalog.SpawnTerminalParams{Shell: "/bin/sh", Args: []string{"-c", "trap '' HUP; sleep 600"}}))(t)
	go x.ExecutePrompt(context.Background(), prompt(t, "plain", "stubborn"))
	h.Await(t, func() bool { return h.text() != "" }, "the agent's first text")
	rpc.End()
	assert.NoError(t, cmd.Wait(), "the executor ends by itself")
	requireNoProcess(t, h)
}

func TestExecutorIsKilled(t *testing.T) {
	h := newHub()
	cmd, rpc := startProcess(t, h)
	go catalogrpc.Executor(rpc).ExecutePrompt(context.Background(), prompt(t, "plain", "sleep"))
	h.Await(t, func() bool { return h.text() != "" }, "the agent's first text")
	require.NoError(t, cmd.Process.Kill())
	cmd.Wait()
	requireNoProcess(t, h) // the system ends the agent with its parent
}

func TestAgentsDoNotInheritTheLink(t *testing.T) {
	h := newHub()
	_, rpc := startProcess(t, h)
	must(catalogrpc.Executor(rpc).ExecutePrompt(context.Background(), prompt(t, "plain", "fds")))(t)
	if _, err := os.Stat("/proc/self/fd"); err == nil {
		assert.Contains(t, h.text(), "pipe:")
	}
	assert.NotContains(t, h.text(), "socket:")
}

func TestWithoutAHub(t *testing.T) {
	t.Setenv(catalogrpc.FDVariable, "")
	assert.ErrorContains(t, errorOf(executor.Inherited()), "not by hand")
	t.Setenv(catalogrpc.FDVariable, "1")
	assert.ErrorContains(t, errorOf(executor.Inherited()), "above 2")
}
