//go:build unix && clients

package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/testdata/agents/model"
)

// An agentSite is a project in which a real agent works with the test's model. duet-rpc knows the
// agent by name and finds it on PATH. The configuration names the model's key.
type agentSite struct {
	*e2e.Site
	model     *model.Model
	agent     string            // its name in the configuration
	service   string            // the service whose key is the model's
	more      string            // more of the agent's configuration
	variables map[string]string // the agent's environment
	rules     string            // more of the user's configuration
	// countedAnswers is the number of answers whose tokens the agent counts, out of two in a turn
	// with a tool. Only TestRealAgents reads it.
	countedAnswers int
	// signOut removes the model's key.
	signOut func()
	// ownProvider has Codex use its own provider, which requires a login.
	ownProvider func()
	goesOn      bool // the test expects agent-initiated turns
	// records reports whether the agent's own records of its sessions contain a text.
	records func(text string) bool
}

// newAgentSite returns a site with path, the directories of an agent's programs, at the front of
// PATH.
func newAgentSite(t testing.TB, agent, service, path string) *agentSite {
	t.Helper()
	s := &agentSite{Site: e2e.NewSite(t), model: model.Serve(t), agent: agent, service: service, variables: make(map[string]string)}
	s.Args = []string{"--log-level", "debug"}
	s.Watchdog = 5 * e2e.Watchdog
	s.Env = []string{
		"PATH=" + path + string(os.PathListSeparator) + os.Getenv("PATH"), "KEY_OF_THE_MODEL=" + s.model.Key,
		"HTTP_PROXY=", "HTTPS_PROXY=", "http_proxy=", "https_proxy=", // the loopback address needs no proxy
	}
	s.signOut = func() { s.service, s.more = "", "" }
	return s
}

// configure writes the user's configuration from the fields. A caller that changes a field calls it
// again.
func (s *agentSite) configure() {
	s.T.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "[agents.%s]\n%s\nstart_timeout = \"10m\"\n[agents.%s.env]\n", s.agent, s.more, s.agent) // agents are large, and the machine may be slow
	for _, name := range slices.Sorted(maps.Keys(s.variables)) {
		fmt.Fprintf(&b, "%s = %q\n", name, s.variables[name])
	}
	if s.service != "" {
		fmt.Fprintf(&b, "[keys.%s]\nenv = \"KEY_OF_THE_MODEL\"\n", s.service)
	}
	s.Agents(b.String() + s.rules)
}

// put writes a file that the agent reads.
func (s *agentSite) put(path, format string, args ...any) {
	s.T.Helper()
	require.NoError(s.T, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(s.T, os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600))
}

// recordsIn returns a records function for the files in the home that match a pattern.
func (s *agentSite) recordsIn(pattern string) func(text string) bool {
	return func(text string) bool {
		files, err := filepath.Glob(filepath.Join(s.Home, pattern))
		require.NoError(s.T, err)
		return slices.ContainsFunc(files, func(file string) bool {
			content, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(content), text)
		})
	}
}

// Folders of testdata/agents with versions of Claude Code's adapter: the newest version, and the
// newest one for Node 20.
const (
	claudeFolder    = "claude-agent-acp-0.101"
	oldClaudeFolder = "claude-agent-acp-0.49"
)

func newClaudeSite(t testing.TB) *agentSite {
	t.Helper()
	return claudeSite(t, onNode22(t, claudeFolder))
}

func newOldClaudeSite(t testing.TB) *agentSite {
	t.Helper()
	return claudeSite(t, programsOf(t, oldClaudeFolder))
}

func claudeSite(t testing.TB, path string) *agentSite {
	t.Helper()
	s := newAgentSite(t, "claude", "anthropic", path)
	s.variables = map[string]string{
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"DISABLE_AUTOUPDATER":                      "1",
		"DISABLE_ERROR_REPORTING":                  "1",
		"DISABLE_TELEMETRY":                        "1",
		// By default, Claude Code starts a turn without the tools of a server that needs over 5 s
		// to start.
		"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "600000", "MCP_TIMEOUT": "600000",
	}
	s.Env = append(s.Env, "ANTHROPIC_BASE_URL="+s.model.URL, "ANTHROPIC_API_KEY=not-this-one")
	s.signOut = func() { s.service, s.Env = "", append(s.Env, "ANTHROPIC_API_KEY=") }
	s.countedAnswers = 2
	s.records = s.recordsIn(".claude/projects/*/*.jsonl")
	// Claude Code sometimes removes this directory while it is empty, and then fails to write its
	// plan.
	s.put(filepath.Join(s.Home, ".claude", "plans", "earlier.md"), "# A plan\n")
	s.configure()
	return s
}

