//go:build clients

package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// The Go SDK's example client, which is third-party code, starts the program and completes a turn.
// The demo agent requests permission to edit.
func TestACPExampleClientOfTheGoSDK(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	example := filepath.Join(t.TempDir(), "client")
	out, err := exec.Command("go", "build", "-o", example, "github.com/coder/acp-go-sdk/example/client").CombinedOutput()
	require.NoError(t, err, "%s", out)
	ctx, cancel := context.WithTimeout(context.Background(), e2e.Watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, example, e2e.Program, "acp", "--root", s.Root)
	cmd.Dir = s.Root
	cmd.Env = append(append(e2e.CleanEnvironment(), e2e.Homeless(t)...), s.Launch().Env...)
	cmd.Stdin = strings.NewReader("1\n") // the first option of the only question
	printed, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	for _, want := range []string{"Connected to agent (protocol v1)", "Created session: ", "Permission requested: Write demo.txt", "You ", "Agent completed"} {
		require.Contains(t, string(printed), want)
	}
	require.FileExists(t, filepath.Join(s.Root, "demo.txt"))
	shown := s.Run("session", "show", "last")
	require.Contains(t, shown, "Hello, agent!")
}

// A goEditor is a client made with the Go SDK.
type goEditor struct {
	*acp.ClientSideConnection
	acp.Client // nil: the client offers no files and no terminals, so no agent may request any
	t          *testing.T
	cmd        *exec.Cmd
	ended      chan struct{}
	stdin      io.Closer
	asked      chan acp.RequestPermissionRequest
	choose     chan acp.RequestPermissionOutcome

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	said    strings.Builder
	over    bool
}

var _ acp.Client = (*goEditor)(nil)

func newGoEditor(s *e2e.Site, t *testing.T, args ...string) *goEditor {
	t.Helper()
	e := &goEditor{
		t: t, ended: make(chan struct{}),
		asked: make(chan acp.RequestPermissionRequest, 8), choose: make(chan acp.RequestPermissionOutcome, 8),
	}
	e.changed = sync.NewCond(&e.mu)
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(s.Watchdog, e2e.Watchdog))
	e.cmd = exec.CommandContext(ctx, e2e.Program, append([]string{"acp", "--root", s.Root}, args...)...)
	e.cmd.Dir = s.Root
	e.cmd.Env = append(append(e2e.CleanEnvironment(), e2e.Homeless(t)...), s.Launch().Env...)
	stdin, err := e.cmd.StdinPipe()
	require.NoError(t, err)
	e.stdin = stdin
	stdout, w := e2e.NewPipe(t)
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

// heard waits until the agent's text contains words.
func (e *goEditor) heard(words string) {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for !strings.Contains(e.said.String(), words) {
		require.False(e.t, e.over, "the program has ended; the agent's text was %q", e2e.Deferred(e.said.String))
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
		require.Fail(e.t, "the program ended without a question")
		return acp.RequestPermissionRequest{}
	}
}

// allows approves a question once.
func (e *goEditor) allows(q acp.RequestPermissionRequest) {
	for _, o := range q.Options {
		if o.Kind == acp.PermissionOptionKindAllowOnce {
			e.choose <- acp.NewRequestPermissionOutcomeSelected(o.OptionId)
			return
		}
	}
	require.Fail(e.t, "no option allows the call", "%v", q.Options)
}

// prompts starts a turn and returns a channel with its stop reason.
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

// A client of the Go SDK completes a turn and cancels another one. A kill ends it with an open
// question. A second client loads the session and answers.
func TestACPClientsOfTheGoSDK(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	first := newGoEditor(s, t)
	opened, err := first.NewSession(t.Context(), acp.NewSessionRequest{Cwd: s.Root, McpServers: []acp.McpServer{}})
	require.NoError(t, err)
	id := opened.SessionId

	ended := first.prompts(id, "a turn")
	first.allows(first.question())
	require.Equal(t, acp.StopReasonEndTurn, <-ended)
	first.heard("I wrote demo.txt") // the SDK handles notifications concurrently with the response

	ended = first.prompts(id, "one that is cancelled")
	first.question()
	require.NoError(t, first.Cancel(t.Context(), acp.CancelNotification{SessionId: id}))
	require.Equal(t, acp.StopReasonCancelled, <-ended)

	ended = first.prompts(id, "one that outlives its editor")
	first.question()
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGKILL))
	<-first.ended
	require.Empty(t, <-ended)

	second := newGoEditor(s, t)
	_, err = second.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: id, Cwd: s.Root, McpServers: []acp.McpServer{}})
	require.NoError(t, err)
	q := second.question()
	require.Equal(t, id, q.SessionId)
	second.allows(q)
	second.heard("one that outlives its editor")
	_, err = s.Command("prompt", "--continue", "last", "quiet") // waits for the previous turn
	require.NoError(t, err)
	text := e2e.ReadFile(t, filepath.Join(s.Root, "demo.txt"))
	require.Contains(t, text, "one that outlives its editor")
	second.heard("You asked: quiet")
}

