package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
)

// demoAgent is the scripted agent inside this program, which always exists.
const demoAgent = "demo"

// builtIn is an agent that needs no configuration.
type builtIn struct {
	name, title string
	command     []string
	envFrom     []string // names, and patterns with a * at the end
	signIn      []string // those by which its user signs in
	keyVariable string   // the variable that holds its key, and
	keyService  string   // the service of that key
	files       string   // one of catalog.Files…; "" means read-write
	install     string   // how to install it
	login       loginFile
	node        int      // the oldest major version of Node.js that npm installs the current version for; 0: any
	writes      []string // what it may write in a sandbox, with variables; a / at the end: a directory, which is made if it is missing
	cli         string   // the agent's well-known program, which needs this one to speak the protocol
}

// builtIns returns the built-in agents, in the order of preference if no agent was configured.
// Each is started as its own documentation says.
func builtIns() []builtIn {
	return []builtIn{
		{
			name: "claude", title: "Claude Code", command: []string{"claude-agent-acp"},
			// Not CLAUDE_CODE_*: Claude Code marks its own commands with variables such as
			// CLAUDE_CODE_ENTRYPOINT, which are wrong for another Claude Code.
			envFrom: slices.Concat([]string{
				"ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_EXECUTABLE", "CLAUDE_MODEL_CONFIG", "CLAUDE_AGENT_LOGS",
				"CLAUDE_CODE_OAUTH_*", "CLAUDE_CODE_USE_*", "CLAUDE_CODE_SKIP_*", "CLAUDE_CODE_CLIENT_*", "CLAUDE_CODE_API_KEY_*",
				"CLAUDE_CODE_DISABLE_*", "CLAUDE_CODE_ENABLE_*", "CLAUDE_CODE_MAX_*", "CLAUDE_CODE_SUBAGENT_MODEL", "CLAUDE_CODE_EFFORT_LEVEL",
				"CLAUDE_CODE_THINKING_DISPLAY",
				"MAX_THINKING_TOKENS", "API_TIMEOUT_MS", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_*", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT",
				"MAX_MCP_OUTPUT_TOKENS",
				"DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_PROMPT_CACHING*", "DO_NOT_TRACK", "OTEL_*",
				"CLOUD_ML_REGION", "VERTEX_REGION_*", "AZURE_CLIENT_*", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE",
			}, amazon(), googleCloud()),
			signIn: []string{
				"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN",
				"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY",
			},
			keyVariable: "ANTHROPIC_API_KEY", keyService: "anthropic",
			install: "npm install -g @agentclientprotocol/claude-agent-acp", node: 22, cli: "claude",
			login:  loginFile{"CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"},
			writes: []string{"$CLAUDE_CONFIG_DIR/", "$HOME/.claude/", "$HOME/.claude.json", "$XDG_CACHE_HOME/claude-cli-nodejs/"},
		},
		{
			name: "codex", title: "Codex", command: []string{"codex-acp"},
			// Not CODEX_*: codex marks its own commands with variables such as CODEX_SANDBOX.
			envFrom: slices.Concat([]string{
				"OPENAI_*", "AZURE_OPENAI_*", "CODEX_HOME", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CA_CERTIFICATE",
				"CODEX_PATH", "CODEX_CONFIG", "APP_SERVER_LOGS", "DEFAULT_AUTH_REQUEST", "INITIAL_AGENT_MODE", "MODEL_PROVIDER",
			}, amazon()),
			signIn:      []string{"CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY"},
			keyVariable: "OPENAI_API_KEY", keyService: "openai",
			install: "npm install -g @agentclientprotocol/codex-acp", cli: "codex",
			login:  loginFile{"CODEX_HOME", ".codex", "auth.json"},
			writes: []string{"$CODEX_HOME/", "$HOME/.codex/"},
		},
		{
			name: "gemini", title: "Gemini CLI", command: []string{"gemini", "--acp"},
			envFrom:     slices.Concat([]string{"GEMINI_*", "GOOGLE_*"}, googleCloud()),
			signIn:      []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"},
			keyVariable: "GEMINI_API_KEY", keyService: "gemini",
			files:   catalog.FilesWrite, // it reads a file before it creates it, and gives up when its editor reports that there is none
			install: "npm install -g @google/gemini-cli",
			login:   loginFile{"", ".gemini", "oauth_creds.json"},
			writes:  []string{"$HOME/.gemini/"},
		},
		{
			name: "opencode", title: "opencode", command: []string{"opencode", "acp"},
			envFrom: []string{"OPENCODE_*"},
			signIn:  []string{"OPENCODE_API_KEY"},
			install: "npm install -g opencode-ai",
			login:   loginFile{"XDG_DATA_HOME", ".local/share", "opencode/auth.json"},
			writes:  []string{"$XDG_DATA_HOME/opencode/", "$XDG_CONFIG_HOME/opencode/", "$XDG_STATE_HOME/opencode/", "$XDG_CACHE_HOME/opencode/"},
		},
		{
			name: "goose", title: "goose", command: []string{"goose", "acp"},
			envFrom: []string{"GOOSE_*"},
			writes:  []string{"$XDG_DATA_HOME/goose/", "$XDG_CONFIG_HOME/goose/", "$XDG_STATE_HOME/goose/"},
			install: "see the project's page, block/goose",
		},
		{
			name: "qwen", title: "Qwen Code", command: []string{"qwen", "--acp"},
			envFrom: []string{"OPENAI_*", "DASHSCOPE_*", "BAILIAN_*", "QWEN_*"},
			signIn:  []string{"OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY"},
			install: "npm install -g @qwen-code/qwen-code", node: 22,
			login:  loginFile{"", ".qwen", "oauth_creds.json"},
			writes: []string{"$HOME/.qwen/"},
		},
		{
			name: "kimi", title: "Kimi Code", command: []string{"kimi", "acp"},
			envFrom: []string{"KIMI_*", "MOONSHOT_*"},
			signIn:  []string{"KIMI_API_KEY", "KIMI_MODEL_API_KEY", "MOONSHOT_API_KEY"},
			install: "npm install -g @moonshot-ai/kimi-code", node: 22,
			writes: []string{"$HOME/.kimi-code/"},
		},
		{
			name: "copilot", title: "GitHub Copilot CLI", command: []string{"copilot", "--acp"},
			envFrom: []string{"COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST"},
			signIn:  []string{"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"},
			install: "npm install -g @github/copilot",
			writes:  []string{"$HOME/.copilot/"},
		},
	}
}

