package demoagent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/demoagent"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon is longer than any step of these tests.
const soon = time.Minute

// answer is a user's reaction to a permission request.
type answer func(context.Context, acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error)

// client is an editor that records updates and answers as configured.
type client struct {
	t    *testing.T
	conn *acp.ClientSideConnection
	in   io.Closer    // the agent's standard input
	ends chan error   // what Serve returned
	raw  *rawRecorder // the agent's output

	testkit.Witness // its lock guards the fields below
	human           answer
	updates         []acp.SessionUpdate
	permissions     []acp.RequestPermissionRequest
	writes          []acp.WriteTextFileRequest
	terminals       []string // methods called
}

// rawRecorder records the agent's output, for lines that the SDK drops.
type rawRecorder struct{ testkit.Text }

func (r *rawRecorder) lines() []string {
	return strings.Split(strings.TrimSuffix(r.String(), "\n"), "\n")
}

func (c *client) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	c.Note(func() { c.updates = append(c.updates, n.Update) })
	return nil
}

func (c *client) RequestPermission(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	var human answer
	c.Note(func() {
		c.permissions = append(c.permissions, r)
		human = c.human
	})
	return human(ctx, r)
}

func (c *client) answers(with answer) {
	c.Lock()
	defer c.Unlock()
	c.human = with
}

// asks returns the permission requests so far.
func (c *client) asks() []acp.RequestPermissionRequest {
	c.Lock()
	defer c.Unlock()
	return append([]acp.RequestPermissionRequest(nil), c.permissions...)
}

func (c *client) ReadTextFile(_ context.Context, r acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	data, err := os.ReadFile(r.Path)
	return acp.ReadTextFileResponse{Content: string(data)}, err
}

func (c *client) WriteTextFile(_ context.Context, r acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	c.Lock()
	defer c.Unlock()
	c.writes = append(c.writes, r)
	return acp.WriteTextFileResponse{}, os.WriteFile(r.Path, []byte(r.Content), 0o600)
}

func (c *client) called(name string) {
	c.Lock()
	defer c.Unlock()
	c.terminals = append(c.terminals, name)
}

func (c *client) CreateTerminal(_ context.Context, r acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	c.called("create " + r.Command)
	return acp.CreateTerminalResponse{TerminalId: "term-1"}, nil
}

func (c *client) KillTerminal(context.Context, acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	c.called("kill")
	return acp.KillTerminalResponse{}, nil
}

func (c *client) TerminalOutput(context.Context, acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	c.called("output")
	return acp.TerminalOutputResponse{Output: "total 0\n"}, nil
}

func (c *client) ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
	c.called("release")
	return acp.ReleaseTerminalResponse{}, nil
}

func (c *client) WaitForTerminalExit(context.Context, acp.WaitForTerminalExitRequest) (acp.WaitForTerminalExitResponse, error) {
	c.called("wait")
	return acp.WaitForTerminalExitResponse{ExitCode: acp.Ptr(0)}, nil
}

// choose answers every permission with an option.
func choose(option string) answer {
	return func(context.Context, acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
		return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(acp.PermissionOptionId(option))}, nil
	}
}

// untilEnd is a user who never answers.
func untilEnd(ctx context.Context, _ acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	<-ctx.Done()
	return acp.RequestPermissionResponse{}, ctx.Err()
}

var everything = acp.ClientCapabilities{Terminal: true, Fs: acp.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}}

// start starts an agent in this process and initializes it.
func start(t *testing.T, opts demoagent.Options, caps acp.ClientCapabilities) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: t, in: inW, ends: make(chan error, 1), raw: &rawRecorder{}, human: choose("allow_once")}
	go func() {
		err := demoagent.Serve(context.Background(), inR, outW, opts)
		outW.Close()
		inR.Close()
		c.ends <- err
	}()
	// The SDK ends a connection whose queue of 1,024 notifications is full: only turns with fewer
	// updates can use it.
	// only turns with fewer updates than that go through it.
	c.conn = acp.NewClientSideConnection(c, inW, io.TeeReader(outR, c.raw))
	t.Cleanup(func() { inW.Close(); outR.Close(); <-c.conn.Done() })
	resp, err := c.conn.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: 1, ClientCapabilities: caps})
	require.NoError(t, err)
	require.True(t, resp.AgentCapabilities.LoadSession)
	require.NotNil(t, resp.AgentCapabilities.SessionCapabilities.Resume)
	return c
}