// An editorDay is an editor made with the Go SDK that has a session with a real agent.
type editorDay struct {
	*goEditor
	site *agentSite
	a    dayAgent
	id   acp.SessionId
}

// An editorScenario is one interaction of an editor with an agent. play requires the expected
// behaviour and returns a cell of the table.
type editorScenario struct {
	name string
	play func(*testing.T, *editorDay) string
}

// editorScenarios run in this order in one session.
var editorScenarios = []editorScenario{
	{"A prompt", editorPrompts},
	{"A command, with permission", editorAllows},
	{"`session/set_mode`", editorSetsMode},
	{"A model is chosen", editorChoosesModel},
	{"An image in the prompt", editorShowsImage},
	{"`session/cancel`", editorCancels},
	{"The editor is killed with a permission open; another one loads the session and answers", editorDies},
}

// TestACPAgentDay runs the scenarios through `duet-rpc acp` with a third-party editor and each
// agent that is not tested briefly. It compares the results with the table in docs/acp.md.
func TestACPAgentDay(t *testing.T) {
	t.Parallel()
	agents := slices.DeleteFunc(dayAgents(), func(a dayAgent) bool { return a.briefly })
	var mu sync.Mutex // guards reported
	reported := make(map[string]string)
	t.Run("agents", func(t *testing.T) {
		for _, a := range agents {
			t.Run(a.folder, func(t *testing.T) {
				t.Parallel()
				s := a.site(t)
				d := &editorDay{goEditor: newGoEditor(s.Site, t, "--agent", s.agent), site: s, a: a}
				opened, err := d.NewSession(t.Context(), acp.NewSessionRequest{Cwd: s.Root, McpServers: []acp.McpServer{}})
				require.NoError(t, err)
				d.id = opened.SessionId
				for _, scenario := range editorScenarios {
					if !t.Run(scenario.name, func(t *testing.T) {
						cell := scenario.play(t, d)
						t.Log(cell)
						mu.Lock()
						defer mu.Unlock()
						reported[scenario.name+a.folder] = cell
					}) {
						return
					}
				}
			})
		}
	})
	if t.Failed() || len(reported) < len(agents)*len(editorScenarios) {
		t.Log("some scenarios did not run, so the test does not compare the table")
		return
	}
	testkit.GoldenBytes(t, e2e.Root+"/docs/acp.md", withEditorTable(t, agents, reported))
}

// withEditorTable returns the page with the current table.
func withEditorTable(t testing.TB, agents []dayAgent, reported map[string]string) []byte {
	const begin, end = "<!-- made by TestACPAgentDay -->\n", "<!-- its end -->\n"
	page := e2e.ReadFile(t, e2e.Root+"/docs/acp.md")
	before, rest, found := strings.Cut(page, begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	var b strings.Builder
	b.WriteString(before + begin + "| |")
	for _, a := range agents {
		fmt.Fprintf(&b, " %s %s |", a.packaged, a.version(t))
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(agents)) + "\n")
	for _, s := range editorScenarios {
		fmt.Fprintf(&b, "| %s |", s.name)
		for _, a := range agents {
			fmt.Fprintf(&b, " %s |", reported[s.name+a.folder])
		}
		b.WriteString("\n")
	}
	return []byte(b.String() + end + after)
}

// ends runs a turn and requires its stop reason.
func (d *editorDay) ends(t *testing.T, why acp.StopReason, blocks ...acp.ContentBlock) {
	t.Helper()
	r, err := d.Prompt(t.Context(), acp.PromptRequest{SessionId: d.id, Prompt: blocks})
	require.NoError(t, err)
	require.Equal(t, why, r.StopReason)
}

// asks waits for a question and fails if the turn ends first.
func (d *editorDay) asks(t *testing.T, ended <-chan acp.StopReason) (q acp.RequestPermissionRequest) {
	t.Helper()
	select {
	case q = <-d.asked:
	case why := <-ended:
		d.mu.Lock()
		defer d.mu.Unlock()
		require.Fail(t, "the agent did not ask", "the turn ended: %q; its text was %q", why, d.said.String())
	}
	return q
}

func editorPrompts(t *testing.T, d *editorDay) string {
	d.ends(t, acp.StopReasonEndTurn, acp.TextBlock("say: good morning"))
	d.heard("good morning")
	return "yes"
}

func editorAllows(t *testing.T, d *editorDay) string {
	ended := d.prompts(d.id, "run: touch made")
	q := d.asks(t, ended)
	require.NotNil(t, q.ToolCall.Title)
	require.Contains(t, *q.ToolCall.Title, "touch made")
	require.False(t, d.site.exists("made"))
	d.allows(q)
	require.Equal(t, acp.StopReasonEndTurn, <-ended)
	require.True(t, d.site.exists("made"))
	return "yes"
}