// newQwenSite returns a site in which Qwen Code uses the model over OpenAI's chat completions.
func newQwenSite(t testing.TB) *agentSite {
	t.Helper()
	s := newAgentSite(t, "qwen", "openai", onNode22(t, "qwen-code"))
	s.more = `keys = { OPENAI_API_KEY = "openai" }`
	s.Env = append(s.Env, "OPENAI_BASE_URL="+s.model.URL+"/v1", "OPENAI_MODEL=gpt-4o")
	s.put(filepath.Join(s.Home, ".qwen", "settings.json"), `{
		"security": {"auth": {"selectedType": "openai"}}, "memory": {"enableManagedAutoMemory": false, "enableManagedAutoDream": false},
		"general": {"disableAutoUpdate": true, "disableUpdateNag": true}, "privacy": {"usageStatisticsEnabled": false}
	}`)
	s.records = s.recordsIn(".qwen/projects/*/chats/*.jsonl")
	s.configure()
	return s
}

// newKimiSite returns a site in which Kimi Code uses the model over OpenAI's chat completions.
func newKimiSite(t testing.TB) *agentSite {
	t.Helper()
	s := newAgentSite(t, "kimi", "kimi", onNode22(t, "kimi-code"))
	s.more = `keys = { KIMI_MODEL_API_KEY = "kimi" }`
	s.variables = map[string]string{
		"KIMI_MODEL_NAME": "model", "KIMI_MODEL_BASE_URL": s.model.URL + "/v1", "KIMI_MODEL_MAX_CONTEXT_SIZE": "100000",
		"KIMI_CODE_NO_AUTO_UPDATE": "1",
	}
	s.put(filepath.Join(s.Home, ".kimi-code", "config.toml"), "[mcp]\nstartup_timeout_ms = 600000\n")
	s.signOut = func() {
		s.service, s.more = "", ""
		for name := range s.variables {
			if strings.HasPrefix(name, "KIMI_MODEL_") {
				delete(s.variables, name)
			}
		}
	}
	s.records = s.recordsIn(".kimi-code/sessions/*/*/agents/*/wire.jsonl")
	s.configure()
	return s
}

// newCopilotSite returns a site in which GitHub Copilot uses the model over OpenAI's chat
// completions.
func newCopilotSite(t testing.TB) *agentSite {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("testdata/agents/copilot supports only x86-64 Linux")
	}
	installed := installedAgent(t, "copilot")
	s := newAgentSite(t, "copilot", "copilot", filepath.Join(installed, "node_modules", "@github", "copilot-linux-x64"))
	s.more = `keys = { COPILOT_PROVIDER_API_KEY = "copilot" }`
	s.variables = map[string]string{
		"COPILOT_PROVIDER_BASE_URL": s.model.URL + "/v1", "COPILOT_MODEL": "model", "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false",
		"COPILOT_CACHE_HOME": filepath.Join(installed, "cache"), // the program unpacks 235 MB into it once
	}
	s.signOut = func() {
		s.service, s.more = "", ""
		delete(s.variables, "COPILOT_PROVIDER_BASE_URL")
		delete(s.variables, "COPILOT_OFFLINE")
	}
	s.records = s.recordsIn(".copilot/session-state/*/*.jsonl")
	s.configure()
	return s
}

func newCodexSite(t testing.TB) *agentSite {
	t.Helper()
	s := newAgentSite(t, "codex", "openai", programsOf(t, "codex-acp"))
	path := filepath.Join(s.Home, ".codex", "config.toml")
	// Codex offers other tools to models that it does not know. This is the newest known one.
	const common = "model = \"gpt-6.1-sol\"\napproval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\nanalytics.enabled = false\n"
	s.put(path, common+`
model_provider = "ours"
[model_providers.ours]
name = "Ours"
base_url = "%s/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
`, s.model.URL)
	s.signOut = func() {
		s.service = ""
		s.ownProvider()
	}
	s.ownProvider = func() {
		s.put(path, common+"openai_base_url = \"%s/v1\"\n", s.model.URL)
	}
	s.countedAnswers = 2
	s.records = s.recordsIn(".codex/sessions/*/*/*/*.jsonl")
	s.configure()
	return s
}

