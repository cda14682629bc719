//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/testdata/agents/model"
)

// The examples of two SDKs of the Agent Client Protocol are the smallest
// agents that somebody else wrote. A turn of theirs reads a file and asks
// whether it may change another; it takes 5 s because they sleep.
func TestExampleAgents(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a turn takes 5 s")
	}
	for name, command := range map[string]func(testing.TB) []string{
		"Go": goExample, "TypeScript": typeScriptExample,
	} {
		for _, c := range []struct {
			answer         string
			method         string
			params         object
			state          string
			edit, approval string // status of the tool call that is asked about, and of the question
			says           string
		}{
			{"allowed", "sendDecision", object{"decision": "approve"}, "completed", "completed", "approved", "successfully updated the configuration"},
			{"denied", "sendDecision", object{"decision": "deny", "comment": "leave it"}, "completed", "failed", "denied", "skip the configuration update"},
			{"interrupted", "interruptSession", object{}, "interrupted", "failed", "cancelled", "I need to make some changes"},
		} {
			t.Run(name+" "+c.answer, func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				s.agents(fmt.Sprintf("[agents.example]\ndriver = \"acp\"\ncommand = %s\n", tomlList(command(t))))
				client := s.start()
				client.subscribe()
				l := client.launch("hello", "example")
				question := client.awaitQuestion(l.SessionID)
				assert.Equal(t, "Edit", question.Data.ToolName)
				assert.JSONEq(t, `{"path":"/home/user/project/config.json","content":"{\"database\": {\"host\": \"new-host\"}}"}`, string(question.Data.ToolInput))
				client.awaitState(l.SessionID, "waiting_input")

				c.params["approval_id"], c.params["session_id"] = question.Data.ApprovalID, l.SessionID
				client.call(c.method, c.params, nil)
				end := client.awaitEnd(l.SessionID)
				assert.Equal(t, c.state, end.Data.State, "%s", end.Raw)
				assert.Contains(t, client.conversation(l.SessionID), c.says)
				assert.Empty(t, client.pending())
				tools := client.toolCalls(l.SessionID)
				require.Len(t, tools, 2)
				assert.Equal(t, toolCall{Tool: "Read", Status: "completed", Result: "# My Project\n\nThis is a sample project..."}, tools[0].withoutInput())
				assert.Equal(t, "Edit", tools[1].Tool)
				assert.Equal(t, c.edit, tools[1].Status)
				assert.Equal(t, c.approval, tools[1].Approval)
				client.leave()
				s.requireNobody("after the end of input")
			})
		}
	}
}

// buildGoExample builds the agent once for all tests.
var buildGoExample = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programDir, "example-agent")
	out, err := exec.Command("go", "build", "-o", path, "github.com/coder/acp-go-sdk/example/agent").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, err
})

func goExample(t testing.TB) []string {
	t.Helper()
	path, err := buildGoExample()
	require.NoError(t, err)
	return []string{path}
}

func typeScriptExample(t testing.TB) []string {
	t.Helper()
	return []string{"node", filepath.Join(installedAgent(t, "claude-agent-acp"), "node_modules/@agentclientprotocol/sdk/dist/examples/agent.js")}
}

// installedAgent is the folder into which .ci/install has put an agent. The
// test is skipped if it has not, and fails where all tests are meant to run.
func installedAgent(t testing.TB, name string) string {
	t.Helper()
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		require.NoError(t, err)
		cache = filepath.Join(home, ".cache")
	}
	dir := filepath.Join(cache, "duet-rpc", "agents", name)
	want, err := os.ReadFile(filepath.Join("../../testdata/agents", name, "package-lock.json"))
	require.NoError(t, err)
	got, _ := os.ReadFile(filepath.Join(dir, "installed-lock.json"))
	_, noNode := exec.LookPath("node")
	if noNode == nil && string(got) == string(want) {
		return dir
	}
	why := fmt.Sprintf("%s, as its lock file has it, is not in %s, or there is no Node: run .ci/install", name, dir)
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

func tomlList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// A toolCall is one of a conversation, with its result.
type toolCall struct{ Tool, Input, Status, Approval, Result string }

func (c toolCall) withoutInput() toolCall {
	c.Input = ""
	return c
}