func init() { slog.SetLogLoggerLevel(slog.LevelError + 1) } // the SDK logs the end of each connection

func (c *client) session(cwd string) acp.SessionId {
	c.t.Helper()
	resp, err := c.conn.NewSession(c.t.Context(), acp.NewSessionRequest{Cwd: cwd, McpServers: []acp.McpServer{}})
	require.NoError(c.t, err)
	require.Len(c.t, resp.Modes.AvailableModes, 4)
	return resp.SessionId
}

func (c *client) prompt(id acp.SessionId, text string) (acp.PromptResponse, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), soon)
	defer cancel()
	return c.conn.Prompt(ctx, acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
}

// turn sends a prompt that must succeed.
func (c *client) turn(id acp.SessionId, text string) {
	c.t.Helper()
	resp, err := c.prompt(id, text)
	require.NoError(c.t, err)
	require.Equal(c.t, acp.StopReasonEndTurn, resp.StopReason)
	require.Positive(c.t, resp.Usage.TotalTokens)
}

// background sends a prompt without waiting for its end.
func (c *client) background(id acp.SessionId, text string) <-chan acp.StopReason {
	done := make(chan acp.StopReason, 1)
	go func() {
		resp, err := c.conn.Prompt(context.Background(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
		if err != nil {
			resp.StopReason = acp.StopReason("error: " + err.Error())
		}
		done <- resp.StopReason
	}()
	return done
}

func (c *client) within(done <-chan acp.StopReason) acp.StopReason {
	c.t.Helper()
	select {
	case got := <-done:
		return got
	case <-time.After(soon):
		c.t.Fatal("the turn does not end")
		return ""
	}
}

func (c *client) requireEnd() error {
	c.t.Helper()
	select {
	case err := <-c.ends:
		return err
	case <-time.After(soon):
		c.t.Fatal("Serve does not return")
		return nil
	}
}

func (c *client) asked() int { return len(c.asks()) }

func (c *client) seen() []acp.SessionUpdate {
	c.Lock()
	defer c.Unlock()
	return append([]acp.SessionUpdate(nil), c.updates...)
}

func (c *client) forget() {
	c.Lock()
	defer c.Unlock()
	c.updates, c.permissions = nil, nil
}

func (c *client) text() string {
	var b strings.Builder
	for _, u := range c.seen() {
		if u.AgentMessageChunk != nil {
			b.WriteString(u.AgentMessageChunk.Content.Text.Text)
		}
	}
	return b.String()
}

// shape returns the kinds of the updates in order, without text.
func (c *client) shape() string {
	var kinds []string
	for _, u := range c.seen() {
		switch {
		case u.Plan != nil:
			marks := ""
			for _, e := range u.Plan.Entries {
				marks += string(e.Status[0])
			}
			kinds = append(kinds, "plan:"+marks)
		case u.ToolCall != nil:
			kinds = append(kinds, "call:"+string(u.ToolCall.Kind)+":"+string(u.ToolCall.Status))
		case u.ToolCallUpdate != nil:
			kinds = append(kinds, "update:"+string(*u.ToolCallUpdate.Status))
		case u.UsageUpdate != nil:
			kinds = append(kinds, "usage")
		case u.AgentThoughtChunk != nil:
			if n := len(kinds); n == 0 || kinds[n-1] != "thought" {
				kinds = append(kinds, "thought")
			}
		}
	}
	return strings.Join(kinds, " ")
}

func TestTurnWithoutKeywords(t *testing.T) {
	for name, caps := range map[string]acp.ClientCapabilities{"through the client": everything, "by itself": {}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := start(t, demoagent.Options{}, caps)
			id := c.session(dir)
			c.turn(id, "please do "+strings.Repeat("é", 100))
			assert.Equal(t, "plan:ppp plan:ipp plan:cip call:edit:pending update:completed plan:cci plan:ccc usage", c.shape())
			assert.Contains(t, c.text(), "You asked: please do "+strings.Repeat("é", 70)+" ")
			require.Equal(t, 1, c.asked())
			ask := c.asks()[0]
			assert.Len(t, ask.Options, 4)
			assert.Equal(t, filepath.Join(dir, "demo.txt"), ask.ToolCall.Locations[0].Path)
			first, err := os.ReadFile(filepath.Join(dir, "demo.txt"))
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"file_path": filepath.Join(dir, "demo.txt"), "content": string(first)}, ask.ToolCall.RawInput)
			assert.Nil(t, ask.ToolCall.Content[0].Diff.OldText)
			c.turn(id, "again")
			second, err := os.ReadFile(filepath.Join(dir, "demo.txt"))
			require.NoError(t, err)
			assert.Equal(t, string(first)+"Turn 2: again\n", string(second))
			assert.Equal(t, string(first), *c.asks()[1].ToolCall.Content[0].Diff.OldText)
			assert.Equal(t, caps.Fs.WriteTextFile, len(c.writes) == 2)
		})
	}
}

