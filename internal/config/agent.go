package config

import (
	"cmp"
	"context"
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
	envFrom     []string
	keyVariable string // the variable that holds its key, and
	keyService  string // the service of that key
	files       string // one of catalog.Files…; "" means read-write
	install     string // how to install it
	login       loginFile
	node        int    // the oldest major version of Node.js that npm installs the current version for; 0: any
	cli         string // the agent's well-known program, which needs this one to speak the protocol
}

// builtIns returns the built-in agents, in the order of preference if no agent was configured.
// Each is started as its own documentation says.
func builtIns() []builtIn {
	return []builtIn{
		{
			name: "claude", title: "Claude Code", command: []string{"claude-agent-acp"},
			envFrom:     []string{"ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_EXECUTABLE"},
			keyVariable: "ANTHROPIC_API_KEY", keyService: "anthropic",
			install: "npm install -g @agentclientprotocol/claude-agent-acp", node: 22, cli: "claude",
			login: loginFile{"CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"},
		},
		{
			name: "codex", title: "Codex", command: []string{"codex-acp"},
			envFrom:     []string{"OPENAI_BASE_URL", "CODEX_HOME"},
			keyVariable: "OPENAI_API_KEY", keyService: "openai",
			install: "npm install -g @agentclientprotocol/codex-acp", cli: "codex",
			login: loginFile{"CODEX_HOME", ".codex", "auth.json"},
		},
		{
			name: "gemini", title: "Gemini CLI", command: []string{"gemini", "--acp"},
			envFrom:     []string{"GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_GENAI_USE_VERTEXAI"},
			keyVariable: "GEMINI_API_KEY", keyService: "gemini",
			files:   catalog.FilesWrite, // it reads a file before it creates it, and gives up when its editor reports that there is none
			install: "npm install -g @google/gemini-cli",
			login:   loginFile{"", ".gemini", "oauth_creds.json"},
		},
		{
			name: "opencode", title: "opencode", command: []string{"opencode", "acp"},
			envFrom: []string{"OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"},
			install: "npm install -g opencode-ai",
			login:   loginFile{"XDG_DATA_HOME", ".local/share", "opencode/auth.json"},
		},
		{
			name: "goose", title: "goose", command: []string{"goose", "acp"},
			envFrom: []string{"GOOSE_PROVIDER", "GOOSE_MODEL"},
			install: "see the project's page, block/goose",
		},
		{
			name: "qwen", title: "Qwen Code", command: []string{"qwen", "--acp"},
			envFrom: []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"},
			install: "npm install -g @qwen-code/qwen-code", node: 22,
			login: loginFile{"", ".qwen", "oauth_creds.json"},
		},
		{
			name: "kimi", title: "Kimi Code", command: []string{"kimi", "acp"},
			envFrom: []string{
				"KIMI_API_KEY", "KIMI_BASE_URL", "KIMI_CODE_HOME",
				"KIMI_MODEL_NAME", "KIMI_MODEL_API_KEY", "KIMI_MODEL_BASE_URL", "KIMI_MODEL_PROVIDER_TYPE", "KIMI_MODEL_MAX_CONTEXT_SIZE",
			},
			install: "npm install -g @moonshot-ai/kimi-code", node: 22,
		},
		{
			name: "copilot", title: "GitHub Copilot CLI", command: []string{"copilot", "--acp"},
			envFrom: []string{
				"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_HOME", "COPILOT_OFFLINE", "COPILOT_MODEL",
				"COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_TYPE", "COPILOT_PROVIDER_WIRE_API", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN",
			},
			install: "npm install -g @github/copilot",
		},
	}
}

// commonEnvironment returns the variables that every built-in agent gets in addition to those
// that the executor gives to all: the location of its own files, and the network settings.
func commonEnvironment() []string {
	return []string{
		"USER", "SHELL", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "SSH_AUTH_SOCK",
	}
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

// demo returns the agent inside this program.
func demo() Agent {
	a := Agent{
		Name: demoAgent, Title: "Demonstration", Driver: DriverACP, Prompt: "arg", History: "transcript", Files: catalog.FilesReadWrite,
		EnvFrom: []string{"XDG_STATE_HOME", "DUET_DEMO_DELAY", "DUET_DEMO_STATE", "GORACE"},
		Source:  SourceBuiltIn, Trusted: true,
	}
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
	return fmt.Sprintf("the agent %s is defined by this project's %s, which you have not trusted: look at what it runs and allow it with `duet-rpc trust`",
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

// KeysAtHand returns the variables of the agent that receive a key, except those whose key comes
// from an environment variable that is not set. It runs and reads nothing.
func (c *Config) KeysAtHand(a Agent, getenv func(string) string) (variables []string) {
	for _, name := range slices.Sorted(maps.Keys(a.Keys)) {
		if a.Env[name] != "" {
			variables = append(variables, name)
			continue
		}
		key, configured := c.Keys[a.Keys[name]]
		if !configured {
			key = Key{Env: KeyVariable(a.Keys[name])}
		}
		if key.Env != "" && strings.TrimSpace(getenv(key.Env)) == "" {
			continue
		}
		variables = append(variables, name)
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

// VariablesFrom returns the names in env_from of the agents that the user trusts, sorted,
// without duplicates.
func (c *Config) VariablesFrom() []string {
	var names []string
	for _, a := range c.Agents {
		if a.Trusted {
			names = append(names, a.EnvFrom...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Variables returns the variables that the agent gets when a client launches it, except those
// that hold keys. For client and getenv see [clientenv.Environment.For].
func (a Agent) Variables(client clientenv.Environment, getenv func(string) string) map[string]string {
	env := client.For(a.EnvFrom, getenv)
	maps.Copy(env, a.Env)
	return env
}

// KeyVariable returns the environment variable with the key of a service without configuration.
func KeyVariable(service string) string { return strings.ToUpper(service) + "_API_KEY" }

// FetchKeys returns the agent's keys, by variable, without prompting the user. missing describes
// the keys that it could not get.
func (c *Config) FetchKeys(ctx context.Context, a Agent, getenv func(string) string) (keys map[string]string, missing []string) {
	keys = make(map[string]string, len(a.Keys))
	for _, name := range slices.Sorted(maps.Keys(a.Keys)) {
		service := a.Keys[name]
		key, configured := c.Keys[service]
		if !configured {
			key = Key{Env: KeyVariable(service)}
		}
		value, err := key.Fetch(ctx, getenv)
		if err != nil {
			missing = append(missing, fmt.Sprintf("the key of %s (%s): %v", service, name, err))
			continue
		}
		keys[name] = value
	}
	return keys, missing
}