// settings returns the modes and the options of the session, as a resuming client receives them.
func (d *editorDay) settings(t *testing.T) (*acp.SessionModeState, []acp.SessionConfigOption) {
	t.Helper()
	r, err := d.ResumeSession(t.Context(), acp.ResumeSessionRequest{SessionId: d.id, Cwd: d.site.Root, McpServers: []acp.McpServer{}})
	require.NoError(t, err)
	return r.Modes, r.ConfigOptions
}

func editorSetsMode(t *testing.T, d *editorDay) string {
	modes, _ := d.settings(t)
	require.NotNil(t, modes)
	before := modes.CurrentModeId
	const chosen acp.SessionModeId = "plan"
	require.True(t, slices.ContainsFunc(modes.AvailableModes, func(m acp.SessionMode) bool { return m.Id == chosen }), "%v", modes)
	require.NotEqual(t, chosen, before)
	for _, mode := range []acp.SessionModeId{chosen, before} {
		_, err := d.SetSessionMode(t.Context(), acp.SetSessionModeRequest{SessionId: d.id, ModeId: mode})
		require.NoError(t, err)
		d.ends(t, acp.StopReasonEndTurn, acp.TextBlock("say: in another mode"))
		modes, _ = d.settings(t)
		require.Equal(t, mode, modes.CurrentModeId)
	}
	return fmt.Sprintf("yes: %s, and back to %s", chosen, before)
}

func editorChoosesModel(t *testing.T, d *editorDay) string {
	set := func(value string) error {
		_, err := d.SetSessionConfigOption(t.Context(), acp.SetSessionConfigOptionRequest{ValueId: &acp.SetSessionConfigOptionValueId{
			SessionId: d.id, ConfigId: "model", Value: acp.SessionConfigValueId(value),
		}})
		return err
	}
	require.ErrorContains(t, set("no-such-model"), d.a.model, "the error lists the agent's models")
	require.NoError(t, set(d.a.model))
	d.ends(t, acp.StopReasonEndTurn, acp.TextBlock("say: from another model"))
	_, options := d.settings(t)
	for _, o := range options {
		if o.Select != nil && o.Select.Id == "model" {
			require.Equal(t, d.a.model, string(o.Select.CurrentValue))
			return "yes"
		}
	}
	require.Fail(t, "the session has no option for the model", "%v", options)
	return ""
}

func editorShowsImage(t *testing.T, d *editorDay) string {
	d.ends(t, acp.StopReasonEndTurn, acp.TextBlock("say: seen"), acp.ImageBlock(onePoint, "image/png"))
	require.NotEmpty(t, d.site.model.Images())
	return "yes"
}

func editorCancels(t *testing.T, d *editorDay) string {
	ended := d.prompts(d.id, "talk:")
	d.heard("and on ")
	require.NoError(t, d.Cancel(t.Context(), acp.CancelNotification{SessionId: d.id}))
	require.Equal(t, acp.StopReasonCancelled, <-ended)
	d.ends(t, acp.StopReasonEndTurn, acp.TextBlock("say: still here"))
	d.heard("still here")
	return "yes"
}

func editorDies(t *testing.T, d *editorDay) string {
	ended := d.prompts(d.id, "run: touch later")
	d.asks(t, ended)
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGKILL))
	<-d.goEditor.ended
	require.Empty(t, <-ended)
	require.False(t, d.site.exists("later"))

	other := newGoEditor(d.site.Site, t)
	_, err := other.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: d.id, Cwd: d.site.Root, McpServers: []acp.McpServer{}})
	require.NoError(t, err)
	other.heard("good morning")
	q := other.question()
	require.Equal(t, d.id, q.SessionId)
	other.allows(q)
	r, err := other.Prompt(t.Context(), acp.PromptRequest{SessionId: d.id, Prompt: []acp.ContentBlock{acp.TextBlock("say: good night")}})
	require.NoError(t, err) // the prompt waits for the earlier turn
	require.Equal(t, acp.StopReasonEndTurn, r.StopReason)
	require.True(t, d.site.exists("later"))
	other.heard("good night")
	return "yes"
}