// A background task of a turn is an open tool call until it ends. Then an agent-initiated turn
// begins.
func TestBackgroundTask(t *testing.T) {
	c := start(t, demoagent.Options{}, everything)
	id := c.session(t.TempDir())
	c.turn(id, "quiet background")
	c.Await(c.t, func() bool { return strings.Contains(c.text(), "I wrote demo.txt. ") }, "it has gone on")
	c.Await(c.t, func() bool { return strings.HasSuffix(c.shape(), "plan:ccc") }, "its plan is done")
	assert.Equal(t, "call:execute:in_progress usage update:completed call:edit:pending update:completed plan:cci plan:ccc", c.shape())
	for _, u := range c.seen() {
		if u.ToolCall != nil && u.ToolCall.Kind == acp.ToolKindExecute {
			assert.Equal(t, "sleep 0.3", u.ToolCall.Title)
		}
	}
}

func TestPermissionAnswers(t *testing.T) {
	run := func(t *testing.T, option string) (*client, acp.SessionId, string) {
		dir := t.TempDir()
		c := start(t, demoagent.Options{}, acp.ClientCapabilities{})
		c.answers(choose(option))
		id := c.session(dir)
		c.turn(id, "one")
		return c, id, filepath.Join(dir, "demo.txt")
	}
	t.Run("rejected", func(t *testing.T) {
		c, _, path := run(t, "reject_once")
		assert.NoFileExists(t, path)
		assert.Contains(t, c.text(), "Nothing was changed. ")
		assert.Contains(t, c.shape(), "update:failed")
	})
	t.Run("always", func(t *testing.T) {
		c, id, path := run(t, "allow_always")
		c.turn(id, "two")
		assert.Equal(t, 1, c.asked())
		assert.FileExists(t, path)
	})
	t.Run("never", func(t *testing.T) {
		c, id, path := run(t, "reject_always")
		c.turn(id, "two")
		assert.Equal(t, 1, c.asked())
		assert.NoFileExists(t, path)
	})
	t.Run("unknown option", func(t *testing.T) {
		c, _, path := run(t, "whatever")
		assert.NoFileExists(t, path)
		assert.Contains(t, c.text(), "Nothing was changed: ")
	})
	t.Run("cancelled by the client", func(t *testing.T) {
		c := start(t, demoagent.Options{}, acp.ClientCapabilities{})
		c.answers(func(context.Context, acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
			return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
		})
		resp, err := c.prompt(c.session(t.TempDir()), "one")
		require.NoError(t, err)
		assert.Equal(t, acp.StopReasonCancelled, resp.StopReason)
	})
}

func TestChangedInputIsApplied(t *testing.T) {
	dir := t.TempDir()
	c := start(t, demoagent.Options{}, everything)
	c.answers(func(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
		resp, err := choose("allow_once")(ctx, r)
		resp.Meta = map[string]any{"duet": map[string]any{"updatedInput": map[string]any{"content": "mine\n"}}}
		return resp, err
	})
	c.turn(c.session(dir), "one")
	got, err := os.ReadFile(filepath.Join(dir, "demo.txt"))
	require.NoError(t, err)
	assert.Equal(t, "mine\n", string(got))
	for _, u := range c.seen() {
		if u.ToolCallUpdate != nil {
			assert.Equal(t, "mine\n", u.ToolCallUpdate.Content[0].Diff.NewText)
		}
	}

	// The result of initialize announces that the agent applies a changed input.
	hello, err := c.conn.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"updatedInput": true}, hello.AgentCapabilities.Meta["duet"])
	other := filepath.Join(dir, "other.txt")
	change := map[string]any{"file_path": other}
	c = start(t, demoagent.Options{}, everything)
	c.answers(func(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
		resp, err := choose("allow_once")(ctx, r)
		resp.Meta = map[string]any{"duet": map[string]any{"updatedInput": change}}
		return resp, err
	})
	id := c.session(dir)
	c.turn(id, "one")
	assert.FileExists(t, other)
	change = map[string]any{"command": "echo mine"}
	c.turn(id, "permit:1")
	last := c.seen()[len(c.seen())-1]
	for _, u := range c.seen() {
		if u.ToolCallUpdate != nil {
			last = u
		}
	}
	assert.Equal(t, []any{change, "mine\n"}, []any{last.ToolCallUpdate.RawInput, last.ToolCallUpdate.RawOutput})
}

