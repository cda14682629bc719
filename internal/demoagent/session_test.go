package demoagent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/demoagent"
)

func (c *client) resume(id acp.SessionId, cwd string) error {
	_, err := c.conn.ResumeSession(c.t.Context(), acp.ResumeSessionRequest{SessionId: id, Cwd: cwd})
	return err
}

func (c *client) load(id acp.SessionId, cwd string) error {
	_, err := c.conn.LoadSession(c.t.Context(), acp.LoadSessionRequest{SessionId: id, Cwd: cwd, McpServers: []acp.McpServer{}})
	return err
}

func TestSessionsOutliveTheProcess(t *testing.T) {
	state, dir := filepath.Join(t.TempDir(), "state"), t.TempDir()
	opts := demoagent.Options{StateDir: state}
	c := start(t, opts, everything)
	id := c.session(dir)
	c.turn(id, "think")
	_, err := c.conn.SetSessionMode(t.Context(), acp.SetSessionModeRequest{SessionId: id, ModeId: "acceptEdits"})
	require.NoError(t, err)
	text := c.text()
	c.in.Close()
	require.NoError(t, c.requireEnd())

	info, err := os.Stat(filepath.Join(state, string(id)+".json"))
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}

	c = start(t, opts, everything)
	_, err = c.prompt(id, "quiet")
	assert.ErrorContains(t, err, "there is no such session", "it was neither loaded nor resumed")
	require.NoError(t, c.load(id, dir))
	assert.Equal(t, "thought call:edit:completed", c.shape())
	assert.Equal(t, text, c.text())
	require.NotNil(t, c.seen()[0].UserMessageChunk)
	c.turn(id, "more")
	assert.Zero(t, c.asked(), "the mode came back")
	c.in.Close()
	require.NoError(t, c.requireEnd())

	c = start(t, opts, everything)
	require.NoError(t, c.resume(id, dir))
	assert.Empty(t, c.seen())
	c.turn(id, "quiet")
	for _, unknown := range []string{"0198b2a0-0000-7000-8000-000000000000", "../x", ""} {
		assert.ErrorContains(t, c.load(acp.SessionId(unknown), dir), "-32", unknown)
		assert.Error(t, c.resume(acp.SessionId(unknown), dir), unknown)
	}
	_, err = c.conn.CloseSession(t.Context(), acp.CloseSessionRequest{SessionId: id})
	require.NoError(t, err)
	_, err = c.prompt(id, "quiet")
	assert.Error(t, err)
	require.NoError(t, c.resume(id, dir))
}

func TestListIsPaged(t *testing.T) {
	c := start(t, demoagent.Options{StateDir: t.TempDir()}, everything)
	dir := t.TempDir()
	var ids []acp.SessionId
	for range 101 {
		ids = append([]acp.SessionId{c.session(dir)}, ids...)
	}
	other := c.session(t.TempDir())
	list := func(r acp.ListSessionsRequest) (got []acp.SessionId, next *string) {
		resp, err := c.conn.ListSessions(t.Context(), r)
		require.NoError(t, err)
		for _, s := range resp.Sessions {
			got = append(got, s.SessionId)
		}
		return got, resp.NextCursor
	}
	first, next := list(acp.ListSessionsRequest{Cwd: &dir})
	assert.Equal(t, ids[:100], first)
	require.NotNil(t, next)
	rest, next := list(acp.ListSessionsRequest{Cwd: &dir, Cursor: next})
	assert.Equal(t, ids[100:], rest)
	assert.Nil(t, next)
	all, _ := list(acp.ListSessionsRequest{})
	assert.Equal(t, other, all[0])
}

// A turn that was interrupted during its question is continued with the same question, in this
// process or the next.
func TestContinue(t *testing.T) {
	for _, text := range []string{"please edit", "permit:2", "ask"} {
		for _, how := range []string{"cancelled", "process ended"} {
			t.Run(text+"/"+how, func(t *testing.T) {
				opts := demoagent.Options{StateDir: t.TempDir()}
				dir := t.TempDir()
				c := start(t, opts, everything)
				c.answers(untilEnd)
				id := c.session(dir)
				for range 2 { // a continued turn may be interrupted, too
					done := c.background(id, "continue after that "+text)
					c.Await(c.t, func() bool { return c.asked() > 0 }, "it asks")
					before := c.asks()[0]
					if how == "cancelled" {
						require.NoError(t, c.conn.Cancel(t.Context(), acp.CancelNotification{SessionId: id}))
						assert.Equal(t, acp.StopReasonCancelled, c.within(done))
						c.forget()
					} else {
						c.in.Close()
						require.NoError(t, c.requireEnd())
						c.within(done)
						c = start(t, opts, everything)
						require.NoError(t, c.resume(id, dir))
					}
					// Another program has written the file meanwhile: the input stays the same.
					require.NoError(t, os.WriteFile(filepath.Join(dir, "demo.txt"), []byte("changed\n"), 0o600))
					c.answers(untilEnd)
					done = c.background(id, "Continue.")
					c.Await(c.t, func() bool { return c.asked() > 0 }, "it asks again")
					again := c.asks()[0]
					assert.Equal(t, before.ToolCall.RawInput, again.ToolCall.RawInput)
					assert.Equal(t, before.ToolCall.Title, again.ToolCall.Title)
					assert.Equal(t, before.ToolCall.Meta, again.ToolCall.Meta)
					c.Await(c.t, func() bool {
						return strings.Contains(c.text(), "Continuing what was cut short: continue after that "+text)
					}, "it says so; the SDK lets a request overtake updates")
					require.NoError(t, c.conn.Cancel(t.Context(), acp.CancelNotification{SessionId: id}))
					assert.Equal(t, acp.StopReasonCancelled, c.within(done))
					c.forget()
				}
				c.answers(choose("allow_once"))
				if text == "ask" {
					c.answers(choose("red"))
				}
				c.turn(id, "CONTINUE, please")
				assert.Contains(t, c.text(), "That is all. ")
				c.forget()
				c.turn(id, "continue quiet")
				assert.NotContains(t, c.text(), "cut short", "there is nothing to continue")
			})
		}
	}
}