// newCodexToolsSite has Codex wait for the server of the editor's tools. By default, Codex starts a
// turn without the tools of a server that needs over 10 s to start.
func newCodexToolsSite(t testing.TB) *agentSite {
	t.Helper()
	s := newCodexSite(t)
	f, err := os.OpenFile(filepath.Join(s.Home, ".codex", "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("[mcp_servers.duet-editor]\ncommand = \"replaced by what Duet says\"\nrequired = true\nstartup_timeout_sec = 600\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	s.variables["DISABLE_MCP_CONFIG_FILTERING"] = "true" // otherwise Codex skips Duet's server of this name
	s.configure()
	return s
}

func newGeminiSite(t testing.TB) *agentSite {
	t.Helper()
	s := newAgentSite(t, "gemini", "gemini", programsOf(t, "gemini-cli"))
	s.put(filepath.Join(s.Home, ".gemini", "settings.json"), `{
		"security": {"auth": {"selectedType": "gemini-api-key"}},
		"general": {"disableAutoUpdate": true, "disableUpdateNag": true}, "privacy": {"usageStatisticsEnabled": false}
	}`)
	s.variables["GOOGLE_GEMINI_BASE_URL"] = s.model.URL
	recorded := s.recordsIn(".gemini/tmp/*/chats/*.json*")
	// Gemini CLI records a call after its decision, but a prompt at once. Without quotation marks,
	// the text in the prompt counts.
	s.records = func(text string) bool { return recorded(strings.Trim(text, `"`)) }
	s.configure()
	return s
}

func newOpencodeSite(t testing.TB) *agentSite {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("testdata/agents/opencode supports only x86-64 Linux")
	}
	s := newAgentSite(t, "opencode", "anthropic", filepath.Join(installedAgent(t, "opencode"), "node_modules", "opencode-linux-x64", "bin"))
	s.more = `keys = { KEY_FROM_DUET = "anthropic" }`
	s.variables = map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
	s.put(filepath.Join(s.Home, "config", "opencode", "opencode.json"), `{
		"autoupdate": false, "share": "disabled", "model": "ours/model", "small_model": "ours/model",
		"permission": {"bash": "ask", "edit": "ask"}, "experimental": {"mcp_timeout": 600000},
		"provider": {"ours": {
			"npm": "@ai-sdk/anthropic", "name": "Ours", "options": {"baseURL": "%s/v1", "apiKey": "{env:KEY_FROM_DUET}"},
			"models": {"model": {
				"name": "Model", "limit": {"context": 100000, "output": 4096},
				"attachment": true, "modalities": {"input": ["text", "image"], "output": ["text"]}
			}}
		}}
	}`, s.model.URL)
	s.countedAnswers = 1                          // the last answer
	s.records = func(string) bool { return true } // opencode records at once
	s.configure()
	return s
}

// close ends the program. It requires that no event, log line, project file or file of the state
// directory has the model's key. It also requires that no agent-initiated turn was unexpected.
func (s *agentSite) close(c *e2e.Client) {
	s.T.Helper()
	c.Leave()
	s.RequireNobody("after the end of input")
	for _, e := range c.Seen() {
		require.NotContains(s.T, string(e.Raw), s.model.Key)
		require.False(s.T, !s.goesOn && e.Data.Subtype == "went_on", "unexpected agent-initiated turn: %s", e.Raw)
		require.False(s.T, !s.goesOn && e.Type == "agent_session" && strings.Contains(string(e.Raw), `"background":[{`), "unexpected background work: %s", e.Raw)
	}
	require.NotContains(s.T, c.Log.String(), s.model.Key)
	require.FileExists(s.T, s.Database())
	for _, dir := range []string{s.Root, s.State()} { // the state has the database and the daemon's log
		require.NoError(s.T, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			require.False(s.T, bytes.Contains(content, []byte(s.model.Key)), "%s has the model's key", path)
			return err
		}))
	}
}

// closed is close at the end of a scenario. It returns the scenario's outcome.
func (s *agentSite) closed(c *e2e.Client, outcome string) string {
	s.T.Helper()
	s.close(c)
	return outcome
}

func (s *agentSite) exists(name string) bool {
	_, err := os.Stat(filepath.Join(s.Root, name))
	return err == nil
}