func TestModes(t *testing.T) {
	for mode, edited := range map[string]bool{"plan": false, "acceptEdits": true, "bypassPermissions": true} {
		t.Run(mode, func(t *testing.T) {
			dir := t.TempDir()
			c := start(t, demoagent.Options{}, acp.ClientCapabilities{})
			id := c.session(dir)
			_, err := c.conn.SetSessionMode(t.Context(), acp.SetSessionModeRequest{SessionId: id, ModeId: acp.SessionModeId(mode)})
			require.NoError(t, err)
			c.turn(id, "one")
			assert.Zero(t, c.asked())
			assert.Contains(t, c.shape(), "plan:ppp")
			_, err = os.Stat(filepath.Join(dir, "demo.txt"))
			assert.Equal(t, edited, err == nil)
			c.turn(id, "permit:1")
			assert.Equal(t, mode != "bypassPermissions", c.asked() == 1)
		})
	}
	c := start(t, demoagent.Options{}, acp.ClientCapabilities{})
	id := c.session(t.TempDir())
	_, err := c.conn.SetSessionMode(t.Context(), acp.SetSessionModeRequest{SessionId: id, ModeId: "yolo"})
	assert.ErrorContains(t, err, "there is no mode")
	c.turn(id, "mode:PLAN")
	assert.Zero(t, c.asked())
}

func TestServeEndsWithItsInput(t *testing.T) {
	for _, text := range []string{"hang", "default", "slow", "quiet stream:1000000@1", "ask"} {
		t.Run(text, func(t *testing.T) {
			hung := make(chan struct{})
			c := start(t, demoagent.Options{OnHang: func() { close(hung) }}, everything)
			c.answers(untilEnd)
			id := c.session(t.TempDir())
			done := c.background(id, text)
			c.Await(c.t, func() bool { return len(c.seen()) > 0 }, "the turn has begun")
			if text == "hang" {
				<-hung
				require.NoError(t, c.conn.Cancel(t.Context(), acp.CancelNotification{SessionId: id}))
				_, err := c.conn.ListSessions(t.Context(), acp.ListSessionsRequest{}) // after its response the cancel was handled, too
				require.NoError(t, err)
				assert.Empty(t, done)
			}
			c.in.Close()
			assert.NoError(t, c.requireEnd())
			assert.Contains(t, c.within(done), "disconnected")
		})
	}
}

// Serve returns even if the client reads nothing.
func TestServeEndsWithUnreadOutput(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ends := make(chan error, 1)
	go func() { ends <- demoagent.Serve(context.Background(), inR, outW, demoagent.Options{}) }()
	_, err := io.WriteString(inW, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`+"\n")
	require.NoError(t, err)
	r := bufio.NewReader(outR)
	line, err := r.ReadBytes('\n')
	require.NoError(t, err)
	var reply struct{ Result struct{ SessionId string } }
	require.NoError(t, json.Unmarshal(line, &reply))
	_, err = io.WriteString(inW, `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"`+reply.Result.SessionId+
		`","prompt":[{"type":"text","text":"quiet stream:100000"}]}}`+"\n")
	require.NoError(t, err)
	_, err = r.ReadByte()
	require.NoError(t, err)
	inW.Close()
	select {
	case err := <-ends:
		assert.NoError(t, err)
	case <-time.After(soon):
		t.Fatal("it does not end")
	}
	outR.Close() // ends the turn's goroutine
}

func TestServeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	inR, inW := io.Pipe()
	ends := make(chan error, 1)
	go func() { ends <- demoagent.Serve(ctx, inR, io.Discard, demoagent.Options{}) }()
	cancel()
	assert.ErrorIs(t, <-ends, context.Canceled)
	inW.Close()
	inR, inW = io.Pipe()
	inW.CloseWithError(errors.New("broken"))
	assert.ErrorContains(t, demoagent.Serve(t.Context(), inR, io.Discard, demoagent.Options{}), "broken")
}
