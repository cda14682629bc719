//go:build clients

package main_test

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
)

// The client that comes with the Go SDK as its example, which is third-party code, starts
// the program and has a turn: the demo agent asks it whether it may edit.
func TestACPExampleClientOfTheGoSDK(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	example := filepath.Join(t.TempDir(), "client")
	out, err := exec.Command("go", "build", "-o", example, "github.com/coder/acp-go-sdk/example/client").CombinedOutput()
	require.NoError(t, err, "%s", out)
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, example, program, "acp", "--root", s.root)
	cmd.Dir = s.root
	cmd.Env = append(append(cleanEnvironment(), homeless(t)...), s.launch().env...)
	cmd.Stdin = strings.NewReader("1\n") // the first of the answers to the one question
	printed, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	for _, want := range []string{"Connected to agent (protocol v1)", "Created session: ", "Permission requested: Write demo.txt", "You ", "Agent completed"} {
		require.Contains(t, string(printed), want)
	}
	require.FileExists(t, filepath.Join(s.root, "demo.txt"))
	shown, err := s.command("session", "show", "last")
	require.NoError(t, err)
	require.Contains(t, shown, "Hello, agent!")
}

// A goEditor is a client made with the Go SDK.
type goEditor struct {
	*acp.ClientSideConnection
	t      *testing.T
	cmd    *exec.Cmd
	ended  chan struct{}
	stdin  io.Closer
	asked  chan acp.RequestPermissionRequest
	choose chan acp.RequestPermissionOutcome

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	said    strings.Builder
	over    bool
}

var _ acp.Client = (*goEditor)(nil)

func (s *site) goEditor(t *testing.T, args ...string) *goEditor {
	t.Helper()
	e := &goEditor{
		t: t, ended: make(chan struct{}),
		asked: make(chan acp.RequestPermissionRequest, 8), choose: make(chan acp.RequestPermissionOutcome, 8),
	}
	e.changed = sync.NewCond(&e.mu)
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(s.watchdog, watchdog))
	e.cmd = exec.CommandContext(ctx, program, append([]string{"acp", "--root", s.root}, args...)...)
	e.cmd.Dir = s.root
	e.cmd.Env = append(append(cleanEnvironment(), homeless(t)...), s.launch().env...)
	stdin, err := e.cmd.StdinPipe()
	require.NoError(t, err)
	e.stdin = stdin
	stdout, w, err := os.Pipe()
	require.NoError(t, err)
	e.cmd.Stdout = w
	require.NoError(t, e.cmd.Start())
	w.Close()
	e.ClientSideConnection = acp.NewClientSideConnection(e, stdin, stdout)
	go func() {
		defer close(e.ended)
		_ = e.cmd.Wait()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.over = true
		e.changed.Broadcast()
	}()
	t.Cleanup(func() {
		cancel()
		<-e.ended
		<-e.Done()
		stdout.Close()
	})
	_, err = e.Initialize(ctx, acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber, ClientInfo: &acp.Implementation{Name: "go-editor", Version: "1"}})
	require.NoError(t, err)
	return e
}

func (e *goEditor) SessionUpdate(_ context.Context, p acp.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := p.Update.AgentMessageChunk; c != nil && c.Content.Text != nil {
		e.said.WriteString(c.Content.Text.Text)
		e.changed.Broadcast()
	}
	return nil
}

func (e *goEditor) RequestPermission(ctx context.Context, p acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	e.asked <- p
	select {
	case outcome := <-e.choose:
		return acp.RequestPermissionResponse{Outcome: outcome}, nil
	case <-ctx.Done():
		return acp.RequestPermissionResponse{}, ctx.Err()
	}
}

// heard waits until the agent has said words.
func (e *goEditor) heard(words string) {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for !strings.Contains(e.said.String(), words) {
		require.False(e.t, e.over, "the program has ended; it had said %q", deferred(e.said.String))
		e.changed.Wait()
	}
}