// Text of duet-rpc around the request contains no keywords for the demo agent, whatever words it
// has.
func TestContinueARequest(t *testing.T) {
	resume := func(request string) string {
		return "Continue where you left off: ask, quiet and hang.\n\nThe request was:\n\n" + request
	}
	for _, ended := range []bool{true, false} {
		opts := demoagent.Options{StateDir: t.TempDir()}
		dir := t.TempDir()
		c := start(t, opts, everything)
		c.answers(untilEnd)
		id := c.session(dir)
		done := c.background(id, "please edit")
		c.Await(c.t, func() bool { return c.asked() > 0 }, "it asks")
		before := c.asks()[0]
		if ended {
			c.in.Close()
			require.NoError(t, c.requireEnd())
			c.within(done)
			c = start(t, opts, everything)
			require.NoError(t, c.resume(id, dir))
		} else {
			require.NoError(t, c.conn.Cancel(t.Context(), acp.CancelNotification{SessionId: id}))
			assert.Equal(t, acp.StopReasonCancelled, c.within(done))
		}
		c.turn(id, "quiet") // a later turn
		c.forget()
		c.answers(choose("allow_once"))
		c.turn(id, resume(resume("please edit")))
		require.Len(t, c.asks(), 1)
		assert.Equal(t, before.ToolCall.RawInput, c.asks()[0].ToolCall.RawInput, "it is the old question")
		assert.Contains(t, c.text(), "Continuing what was cut short: please edit")
		c.forget()
		c.turn(id, resume("please edit"))
		assert.Contains(t, c.text(), "You asked: please edit", "there is nothing to continue any more, so it is done anew")
		require.Len(t, c.asks(), 1)
		assert.NotEqual(t, before.ToolCall.RawInput, c.asks()[0].ToolCall.RawInput)
	}
}

func TestContinueAfterACrashDoesNotCrashAgain(t *testing.T) {
	opts := demoagent.Options{StateDir: t.TempDir()}
	dir := t.TempDir()
	c := start(t, opts, everything)
	id := c.session(dir)
	c.background(id, "crash")
	require.ErrorIs(t, c.requireEnd(), demoagent.ErrCrash)
	c = start(t, opts, everything)
	require.NoError(t, c.load(id, dir))
	c.turn(id, "continue")
	assert.FileExists(t, filepath.Join(dir, "demo.txt"))
}

// Of two permissions, the second is asked again, not the first.
func TestContinueSecondPermission(t *testing.T) {
	c := start(t, demoagent.Options{}, everything)
	id := c.session(t.TempDir())
	asked := 0
	c.answers(func(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
		if asked++; asked == 2 {
			return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
		}
		return choose("allow_once")(ctx, r)
	})
	_, err := c.prompt(id, "permit:3")
	require.NoError(t, err)
	c.forget()
	c.turn(id, "continue")
	require.Len(t, c.asks(), 2)
	assert.Equal(t, map[string]any{"command": "echo 2"}, c.asks()[0].ToolCall.RawInput)
}

func TestLongSessionHasASmallFile(t *testing.T) {
	state := t.TempDir()
	c := start(t, demoagent.Options{StateDir: state}, everything)
	id := c.session(t.TempDir())
	for i := range 60 {
		c.turn(id, fmt.Sprintf("quiet %d %s", i, strings.Repeat("long ", 2000)))
	}
	info, err := os.Stat(filepath.Join(state, string(id)+".json"))
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(600<<10))
	c.forget()
	require.NoError(t, c.load(id, t.TempDir()))
	prompts := 0
	for _, u := range c.seen() {
		if u.UserMessageChunk != nil {
			prompts++
		}
	}
	assert.Equal(t, 50, prompts)
}

func TestReadOnlyDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	c := start(t, demoagent.Options{StateDir: filepath.Join(file, "state")}, everything)
	c.turn(c.session(t.TempDir()), "quiet")
}

// Before its first edit in a user's repository, the agent says that it is a demo.
func TestTheFirstEditOfARepositorySaysDemo(t *testing.T) {
	const says = "This is a demo without a model."
	repository, plain := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(repository, ".git", "objects"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(repository, "below"), 0o700))
	c := start(t, demoagent.Options{StateDir: t.TempDir()}, everything)
	for _, x := range []struct {
		dir  string
		says int
	}{{repository, 1}, {repository, 1}, {plain, 1}, {filepath.Join(repository, "below"), 2}} {
		c.turn(c.session(x.dir), "mode acceptEdits edit")
		require.NoError(t, os.WriteFile(filepath.Join(x.dir, "demo.txt"), []byte("there\n"), 0o600))
		assert.Equal(t, x.says, strings.Count(c.text(), says), x.dir)
	}
}