// awaitRecord waits until the agent has recorded a text. Agents record late, and lose unrecorded
// text at their end.
func (s *agentSite) awaitRecord(text string) {
	s.T.Helper()
	require.Eventually(s.T, func() bool { return s.records(text) }, e2e.Watchdog/3, e2e.PollEvery, "%s is not in the agent's records", text)
}

// asked launches a session and waits for its question about a command that makes the file "made".
func (s *agentSite) asked(c *e2e.Client) (e2e.Launched, e2e.Event) {
	s.T.Helper()
	l, question := c.Asks("run: touch made", s.agent)
	require.Equal(s.T, "Bash", question.Data.ToolName)
	var input struct{ Command string }
	require.NoError(s.T, json.Unmarshal(question.Data.ToolInput, &input))
	require.Equal(s.T, "touch made", input.Command)
	c.AwaitState(l.SessionID, "waiting_input")
	require.False(s.T, s.exists("made"))
	return l, question
}

// programsOf returns the folder of an installed agent's programs.
func programsOf(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(installedAgent(t, name), "node_modules", ".bin")
}

// onNode22 is programsOf for an agent that needs Node 22. It puts Node 22 in front of the folder.
func onNode22(t testing.TB, name string) string {
	t.Helper()
	programs := programsOf(t, name)
	if node := programsOf(t, "node-22"); runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		return node + string(os.PathListSeparator) + programs
	}
	version, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	require.NoError(t, err)
	var major int
	_, err = fmt.Sscanf(string(version), "v%d", &major)
	require.NoError(t, err, "%s", version)
	if major < 22 {
		t.Skip("testdata/agents/node-22 supports only x86-64 Linux, and the system's Node is older than 22")
	}
	return programs
}

// installedAgent returns the folder into which .ci/install has put an agent. If the agent is
// missing, it skips the test, or fails it where all tests must run.
func installedAgent(t testing.TB, name string) string {
	t.Helper()
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		require.NoError(t, err)
		cache = filepath.Join(home, ".cache")
	}
	dir := filepath.Join(cache, "duet-rpc", "agents", name)
	want := e2e.ReadFile(t, filepath.Join(e2e.Root+"/testdata/agents", name, "package-lock.json"))
	got, _ := os.ReadFile(filepath.Join(dir, "installed-lock.json"))
	_, noNode := exec.LookPath("node")
	if noNode == nil && string(got) == want {
		return dir
	}
	testkit.SkipMissing(t, fmt.Sprintf("%s in the version of its lock file is not in %s, or Node is missing: run .ci/install", name, dir))
	return ""
}

// A toolCall is a tool call of a session, with its result.
type toolCall struct{ Tool, Input, Status, Approval, Result string }

func toolCalls(c *e2e.Client, session string) (calls []toolCall) {
	c.T.Helper()
	for _, e := range c.Items(session) {
		switch e.Type {
		case "tool_call":
			calls = append(calls, toolCall{Tool: e.Tool, Input: e.Input, Status: e.Status, Approval: e.Approval})
		case "tool_result": // a result follows its call
			calls[len(calls)-1].Result = e.Result
		}
	}
	return calls
}

// A toldUsage holds the token counts in a session's state.
type toldUsage struct {
	Native  string `json:"claude_session_id"`
	Input   int    `json:"input_tokens"`
	Output  int    `json:"output_tokens"`
	Context int    `json:"effective_context_tokens"`
	Limit   int    `json:"context_limit"`
	Stop    string `json:"stop_reason"`
}

func usageOf(c *e2e.Client, session string) toldUsage {
	c.T.Helper()
	var r struct{ Session toldUsage }
	c.Call("getSessionState", object{"session_id": session}, &r)
	return r.Session
}

// requireGoesOn continues a session with the last of prompts. It requires that the session
// completes and that the model receives all prompts.
func (s *agentSite) requireGoesOn(c *e2e.Client, from e2e.Launched, prompts ...string) (next e2e.Launched) {
	s.T.Helper()
	c.Call("continueSession", object{"session_id": from.SessionID, "query": prompts[len(prompts)-1]}, &next)
	end := c.AwaitEnd(next.SessionID)
	require.Equal(s.T, "completed", end.Data.State, "%s", end.Raw)
	require.Equal(s.T, prompts, s.model.Prompts())
	return next
}
