package config_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func TestResolve(t *testing.T) {
	const mine = "[agents.mine]\ncommand = ['mine']\n"
	for _, test := range []struct {
		name      string
		installed []string
		user      string
		ask, want string
		available bool
	}{
		{"nothing is there", nil, "", "", "demo", true},
		{"one is there", []string{"goose"}, "", "", "goose", true},
		{"the first known", []string{"opencode", "codex-acp"}, "", "", "codex", true},
		{"known ones before others", []string{"goose", "mine"}, mine, "", "goose", true},
		{"another before the demo", []string{"mine"}, mine, "", "mine", true},
		{"another that is not there", nil, mine, "", "demo", true},
		{"the default wins", []string{"claude-agent-acp", "mine"}, "default_agent='mine'\n" + mine, "", "mine", true},
		{"the default that is not there", []string{"claude-agent-acp"}, "default_agent='gemini'", "", "gemini", false},
		{"by name", []string{"claude-agent-acp"}, "default_agent='gemini'", "demo", "demo", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.install(test.installed...)
			w.write(w.user, test.user)
			c := w.load()
			a, err := c.Resolve(test.ask)
			require.NoError(t, err)
			assert.Equal(t, test.want, a.Name)
			assert.Equal(t, test.available, a.Available)
			assert.True(t, a.Trusted)
			if test.ask == "" {
				assert.Equal(t, test.want, c.List()[0].Name, "the default is listed first")
				assert.Equal(t, test.want, c.Default())
			}
			if !a.Available {
				assert.NotEmpty(t, a.Install())
			}
		})
	}
}

func TestResolveUnknown(t *testing.T) {
	_, err := newWorld(t).load().Resolve("cluade")
	var unknown *config.UnknownAgentError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, []string{"claude", "codex", "copilot", "demo", "gemini", "goose", "kimi", "opencode", "qwen"}, unknown.Known)
	assert.EqualError(t, err, `there is no agent "cluade" (did you mean claude?); known are claude, codex, copilot, demo, gemini, goose, kimi, opencode, qwen`)
}

func TestDemo(t *testing.T) {
	a, err := newWorld(t).load().Resolve("demo")
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	assert.Equal(t, []string{self, "demo-agent"}, a.Command)
	assert.Equal(t, self, a.Path)
	assert.Equal(t, config.DriverACP, a.Driver)
	assert.Equal(t, config.SourceBuiltIn, a.Source)
}

func TestAgentOfTheUser(t *testing.T) {
	w := newWorld(t)
	w.install("mine")
	w.write(w.user, `
[agents.mine]
driver = "command"
command = ["mine", "{prompt}"]
prompt = "stdin"
history = "none"
files = "none"
start_timeout = "90s"
silent_after = "200ms"
silent_tool_after = "2m"
protocol = 1
title = "Mine"
env = { A = "b" }
env_from = ["C"]
keys = { D = "service" }
mcp_servers = [{ name = "m", command = "~/m", args = ["x"] }, { name = "n", url = "http://n" }]
`)
	assert.Equal(t, config.Agent{
		Name: "mine", Driver: "command", Command: []string{"mine", "{prompt}"}, Prompt: "stdin", History: "none", Files: catalog.FilesNone, StartTimeout: 90 * time.Second,
		SilentAfter: 200 * time.Millisecond, SilentToolAfter: 2 * time.Minute, Protocol: 1,
		Env: map[string]string{"A": "b"}, EnvFrom: []string{"C"}, Keys: map[string]string{"D": "service"},
		MCPServers: []catalog.MCPServer{
			{Name: "m", Command: filepath.Join(w.env["HOME"], "m"), Args: []string{"x"}},
			{Name: "n", Type: "http", URL: "http://n"},
		},
		Source: "user", Title: "Mine", Trusted: true, Available: true, Path: filepath.Join(w.bin, executable("mine")),
	}, w.load().Agents["mine"])
}