// commonEnvironment returns the variables that every built-in agent gets in addition to those
// of all agents: the location of its own files, and whether a browser can be opened to sign in.
func commonEnvironment() []string {
	return []string{"XDG_STATE_HOME", "BROWSER", "NO_BROWSER", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY"}
}

// amazon returns the variables of Amazon's cloud, which serves models of several vendors.
func amazon() []string { return []string{"AWS_*"} }

// googleCloud returns the variables of Google's cloud, which serves models of several vendors.
// The keys of Gemini are not among them.
func googleCloud() []string {
	return []string{"GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_*", "GCLOUD_PROJECT", "CLOUDSDK_*"}
}

func builtInNames() []string {
	var names []string
	for _, b := range builtIns() {
		names = append(names, b.name)
	}
	return names
}

// builtIn returns the built-in agent that a is, with its own program.
func (a Agent) builtIn() (builtIn, bool) {
	for _, b := range builtIns() {
		if b.name == a.Name && len(a.Command) > 0 && a.Command[0] == b.command[0] {
			return b, true
		}
	}
	return builtIn{}, false
}

// HowToInstall returns the instruction to install the program of a built-in agent; "" for any
// other.
func (a Agent) HowToInstall() string {
	b, ok := a.builtIn()
	switch {
	case !ok:
		return ""
	case !strings.HasPrefix(b.install, "npm "):
		return "install it (" + b.install + ")"
	case b.cli != "":
		return fmt.Sprintf("install it with `%s` (%s alone does not speak the Agent Client Protocol)", b.install, b.cli)
	}
	return fmt.Sprintf("install it with `%s`", b.install)
}

// OldestNode returns the oldest major version of Node.js for which npm installs the current
// version of the agent: for an older Node.js it silently installs an old one. 0: any, or
// unknown.
func (a Agent) OldestNode() int {
	b, _ := a.builtIn()
	return b.node
}

// Install returns the instruction to install the agent's program.
func (a Agent) Install() string {
	if b, ok := a.builtIn(); ok {
		return b.install
	}
	if len(a.Command) == 0 {
		return "give it a command"
	}
	// It is quoted because it may contain anything and goes to a terminal.
	return fmt.Sprintf("install %s, or correct the command of [agents.%s]", strconv.Quote(a.Command[0]), a.Name)
}

// OnHost returns the host on which an agent works, and its name there; host is "" for this machine.
func (a Agent) OnHost() (agent, host string) {
	if agent, host, both := strings.Cut(a.Host, "@"); both {
		return agent, host
	}
	return a.Name, a.Host
}

// checkAgentHost checks the host of an agent.
func checkAgentHost(s string) error {
	agent, host, both := strings.Cut(s, "@")
	if !both {
		host = agent
	}
	if checkName(agent) != nil || checkName(host) != nil {
		return errors.New("the name of a host, such as devbox, or that of an agent on it, such as claude@devbox")
	}
	return nil
}

// demo returns the agent inside this program.
func demo() Agent {
	a := newAgent(demoAgent)
	a.Title, a.Source = "Demonstration", SourceBuiltIn
	a.EnvFrom = []string{"XDG_STATE_HOME", "DUET_DEMO_DELAY", "DUET_DEMO_STATE", "GORACE"}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	a.Command = []string{self, "demo-agent"}
	return a
}

// UnknownAgentError reports that no agent has the name.
type UnknownAgentError struct {
	Name  string
	Known []string // sorted
}

func (e *UnknownAgentError) Error() string {
	return fmt.Sprintf("there is no agent %s%s; known are %s",
		quoteShort(e.Name), didYouMean(e.Name, e.Known), strings.Join(e.Known, ", "))
}

// NotTrustedError reports that a project's file defines or changes the agent and that the user
// does not trust that file.
type NotTrustedError struct {
	File  string // the path; the text contains only its name
	Agent string
}

func (e *NotTrustedError) Error() string {
	return fmt.Sprintf("the agent %s is defined by this project's %s, which you have not trusted: look at what it runs and allow it with "+
		"`duet-rpc trust`",
		quoteShort(e.Agent), filepath.Base(e.File))
}

// Resolve returns the agent of a name. An empty name means the configured default, else the
// first of the built-in agents whose program is found, else the first other one by name, else
// "demo". The program of the returned agent may be missing (Available is false). Errors are
// [*UnknownAgentError] and [*NotTrustedError].
func (c *Config) Resolve(name string) (Agent, error) {
	if name == "" {
		name = c.DefaultAgent
	}
	if name == "" {
		name = c.firstAgent()
	}
	a, known := c.Agents[name]
	if !known {
		return Agent{}, &UnknownAgentError{Name: name, Known: slices.Sorted(maps.Keys(c.Agents))}
	}
	if !a.Trusted {
		return Agent{}, &NotTrustedError{File: c.projectFile, Agent: name}
	}
	return a, nil
}

// firstAgent returns the agent that Resolve takes if no agent was configured.
func (c *Config) firstAgent() string {
	for _, name := range append(builtInNames(), slices.Sorted(maps.Keys(c.Agents))...) {
		if a := c.Agents[name]; name != demoAgent && a.Available && a.Trusted {
			return name
		}
	}
	return demoAgent
}

// Default returns the name of the agent that [Config.Resolve] takes for an empty name; an agent
// of that name may not exist.
func (c *Config) Default() string {
	if c.DefaultAgent != "" {
		return c.DefaultAgent
	}
	return c.firstAgent()
}

// List returns every agent: the default first, then those whose program was found, each group
// sorted by name.
func (c *Config) List() []Agent {
	first := c.Default()
	rank := func(a Agent) int {
		switch {
		case a.Name == first:
			return 0
		case a.Available:
			return 1
		}
		return 2
	}
	return slices.SortedFunc(maps.Values(c.Agents), func(a, b Agent) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
}

// lookPath finds a program on getenv's PATH. It ignores relative directories: their content
// depends on the working directory.
func lookPath(program string, getenv func(string) string) string {
	if filepath.IsAbs(program) {
		found, _ := exec.LookPath(program)
		return found
	}
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return found
		}
	}
	return ""
}