func (c *client) toolCalls(session string) (calls []toolCall) {
	c.t.Helper()
	var r struct {
		Events []struct {
			Type     string `json:"event_type"`
			Tool     string `json:"tool_name"`
			Input    string `json:"tool_input_json"`
			Status   string `json:"status"`
			Approval string `json:"approval_status"`
			Result   string `json:"tool_result_content"`
		} `json:"events"`
	}
	c.call("getConversation", object{"session_id": session}, &r)
	for _, e := range r.Events {
		switch e.Type {
		case "tool_call":
			calls = append(calls, toolCall{Tool: e.Tool, Input: e.Input, Status: e.Status, Approval: e.Approval})
		case "tool_result": // it follows its call
			calls[len(calls)-1].Result = e.Result
		}
	}
	return calls
}

// An agentSite is a project in which a real agent works with a model of ours.
// The agent is the one that duet-rpc knows by itself: it is found on PATH, and
// gets the model's key by the way that is meant for it.
type agentSite struct {
	*site
	model *model.Model
	agent string
	// counted is how many of the two answers in a turn with a tool the agent
	// counts the tokens of.
	counted int
	// records reports whether the agent has a text in its own records of
	// conversations.
	records func(text string) bool
}

// realAgents are what TestRealAgents takes through its paces.
var realAgents = map[string]func(testing.TB) *agentSite{"claude": newClaudeSite, "opencode": newOpencodeSite}

func newClaudeSite(t testing.TB) *agentSite {
	t.Helper()
	dir := installedAgent(t, "claude-agent-acp")
	s := newAgentSite(t, "claude", filepath.Join(dir, "node_modules", ".bin"), `
[agents.claude.env]
CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1"
CLAUDE_CODE_MAX_RETRIES = "0"
DISABLE_AUTOUPDATER = "1"
DISABLE_ERROR_REPORTING = "1"
DISABLE_TELEMETRY = "1"
[keys.anthropic]
env = "KEY_OF_THE_MODEL"
`)
	s.counted = 2
	s.env = append(s.env, "ANTHROPIC_BASE_URL="+s.model.URL, "ANTHROPIC_API_KEY=not-this-one")
	s.records = func(text string) bool {
		files, err := filepath.Glob(filepath.Join(s.home, ".claude/projects/*/*.jsonl"))
		require.NoError(t, err)
		for _, file := range files {
			if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), text) {
				return true
			}
		}
		return false
	}
	return s
}