func TestAgentThatIsChanged(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, "[agents.claude]\nenv = { A = 'user', B = 'user' }\nenv_from = ['MINE', 'MY_*', 'BROWSER']\n")
	w.write(w.project, "[agents.claude]\nenv = { B = 'project' }\n")
	before := newWorld(t).load().Agents["claude"]
	a := w.trusted().load().Agents["claude"]
	assert.Equal(t, before.Command, a.Command)
	assert.Equal(t, map[string]string{"A": "user", "B": "project"}, a.Env)
	assert.Equal(t, append(before.EnvFrom, "MINE", "MY_*"), a.EnvFrom, "added to, none twice")
	assert.Equal(t, config.SourceProject, a.Source)
}

func TestProgramsOfAProject(t *testing.T) {
	w := newWorld(t)
	root := filepath.Dir(w.project)
	program := filepath.Join(root, executable("run"))
	require.NoError(t, os.WriteFile(program, nil, 0o700))
	w.write(w.project, "[agents.here]\ncommand = ['./"+executable("run")+"']\n[agents.bare]\ncommand = ['run']\n")
	c := w.trusted().load()
	assert.Equal(t, program, c.Agents["here"].Path, "relative to the file")
	assert.Equal(t, []string{program}, c.Agents["here"].Command)
	assert.False(t, c.Agents["bare"].Available, "a bare name is only looked for on PATH")

	t.Chdir(filepath.Dir(root))
	w.env["PATH"] = filepath.Base(root) + string(os.PathListSeparator) + w.bin
	assert.False(t, w.load().Agents["bare"].Available, "what is relative on PATH is passed over")
}

func TestBuiltInAgentsGetTheKeysThatThereAre(t *testing.T) {
	keys := map[string]string{"ANTHROPIC_API_KEY": "anthropic"}
	w := newWorld(t)
	assert.Empty(t, w.load().Agents["claude"].Keys)

	w.env["ANTHROPIC_API_KEY"] = "x"
	c := w.load()
	assert.Equal(t, keys, c.Agents["claude"].Keys)
	assert.Equal(t, config.Key{Env: "ANTHROPIC_API_KEY"}, c.Keys["anthropic"])

	w.write(w.user, "[keys.anthropic]\nfile = 'key'\n")
	assert.Equal(t, config.Key{File: filepath.Join(filepath.Dir(w.user), "key")}, w.load().Keys["anthropic"], "what is configured wins")
	delete(w.env, "ANTHROPIC_API_KEY")
	assert.Equal(t, keys, w.load().Agents["claude"].Keys)

	w.write(w.user, "[keys.anthropic]\nenv = 'A'\n[agents.claude]\nkeys = { ANTHROPIC_API_KEY = 'other' }\n")
	assert.Equal(t, map[string]string{"ANTHROPIC_API_KEY": "other"}, w.load().Agents["claude"].Keys)
}

// The instruction for an agent that cannot start can be typed as it is.
func TestHowAnAgentIsInstalled(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, "[agents.mine]\ncommand = ['mine']\n[agents.codex]\ncommand = ['my-codex']\n")
	c := w.load()
	for name, want := range map[string]string{
		"claude": "install it with `npm install -g @agentclientprotocol/claude-agent-acp` (claude alone does not speak the Agent Client Protocol)",
		"gemini": "install it with `npm install -g @google/gemini-cli`",
		"goose":  "install it (see the project's page, block/goose)",
		"codex":  "", // another program than the known one
		"mine":   "",
	} {
		a, err := c.Resolve(name)
		require.NoError(t, err)
		assert.Equal(t, want, a.HowToInstall(), name)
	}
}

// An agent that the user does not trust adds no name to the variables that clients send.
func TestVariablesFrom(t *testing.T) {
	c := &config.Config{Agents: map[string]config.Agent{
		"a": {EnvFrom: []string{"TWO", "ONE"}, Trusted: true}, "b": {EnvFrom: []string{"TWO"}, Keys: map[string]string{"X": "service"}, Trusted: true}, "c": {EnvFrom: []string{"THREE"}},
	}}
	assert.Equal(t, []string{"ONE", "SERVICE_API_KEY", "TWO"}, c.VariablesFrom())
}