// A loginFile is the file with an agent's login: below the directory that a variable names, or
// else below the home directory.
type loginFile struct{ variable, below, file string }

// LoginFile returns the file in which a built-in agent keeps its login, or "" if unknown. The
// file may be missing; Duet never reads it.
func (a Agent) LoginFile(getenv func(string) string) string {
	b, ok := a.builtIn()
	if !ok || b.login.file == "" {
		return ""
	}
	variables := a.Variables(nil, getenv)
	if base := variables[b.login.variable]; filepath.IsAbs(base) {
		return filepath.Join(base, b.login.file)
	}
	home := variables["HOME"]
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, b.login.below, b.login.file)
}

// SandboxWrites returns the paths that the agent may write in a sandbox, besides its session's
// directories: a built-in agent its own files, and all agents those of sandbox_write. variables is the
// agent's environment. It makes missing directories of a built-in agent, which cannot make them itself.
func (a Agent) SandboxWrites(variables map[string]string) (list []string) {
	own := []string{}
	if b, ok := a.builtIn(); ok {
		own = b.writes
	} else if a.IsDemo() {
		own = []string{"$DUET_DEMO_STATE/", "$XDG_STATE_HOME/duet/demo/"}
	}
	for _, path := range own {
		unset := false
		path = os.Expand(path, func(name string) string {
			value, below := variables[name], map[string]string{
				"XDG_DATA_HOME": ".local/share", "XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state", "XDG_CACHE_HOME": ".cache",
			}[name]
			if value == "" && below != "" && variables["HOME"] != "" {
				value = filepath.Join(variables["HOME"], below)
			}
			unset = unset || value == ""
			return value
		})
		if unset || !filepath.IsAbs(path) {
			continue
		}
		if strings.HasSuffix(path, "/") {
			_ = os.MkdirAll(path, 0o700) // without it the agent says what it cannot write
		}
		list = append(list, filepath.Clean(path))
	}
	return append(list, a.SandboxWrite...)
}