// The client of the TypeScript SDK lists the offered tools and resources and calls a tool.
func TestMCPClientOfTheTypeScriptSDK(t *testing.T) {
	t.Parallel()
	sdk := filepath.Join(installedAgent(t, "mcp-server-everything"), "node_modules", "@modelcontextprotocol", "sdk", "dist", "esm", "client")
	s := e2e.NewSite(t)
	script := filepath.Join(t.TempDir(), "client.mjs")
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, `
import { Client } from %q;
import { StdioClientTransport } from %q;
const client = new Client({ name: "ts", version: "1" });
await client.connect(new StdioClientTransport({ command: process.argv[2], args: process.argv.slice(3), env: process.env }));
const all = [(await client.listTools()).tools.map(t => t.name), (await client.listResources()).resources.map(r => r.uri), (await client.listResourceTemplates()).resourceTemplates.map(r => r.uriTemplate)];
console.log(JSON.stringify(all), client.getServerVersion().name);
const r = await client.callTool({ name: "request_permission", arguments: { tool_name: "Bash", input: { command: "make" } } }, undefined, { timeout: 600000 });
console.log(r.content[0].text);
await client.close();
`, filepath.Join(sdk, "index.js"), filepath.Join(sdk, "stdio.js")), 0o600))
	person := s.Start()
	ctx, cancel := context.WithTimeout(context.Background(), 2*e2e.Watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{script, e2e.Program, "mcp", e2e.Patiently}, s.Launch().Args...)...)
	cmd.Dir = s.Root
	cmd.Env = append(append(e2e.CleanEnvironment(), e2e.Homeless(t)...), s.Launch().Env...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	require.NoError(t, cmd.Start())
	person.Approve(person.Open(e2e.AnyQuestion).ID)
	require.NoError(t, cmd.Wait())
	assert.Equal(t, `[["ask_user","get_turn","list_items","list_questions","list_sessions","page_messages","request_permission"],["duet://sessions"],["duet://sessions/{id}"]] duet
{"behavior":"allow","updatedInput":{"command":"make"}}
`, out.String())
	person.Leave()
}

// Claude Code in print mode requests permission for a command through Duet's permission tool.
func TestMCPPermissionToolOfClaudeCode(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.Join(installedAgent(t, claudeFolder), "node_modules", "@anthropic-ai", "claude-agent-sdk-*", "claude"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	s := newClaudeSite(t)
	servers, err := json.Marshal(object{"mcpServers": object{"duet": object{
		"type": "stdio", "command": e2e.Program, "args": append([]string{"mcp", e2e.Patiently}, s.Launch().Args...), "env": object{},
	}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "servers.json")
	require.NoError(t, os.WriteFile(file, servers, 0o600))
	person := s.Start()
	run := func(prompt string) (*exec.Cmd, *strings.Builder) {
		ctx, cancel := context.WithTimeout(context.Background(), s.Watchdog)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, found[0], "-p", "--mcp-config", file, "--permission-prompt-tool", "mcp__duet__request_permission", "--", prompt)
		cmd.Dir = s.Root
		cmd.Env = append(append(e2e.CleanEnvironment(), e2e.Homeless(t)...), s.Launch().Env...)
		for name, value := range s.variables {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY="+s.model.Key)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		require.NoError(t, cmd.Start())
		return cmd, &out
	}
	cmd, out := run("run: touch made")
	q := person.OpenWithin(s.Watchdog, e2e.AnyQuestion)
	assert.Equal(t, "Bash", q.ToolName)
	assert.False(t, s.exists("made"))
	person.Approve(q.ID)
	require.NoError(t, cmd.Wait(), out)
	assert.True(t, s.exists("made"), out)

	cmd, out = run("run: touch never")
	person.Call("sendDecision", object{"approval_id": person.OpenWithin(s.Watchdog, e2e.AnyQuestion).ID, "decision": "deny", "comment": "not today"}, nil)
	require.NoError(t, cmd.Wait(), out)
	assert.False(t, s.exists("never"))
	assert.Contains(t, out.String(), "not today")
	person.Leave()
}

// The methods mcp.* start a third-party server on demand. A killed hub leaves no server behind.
func TestMCPServerEverything(t *testing.T) {
	t.Parallel()
	server := filepath.Join(installedAgent(t, "mcp-server-everything"), "node_modules", ".bin", "mcp-server-everything")
	s := e2e.NewSite(t, fmt.Sprintf("[[agents.scripted.mcp_servers]]\nname = \"everything\"\ncommand = %q\n", server))
	c := s.Start()
	var tools struct {
		Server string
		Tools  []struct{ Name string }
	}
	c.Call("mcp.tools", object{"server": "everything"}, &tools)
	assert.NotEmpty(t, tools.Server)
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	assert.Contains(t, names, "echo")
	var result struct{ Content []struct{ Type, Text string } }
	c.Call("mcp.call", object{"server": "everything", "tool": "echo", "arguments": object{"message": "hello"}, "confirmed": true}, &result)
	require.Len(t, result.Content, 1)
	assert.Contains(t, result.Content[0].Text, "hello")
	var failure struct{ IsError bool }
	c.Call("mcp.call", object{"server": "everything", "tool": "no-such-tool", "confirmed": true}, &failure)
	assert.True(t, failure.IsError)
	c.Crash()
	s.RequireNobody("after the hub was killed")
}