// question waits for a question.
func (e *goEditor) question() acp.RequestPermissionRequest {
	e.t.Helper()
	select {
	case q := <-e.asked:
		return q
	case <-e.ended:
		require.Fail(e.t, "the program has ended before it asked")
		return acp.RequestPermissionRequest{}
	}
}

// allows answers a question.
func (e *goEditor) allows(q acp.RequestPermissionRequest) {
	for _, o := range q.Options {
		if o.Kind == acp.PermissionOptionKindAllowOnce {
			e.choose <- acp.NewRequestPermissionOutcomeSelected(o.OptionId)
			return
		}
	}
	require.Fail(e.t, "nothing allows it", "%v", q.Options)
}

// prompts begins a turn; its end comes on the channel.
func (e *goEditor) prompts(id acp.SessionId, words string) <-chan acp.StopReason {
	ended := make(chan acp.StopReason, 1)
	go func() {
		defer close(ended)
		if r, err := e.Prompt(context.Background(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(words)}}); err == nil {
			ended <- r.StopReason
		}
	}()
	return ended
}

func (e *goEditor) WriteTextFile(context.Context, acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	return acp.WriteTextFileResponse{}, acp.NewMethodNotFound("fs/write_text_file")
}

func (e *goEditor) ReadTextFile(context.Context, acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	return acp.ReadTextFileResponse{}, acp.NewMethodNotFound("fs/read_text_file")
}

func (e *goEditor) CreateTerminal(context.Context, acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	return acp.CreateTerminalResponse{}, acp.NewMethodNotFound("terminal/create")
}

func (e *goEditor) TerminalOutput(context.Context, acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	return acp.TerminalOutputResponse{}, acp.NewMethodNotFound("terminal/output")
}

func (e *goEditor) ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
	return acp.ReleaseTerminalResponse{}, acp.NewMethodNotFound("terminal/release")
}

func (e *goEditor) WaitForTerminalExit(context.Context, acp.WaitForTerminalExitRequest) (acp.WaitForTerminalExitResponse, error) {
	return acp.WaitForTerminalExitResponse{}, acp.NewMethodNotFound("terminal/wait_for_exit")
}

func (e *goEditor) KillTerminal(context.Context, acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	return acp.KillTerminalResponse{}, acp.NewMethodNotFound("terminal/kill")
}

// Clients made with the Go SDK: a turn, a cancelled one, one that is killed with a question
// open, and a second client that loads the session and answers.
func TestACPClientsOfTheGoSDK(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.goEditor(t)
	opened, err := first.NewSession(t.Context(), acp.NewSessionRequest{Cwd: s.root, McpServers: []acp.McpServer{}})
	require.NoError(t, err)
	id := opened.SessionId

	ended := first.prompts(id, "a turn")
	first.allows(first.question())
	require.Equal(t, acp.StopReasonEndTurn, <-ended)
	first.heard("I wrote demo.txt") // notifications are handled beside the answer

	ended = first.prompts(id, "one that is cancelled")
	first.question()
	require.NoError(t, first.Cancel(t.Context(), acp.CancelNotification{SessionId: id}))
	require.Equal(t, acp.StopReasonCancelled, <-ended)

	ended = first.prompts(id, "one that outlives its editor")
	first.question()
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGKILL))
	<-first.ended
	require.Empty(t, <-ended)

	second := s.goEditor(t)
	_, err = second.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: id, Cwd: s.root, McpServers: []acp.McpServer{}})
	require.NoError(t, err)
	q := second.question()
	require.Equal(t, id, q.SessionId)
	second.allows(q)
	second.heard("one that outlives its editor")
	_, err = s.command("prompt", "--continue", "last", "quiet") // which waits for its turn
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(s.root, "demo.txt"))
	require.NoError(t, err)
	require.Contains(t, string(text), "one that outlives its editor")
	second.heard("You asked: quiet")
}