// KeysAtHand returns the variables of the agent that receive a key, except those whose key comes
// from an environment variable that is not set, and the set variables by which the user signs in
// to a built-in agent. It runs and reads nothing.
func (c *Config) KeysAtHand(a Agent, getenv func(string) string) (variables []string) {
	for _, name := range slices.Sorted(maps.Keys(a.Keys)) {
		if a.Env[name] != "" {
			variables = append(variables, name)
			continue
		}
		key := c.keyOf(a.Keys[name])
		if key.Env != "" && strings.TrimSpace(getenv(key.Env)) == "" {
			continue
		}
		variables = append(variables, name)
	}
	if b, ok := a.builtIn(); ok {
		given := a.Variables(nil, getenv)
		for _, name := range b.signIn {
			if given[name] != "" && !slices.Contains(variables, name) {
				variables = append(variables, name)
			}
		}
	}
	return variables
}

// IsBuiltIn reports whether it is a built-in agent with its own program.
func (a Agent) IsBuiltIn() bool {
	_, ok := a.builtIn()
	return ok
}

// IsDemo reports whether it is the agent inside this program.
func (a Agent) IsDemo() bool { return a.Name == demoAgent }

// StartCommand returns the agent's command with the path of its program, so that it does not
// depend on PATH.
func (a Agent) StartCommand() []string {
	command := slices.Clone(a.Command)
	if a.Path != "" {
		command[0] = a.Path
	}
	return command
}

// ProgramOn finds the agent's program on a PATH. It returns "" if there is none, or if the
// command is a path and not a name.
func (a Agent) ProgramOn(path string) string {
	if len(a.Command) == 0 || strings.ContainsRune(a.Command[0], filepath.Separator) {
		return ""
	}
	return lookPath(a.Command[0], func(string) string { return path })
}

// VariablesFrom returns the names and patterns in env_from of the agents that the user trusts, and
// the variables that hold their keys, sorted, without duplicates.
func (c *Config) VariablesFrom() []string {
	var names []string
	for _, a := range c.Agents {
		if a.Trusted {
			names = append(names, a.EnvFrom...)
			for _, service := range a.Keys {
				names = append(names, c.keyOf(service).Env)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Variables returns the variables that the agent gets when a client launches it, except those of
// its keys. For client and getenv see [clientenv.Environment.For].
func (a Agent) Variables(client clientenv.Environment, getenv func(string) string) map[string]string {
	env := a.VariablesOf(client, getenv)
	maps.Copy(env, a.Env)
	return env
}

// VariablesOf is Variables without those of the agent's env.
func (a Agent) VariablesOf(client clientenv.Environment, getenv func(string) string) map[string]string {
	env := client.For(a.EnvFrom, getenv)
	for name := range a.Keys {
		delete(env, name)
	}
	return env
}

// KeptBack returns the names in environ, a list of NAME=value, of the variables with keys that the
// agent does not get, sorted.
func (a Agent) KeptBack(environ []string) []string {
	names := clientenv.KeptBack(environ, a.EnvFrom)
	return slices.DeleteFunc(names, func(name string) bool { return a.Keys[name] != "" || a.Env[name] != "" })
}

// keyOf returns where the key of a service is.
func (c *Config) keyOf(service string) Key {
	if key, configured := c.Keys[service]; configured {
		return key
	}
	return Key{Env: KeyVariable(service)}
}

// KeyVariable returns the environment variable with the key of a service without configuration.
func KeyVariable(service string) string { return strings.ToUpper(service) + "_API_KEY" }

// FetchKeys returns the agent's keys, by variable, without prompting the user. missing describes
// the keys that it could not get.
func (c *Config) FetchKeys(ctx context.Context, a Agent, getenv func(string) string) (keys map[string]string, missing []string) {
	keys = make(map[string]string, len(a.Keys))
	for _, name := range slices.Sorted(maps.Keys(a.Keys)) {
		service := a.Keys[name]
		value, err := c.keyOf(service).Fetch(ctx, getenv)
		if err != nil {
			missing = append(missing, fmt.Sprintf("the key of %s (%s): %v", service, name, err))
			continue
		}
		keys[name] = value
	}
	return keys, missing
}
