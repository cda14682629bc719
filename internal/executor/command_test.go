//go:build unix

package executor_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

func command(t *testing.T, kind, text string, argv ...string) catalog.ExecutePromptParams {
	p := prompt(t, "", text)
	p.Launch.Driver = "command"
	p.Launch.Command = append([]string{os.Args[0]}, argv...)
	p.Launch.Env = map[string]string{playCommand: kind, "GORACE": "atexit_sleep_ms=0"}
	return p
}

func TestCommands(t *testing.T) {
	history := []catalog.Message{{Role: "user", Content: "before"}, {Role: "assistant", Content: "yes"}}
	for _, c := range []struct {
		name   string
		p      catalog.ExecutePromptParams
		change func(*catalog.AgentLaunch)
		has    []catalog.Message
		text   string
	}{
		{name: "last argument", p: command(t, "args", "do it", "-x"), text: "-x|do it"},
		{name: "in its place", p: command(t, "args", "do it", "--p={prompt}", "-x"), text: "--p=do it|-x"},
		{name: "no option, last", p: command(t, "args", "--help me", "-x"), text: "-x| --help me"},
		{name: "no option, in its place", p: command(t, "args", "-rf", "{prompt}", "{prompt}.", "--p={prompt}", "-{prompt}", "a{prompt}"), text: " -rf| -rf.|--p=-rf|--rf|a-rf"},
		{name: "no option, in the middle", p: command(t, "args", "do -x"), text: "do -x"},
		{name: "no option on stdin", p: command(t, "stdin", "-x"), change: func(l *catalog.AgentLaunch) { l.Prompt = "stdin" }, text: "[] 2 -x"},
		{name: "stdin", p: command(t, "stdin", "do it", "-x", "{prompt}"), change: func(l *catalog.AgentLaunch) { l.Prompt = "stdin" }, text: "[-x] 5 do it"},
		{name: "100 KiB", p: command(t, "args", strings.Repeat("x", 100<<10)), text: strings.Repeat("x", 100<<10)},
		{name: "over 100 KiB", p: command(t, "stdin", strings.Repeat("x", 100<<10+1), "-x"), text: "[-x] 102401 " + strings.Repeat("x", 100)},
		{name: "no history", p: command(t, "args", "now"), has: history, change: func(l *catalog.AgentLaunch) { l.History = "none" }, text: "now"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			h.context.Messages = c.has
			x := newExecutor(t, h, executor.Options{})
			if c.change != nil {
				c.change(c.p.Launch)
			}
			result := completes(t, x, c.p)
			assert.Equal(t, 1, result.MessageCount)
			assert.Equal(t, c.text, h.text())
		})
	}
	t.Run("history", func(t *testing.T) {
		h := newHub()
		h.context.Messages = history
		x := newExecutor(t, h, executor.Options{})
		execute(t, x, command(t, "args", "now"))
		assert.Contains(t, h.text(), "User: before\n\nAssistant: yes\n\n")
		assert.True(t, strings.HasSuffix(h.text(), "\n\nnow"))
	})
	t.Run("what is printed last waits for the hub", func(t *testing.T) {
		h, x := hubAndExecutor(t)
		h.onReport = func(r catalog.ReportMessageParams) {
			if r.EventType == catalog.EventProcess {
				x.PauseNotifications(context.Background())
				time.AfterFunc(1500*time.Millisecond, func() { x.ResumeNotifications(context.Background()) })
			}
		}
		execute(t, x, command(t, "much", "x"))
		assert.Len(t, h.text(), 60_000)
	})
	t.Run("split character", func(t *testing.T) {
		h, x := hubAndExecutor(t)
		gate := filepath.Join(t.TempDir(), "gate")
		require.NoError(t, syscall.Mkfifo(gate, 0o600))
		p := command(t, "split", "x")
		p.Launch.Env[splitGate] = gate
		go func() {
			h.Await(t, func() bool { return h.text() != "" }, "the first half")
			assert.NoError(t, os.WriteFile(gate, nil, 0o600))
		}()
		result := completes(t, x, p)
		assert.Equal(t, 1, result.MessageCount)
		assert.Equal(t, "aäb\uFFFD", h.text())
	})
	t.Run("failure", func(t *testing.T) {
		h, x := hubAndExecutor(t)
		result := execute(t, x, command(t, "fail", "x"))
		require.NotNil(t, result.Error)
		assert.Equal(t, task.CodeExited, result.Error.Code)
		assert.Contains(t, result.Error.Message, "exited with status 5: out of luck")
		assert.Equal(t, "some", h.text())
	})
	t.Run("stop", func(t *testing.T) {
		h, x := hubAndExecutor(t)
		go stopAtWork(t, h, x)
		assert.Equal(t, catalog.StatusCancelled, execute(t, x, command(t, "hang", "x")).Status)
		requireNoProcess(t, h)
	})
}

// fakeCommand is a program without a protocol.
func fakeCommand() {
	args := os.Args[1:]
	switch os.Getenv(playCommand) {
	case "args":
		fmt.Print(strings.Join(args, "|"))
	case "stdin":
		var b bytes.Buffer
		b.ReadFrom(os.Stdin)
		fmt.Printf("%v %d %s", args, b.Len(), b.String()[:min(b.Len(), 100)])
	case "split":
		os.Stdout.Write([]byte("a\xc3"))
		os.ReadFile(os.Getenv(splitGate)) // a named pipe: blocks until the test, which has read the first half, opens it
		os.Stdout.Write([]byte("\xa4b\xff"))
	case "much":
		fmt.Print(strings.Repeat("x", 60_000))
	case "fail":
		fmt.Print("some")
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(5)
	case "hang":
		fmt.Print("hanging")
		sleeper().Run()
	}
}
