//go:build unix

package client_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/stdio"
)

// process is the program that the tests of Command start.
func process(mode string) {
	switch mode {
	case "stubborn": // runs until it is killed
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
		defer func() {
			for deadline := time.After(time.Hour); ; { // of a test that was killed
				select {
				case <-signals:
				case <-deadline:
					return
				}
			}
		}()
	case "talkative": // writes a lot before it ends
		defer func() {
			if _, err := dup(os.Stdout).WriteString(strings.Repeat("x", 1<<20)); err != nil {
				return
			}
			os.WriteFile(os.Getenv("CLIENT_TEST_FILE"), []byte("done"), 0o600)
		}()
	}
	reg := standard()
	server.Handle(reg, "pid", func(context.Context, struct{}) (int, error) { return os.Getpid(), nil })
	server.Handle(reg, "die", func(context.Context, struct{}) (int, error) {
		os.Exit(3)
		return 0, nil
	})
	err := server.New(reg, server.Options{}).Serve(context.Background(), stdio.Files(os.Stdin, dup(os.Stdout)), frame.LSP)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// dup leaves os.Stdout open when the server closes its own.
func dup(f *os.File) *os.File {
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		panic(err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		panic(err)
	}
	return os.NewFile(uintptr(fd), "stdout")
}

func command(t *testing.T, mode string, env ...string) *client.Process {
	self, err := os.Executable()
	require.NoError(t, err)
	p := client.Command(self)
	p.Env = append(os.Environ(), append(env, "CLIENT_TEST_PROCESS="+mode, "GORACE=atexit_sleep_ms=0")...)
	return p
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestCommand(t *testing.T) {
	for mode, killAfter := range map[string]time.Duration{
		"orderly":  time.Hour,
		"stubborn": 50 * time.Millisecond,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := command(t, mode)
			p.KillAfter(killAfter)
			c := dial(t, p)
			var pid int
			require.NoError(t, c.Call(context.Background(), "pid", nil, &pid))
			big := strings.Repeat("x", 3<<20)
			var got string
			require.NoError(t, c.Call(context.Background(), "echo", big, &got))
			assert.True(t, big == got)
			assert.True(t, alive(pid))
			require.NoError(t, c.Close())
			assert.False(t, alive(pid), "Close waits for the process")
		})
	}
}

func TestCommandMayFinish(t *testing.T) {
	file := t.TempDir() + "/f"
	c := dial(t, command(t, "talkative", "CLIENT_TEST_FILE="+file))
	require.NoError(t, c.Call(context.Background(), "echo", 1, nil))
	require.NoError(t, c.Close())
	assert.FileExists(t, file, "what it still wrote was read")
}

func TestCommandThatDies(t *testing.T) {
	c := dial(t, command(t, "orderly"))
	states := make(chan client.State, 10)
	defer c.OnState(func(s client.State) { states <- s })()
	err := c.Call(context.Background(), "die", nil, nil)
	var d *client.DisconnectedError
	require.ErrorAs(t, err, &d)
	assert.True(t, d.Sent)
	state := <-states
	if state == client.Connected { // which may be reported late
		state = <-states
	}
	assert.Equal(t, client.Disconnected, state, "no reconnecting unless configured")
	err = c.Call(context.Background(), "echo", 1, nil)
	require.ErrorAs(t, err, &d)
	assert.False(t, d.Sent)
}

func TestCommandIsStartedAgain(t *testing.T) {
	c := dial(t, command(t, "orderly"), client.WithReconnect(true))
	var first, second int
	require.NoError(t, c.Call(context.Background(), "pid", nil, &first))
	require.ErrorIs(t, c.Call(context.Background(), "die", nil, nil), client.ErrDisconnected)
	require.NoError(t, c.Call(context.Background(), "pid", nil, &second))
	assert.NotEqual(t, first, second)
	assert.False(t, alive(first))
}