func newOpencodeSite(t testing.TB) *agentSite {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("testdata/agents/opencode has it for x86-64 Linux alone")
	}
	dir := installedAgent(t, "opencode")
	s := newAgentSite(t, "opencode", filepath.Join(dir, "node_modules", "opencode-linux-x64", "bin"), `
[agents.opencode]
keys = { KEY_FROM_DUET = "anthropic" }
[agents.opencode.env]
OPENCODE_DISABLE_AUTOUPDATE = "1"
OPENCODE_DISABLE_MODELS_FETCH = "1"
[keys.anthropic]
env = "KEY_OF_THE_MODEL"
`)
	path := filepath.Join(s.home, "config", "opencode", "opencode.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `{
		"autoupdate": false, "share": "disabled", "model": "ours/model", "small_model": "ours/model",
		"permission": {"bash": "ask", "edit": "ask"},
		"provider": {"ours": {
			"npm": "@ai-sdk/anthropic", "name": "Ours", "options": {"baseURL": "%s/v1", "apiKey": "{env:KEY_FROM_DUET}"},
			"models": {"model": {"name": "Model", "limit": {"context": 100000, "output": 4096}}}
		}}
	}`, s.model.URL), 0o600))
	s.counted = 1                                 // the last
	s.records = func(string) bool { return true } // at once
	return s
}

// newAgentSite makes a site with a directory in front of PATH and more in the
// user's configuration.
func newAgentSite(t testing.TB, agent, dir, more string) *agentSite {
	t.Helper()
	s := &agentSite{site: newSite(t), model: model.Serve(t), agent: agent}
	s.agents(more)
	s.args = []string{"--log-level", "debug"}
	s.env = []string{
		"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"), "KEY_OF_THE_MODEL=" + s.model.Key,
		"HTTP_PROXY=", "HTTPS_PROXY=", "http_proxy=", "https_proxy=", // to the loopback address there is none
	}
	return s
}

// open starts the program with a client that sees all events.
func (s *agentSite) open() *client {
	s.t.Helper()
	c := s.start()
	c.subscribe()
	return c
}

// close ends the program and requires that the key is nowhere in what it
// said, logged and kept.
func (s *agentSite) close(c *client) {
	s.t.Helper()
	c.leave()
	s.requireNobody("after the end of input")
	for _, e := range c.seen() {
		require.NotContains(s.t, string(e.Raw), s.model.Key)
	}
	require.NotContains(s.t, c.log.String(), s.model.Key)
	require.FileExists(s.t, s.database())
	require.NoError(s.t, filepath.WalkDir(s.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		require.NotContains(s.t, string(content), s.model.Key, path)
		return err
	}))
}

func (s *agentSite) exists(name string) bool {
	_, err := os.Stat(filepath.Join(s.root, name))
	return err == nil
}

// awaitRecord waits until the agent has written something down. It does so a
// moment later, and forgets what it had not written down when it ended.
func (s *agentSite) awaitRecord(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.records(text) }, watchdog/3, pollEvery, "%s is not in the agent's records", text)
}

// asked launches a session that asks whether it may make the file "made".
func (s *agentSite) asked(c *client) (launched, event) {
	s.t.Helper()
	l := c.launch("run: touch made", s.agent)
	question := c.awaitQuestion(l.SessionID)
	require.Equal(s.t, "Bash", question.Data.ToolName)
	var input struct {
		Command string `json:"command"`
	}
	require.NoError(s.t, json.Unmarshal(question.Data.ToolInput, &input))
	require.Equal(s.t, "touch made", input.Command)
	c.awaitState(l.SessionID, "waiting_input")
	require.False(s.t, s.exists("made"))
	return l, question
}

// Real agents, with a model that does what its prompts say.
func TestRealAgents(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("they are large")
	}
	for name, site := range realAgents {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the agents; but each is too large to be there many times
			for what, test := range map[string]func(*testing.T, *agentSite){
				"allowed":                   testAllowed,
				"denied":                    testDenied,
				"interrupted while it asks": testInterruptedQuestion,
				"restarted":                 testRestarted,
				"killed while it asks":      testKilled,
			} {
				t.Run(what, func(t *testing.T) { test(t, site(t)) })
			}
		})
	}
	// The other agents take seconds to start.
	t.Run("claude interrupted while it says", func(t *testing.T) { testInterruptedText(t, newClaudeSite(t)) })
	t.Run("claude a wrong key", func(t *testing.T) { testWrongKey(t, newClaudeSite(t)) })
}

func testAllowed(t *testing.T, s *agentSite) {
	c := s.open()
	l, question := s.asked(c)
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
	end := c.awaitEnd(l.SessionID)
	require.Equal(t, "completed", end.Data.State, "%s", end.Raw)
	assert.True(t, s.exists("made"))
	calls := c.toolCalls(l.SessionID)
	require.Len(t, calls, 1)
	assert.Equal(t, []string{"Bash", "completed", "approved"}, []string{calls[0].Tool, calls[0].Status, calls[0].Approval})
	assert.Contains(t, c.conversation(l.SessionID), "I will run it.")
	assert.Contains(t, c.conversation(l.SessionID), "The tool said: ")
	used := c.usage(l.SessionID)
	assert.Equal(t, s.counted*model.InputTokens, used.Input)
	assert.Equal(t, s.counted*model.OutputTokens, used.Output)
	assert.Positive(t, used.Context)
	assert.Greater(t, used.Limit, used.Context)
	assert.Equal(t, "end_turn", used.Stop)
	assert.NotEmpty(t, used.Native)
	assert.False(t, s.model.Refused(), "the key is the configured one alone")
	s.close(c)
}

func testDenied(t *testing.T, s *agentSite) {
	c := s.open()
	l, question := s.asked(c)
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "deny", "comment": "leave it"}, nil)
	end := c.awaitEnd(l.SessionID)
	require.Equal(t, "completed", end.Data.State, "%s", end.Raw)
	assert.False(t, s.exists("made"))
	calls := c.toolCalls(l.SessionID)
	require.Len(t, calls, 1)
	assert.Equal(t, []string{"Bash", "failed", "denied"}, []string{calls[0].Tool, calls[0].Status, calls[0].Approval})
	assert.Empty(t, c.pending())
	s.close(c)
}

// The agent lives on when its turn is interrupted, and knows of it.
func testInterruptedQuestion(t *testing.T, s *agentSite) {
	c := s.open()
	l, _ := s.asked(c)
	c.call("interruptSession", object{"session_id": l.SessionID}, nil)
	require.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
	assert.Empty(t, c.pending())
	calls := c.toolCalls(l.SessionID)
	require.Len(t, calls, 1)
	assert.Equal(t, []string{"Bash", "failed", "cancelled"}, []string{calls[0].Tool, calls[0].Status, calls[0].Approval})

	s.requireGoesOn(c, l, "run: touch made", "say: hello")
	assert.False(t, s.exists("made"))
	s.close(c)
}

func testInterruptedText(t *testing.T, s *agentSite) {
	c := s.open()
	l := c.launch("talk:", s.agent)
	c.await("text", func(e event) bool { return e.Type == "message_delta" && e.Data.SessionID == l.SessionID })
	c.call("interruptSession", object{"session_id": l.SessionID}, nil)
	require.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
	select {
	case <-s.model.HungUp:
	case <-time.After(watchdog / 3):
		require.Fail(t, "the agent still listens to its model")
	}
	assert.Contains(t, c.conversation(l.SessionID), "and on ")
	s.requireGoesOn(c, l, "talk:", "say: hello")
	s.close(c)
}

// A conversation goes on in the next process, with the agent's own session.
func testRestarted(t *testing.T, s *agentSite) {
	c := s.open()
	first := c.launch("say: one", s.agent)
	require.Equal(t, "completed", c.awaitEnd(first.SessionID).Data.State)
	second := s.requireGoesOn(c, first, "say: one", "say: two")
	native := c.usage(second.SessionID).Native
	s.awaitRecord(`"two"`)
	s.close(c)

	c = s.open()
	third := s.requireGoesOn(c, second, "say: one", "say: two", "say: three")
	assert.Equal(t, native, c.usage(third.SessionID).Native)
	assert.Equal(t, "onetwothree", c.conversation(third.SessionID), "what the agent tells again is not said again")
	assert.Equal(t, model.InputTokens, c.usage(third.SessionID).Input)
	s.close(c)
}

// A question outlives the process; its answer counts when the agent asks it
// again.
func testKilled(t *testing.T, s *agentSite) {
	c := s.open()
	l, question := s.asked(c)
	s.awaitRecord(`"command":"touch made"`)
	c.crash()
	s.requireNobody("after a kill")

	c = s.open()
	require.True(t, c.pending()[question.Data.ApprovalID].Stale)
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
	end := c.await("the end of the session that goes on", func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.ThreadID == l.ThreadID && e.Data.SessionID != l.SessionID && ended(e.Data.State)
	})
	assert.Equal(t, "completed", end.Data.State, "%s", end.Raw)
	assert.True(t, s.exists("made"))
	for _, e := range c.seen() {
		require.False(t, e.Type == "new_approval" && e.Data.SessionID == end.Data.SessionID, "it was asked again: %s", e.Raw)
	}
	assert.Equal(t, []string{"run: touch made", "run: touch made"}, s.model.Prompts(), "the agent may have lost it, so it is told again")
	s.close(c)
}

// requireGoesOn requires that a session goes on with the last of prompts, and
// that the model is told of all of them.
func (s *agentSite) requireGoesOn(c *client, from launched, prompts ...string) (next launched) {
	s.t.Helper()
	c.call("continueSession", object{"session_id": from.SessionID, "query": prompts[len(prompts)-1]}, &next)
	end := c.awaitEnd(next.SessionID)
	require.Equal(s.t, "completed", end.Data.State, "%s", end.Raw)
	require.Equal(s.t, prompts, s.model.Prompts())
	return next
}

// What a model says of a wrong key is what the user is told.
func testWrongKey(t *testing.T, s *agentSite) {
	s.env = append(s.env, "KEY_OF_THE_MODEL="+s.model.Key+"-but-not-quite")
	c := s.open()
	end := c.awaitEnd(c.launch("say: hello", s.agent).SessionID)
	assert.Equal(t, "failed", end.Data.State)
	assert.Equal(t, "AGENT_ERROR", end.Data.ErrorCode)
	assert.Regexp(t, "(?i)api.key", end.Data.Error)
	assert.True(t, s.model.Refused())
	s.close(c)
}

// A toldUsage is what a session says of its tokens.
type toldUsage struct {
	Native  string `json:"claude_session_id"`
	Input   int    `json:"input_tokens"`
	Output  int    `json:"output_tokens"`
	Context int    `json:"effective_context_tokens"`
	Limit   int    `json:"context_limit"`
	Stop    string `json:"stop_reason"`
}

func (c *client) usage(session string) toldUsage {
	c.t.Helper()
	var r struct {
		Session toldUsage `json:"session"`
	}
	c.call("getSessionState", object{"session_id": session}, &r)
	return r.Session
}