// Each built-in agent gets the variables by which its own client signs in, and no agent those of
// another vendor.
func TestBuiltInAgentsGetTheirSignIns(t *testing.T) {
	c := newWorld(t).load()
	agents := map[string]string{
		"ANTHROPIC_AUTH_TOKEN": "claude", "ANTHROPIC_MODEL": "claude", "CLAUDE_CODE_OAUTH_TOKEN": "claude", "CLAUDE_CODE_USE_BEDROCK": "claude",
		"CLAUDE_CODE_USE_VERTEX": "claude", "ANTHROPIC_VERTEX_PROJECT_ID": "claude", "CLOUD_ML_REGION": "claude",
		"AWS_PROFILE": "claude codex", "AWS_BEARER_TOKEN_BEDROCK": "claude codex", "GOOGLE_APPLICATION_CREDENTIALS": "claude gemini", "GOOGLE_CLOUD_PROJECT": "claude gemini",
		"CODEX_API_KEY": "codex", "OPENAI_API_KEY": "codex qwen", "OPENAI_ORGANIZATION": "codex qwen", "AZURE_OPENAI_API_KEY": "codex",
		"GEMINI_API_KEY": "gemini", "GOOGLE_API_KEY": "gemini", "DASHSCOPE_API_KEY": "qwen", "MOONSHOT_API_KEY": "kimi",
		"GH_TOKEN": "copilot", "COPILOT_GITHUB_TOKEN": "copilot", "GOOSE_PROVIDER": "goose", "OPENCODE_CONFIG_CONTENT": "opencode",
		"CLAUDE_CODE_ENTRYPOINT": "", "CLAUDE_CODE_SSE_PORT": "", "CODEX_SANDBOX": "", "DATABASE_PASSWORD": "", "LD_PRELOAD": "",
		"NODE_EXTRA_CA_CERTS": "claude codex copilot demo gemini goose kimi opencode qwen", "VIRTUAL_ENV": "claude codex copilot demo gemini goose kimi opencode qwen",
	}
	client := clientenv.Environment{}
	for name := range agents {
		client[name] = "x"
	}
	for name, want := range agents {
		var got []string
		for _, agent := range slices.Sorted(maps.Keys(c.Agents)) {
			if c.Agents[agent].Variables(client, func(string) string { return "" })[name] != "" {
				got = append(got, agent)
			}
		}
		assert.Equal(t, want, strings.Join(got, " "), name)
	}
}

// The program is looked up on a PATH unless the command is a path.
func TestProgramOn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "program")
	testkit.Program(t, file, "#!/bin/sh\n")
	assert.Equal(t, file, config.Agent{Command: []string{"program"}}.ProgramOn("relative:"+dir))
	assert.Empty(t, config.Agent{Command: []string{"program"}}.ProgramOn("/nowhere"))
	assert.Empty(t, config.Agent{Command: []string{file}}.ProgramOn(dir))
	assert.Empty(t, config.Agent{}.ProgramOn(dir))
}

// An agent on a host works there under its own name or another one. It is not looked for here, and a daemon here refuses it.
func TestAgentOnHost(t *testing.T) {
	w := newWorld(t)
	w.install("claude-agent-acp")
	w.write(w.user, "[agents.claude]\nhost = 'devbox'\n[agents.far]\nhost = 'codex@other.box'\n")
	c := w.load()
	for name, want := range map[string][2]string{"claude": {"claude", "devbox"}, "far": {"codex", "other.box"}, "demo": {"demo", ""}} {
		a, err := c.Resolve(name)
		require.NoError(t, err)
		agent, host := a.OnHost()
		assert.Equal(t, want, [2]string{agent, host})
		_, err = config.AgentIn(c, name)
		refused, is := errors.AsType[*domain.Error](err)
		if assert.Equal(t, host != "", is, name); is {
			assert.Equal(t, domain.KindAgentOnHost, refused.Kind)
			assert.Contains(t, refused.Message, "works on the host "+host+", not here")
			assert.False(t, a.Available)
		}
	}
	assert.Equal(t, "demo", c.Default(), "an agent on a host is the default only if default_agent names it")

	w.write(w.user, "[agents.far]\nhost = 'a@b@c'\n")
	_, err := config.Load(w.sources())
	assert.ErrorContains(t, err, "the name of a host, such as devbox, or that of an agent on it")
}
