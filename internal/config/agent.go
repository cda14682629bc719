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

// demoAgent is the scripted agent inside this program, which is always there.
const demoAgent = "demo"

// builtIn is an agent that is known without configuration.
type builtIn struct {
	name, title string
	command     []string
	envFrom     []string
	keyVariable string // the variable that holds its key, and
	keyService  string // the service that the key is of
	files       string // one of catalog.Files…; "" means that they are read and written
	install     string // how people get it
	login       loginFile
	node        int    // the oldest major version of Node.js that npm installs the current version for; 0: any
	cli         string // the program that people know, which needs this one to be spoken with
}

// builtIns are in the order in which they are chosen where nobody said which
// agent to take. Each is started as its own documentation says.
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
			files:   catalog.FilesWrite, // it reads a file before it makes it, and gives up when its editor says that there is none
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

// commonEnvironment is what every built-in agent gets besides what the
// executor gives to all: where it finds its own files, and the way to the
// network.
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

// known is the built-in agent that a is, with its own program.
func (a Agent) known() (builtIn, bool) {
	for _, b := range builtIns() {
		if b.name == a.Name && len(a.Command) > 0 && a.Command[0] == b.command[0] {
			return b, true
		}
	}
	return builtIn{}, false
}

// HowToInstall says, as what to do, how people get the program of an agent that is
// known without configuration; "" of any other.
func (a Agent) HowToInstall() string {
	b, ok := a.known()
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

// OldestNode is the oldest major version of Node.js for which npm installs the current
// version of the agent: for an older Node.js it installs an old one and says nothing. 0:
// any, or not known.
func (a Agent) OldestNode() int {
	b, _ := a.known()
	return b.node
}

// Install says how people get the agent's program.
func (a Agent) Install() string {
	if b, ok := a.known(); ok {
		return b.install
	}
	if len(a.Command) == 0 {
		return "give it a command"
	}
	// It is quoted since it may be anything and goes to a terminal.
	return fmt.Sprintf("install %s, or correct the command of [agents.%s]", strconv.Quote(a.Command[0]), a.Name)
}

// demo is the agent inside this program.
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

// UnknownAgentError says that no agent has the name.
type UnknownAgentError struct {
	Name  string
	Known []string // sorted
}

func (e *UnknownAgentError) Error() string {
	return fmt.Sprintf("there is no agent %s%s; known are %s",
		quoteShort(e.Name), didYouMean(e.Name, e.Known), strings.Join(e.Known, ", "))
}

// NotTrustedError says that a project's file has a say in the agent and that
// the user does not trust that file.
type NotTrustedError struct {
	File  string // the path; the text has its name only
	Agent string
}

func (e *NotTrustedError) Error() string {
	return fmt.Sprintf("the agent %s is defined by this project's %s, which you have not trusted: look at what it runs and allow it with `duet-rpc trust`",
		quoteShort(e.Agent), filepath.Base(e.File))
}

// Resolve gives the agent of a name. An empty name means the configured
// default, else the first of the built-in agents whose program is found, else
// the first other one by name, else "demo". The agent may be one whose program
// was not found (Available is false). Errors are [*UnknownAgentError] and
// [*NotTrustedError].
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

// firstAgent is what Resolve takes if no agent was chosen.
func (c *Config) firstAgent() string {
	for _, name := range append(builtInNames(), slices.Sorted(maps.Keys(c.Agents))...) {
		if a := c.Agents[name]; name != demoAgent && a.Available && a.Trusted {
			return name
		}
	}
	return demoAgent
}

// Default is the name of the agent that [Config.Resolve] takes for an empty
// one; there may be no agent of that name.
func (c *Config) Default() string {
	if c.DefaultAgent != "" {
		return c.DefaultAgent
	}
	return c.firstAgent()
}

// List gives every agent: the default first, then those whose program was
// found, each group sorted by name.
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

// lookPath finds a program on the PATH that getenv tells. Relative directories
// are passed over: what they hold depends on where one stands.
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

// A loginFile is where an agent keeps what it learns when somebody signs in: a file
// below the directory that a variable names, or else below the home.
type loginFile struct{ variable, below, file string }

// LoginFile is the file in which a built-in agent keeps its login, or "" where that
// is not known. It may not be there, and is never to be read.
func (a Agent) LoginFile(getenv func(string) string) string {
	b, ok := a.known()
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

// KeysAtHand are the variables of the agent that are to get a key, but for those whose
// key would be in an environment variable that is not set. Nothing is run or read for that.
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

// IsBuiltIn reports whether it is an agent that is known without configuration, with
// its own program.
func (a Agent) IsBuiltIn() bool {
	_, ok := a.known()
	return ok
}

// IsDemo reports whether it is the agent inside this program.
func (a Agent) IsDemo() bool { return a.Name == demoAgent }

// StartCommand is the agent's command with its program where it was found,
// whatever PATH says where it is started.
func (a Agent) StartCommand() []string {
	command := slices.Clone(a.Command)
	if a.Path != "" {
		command[0] = a.Path
	}
	return command
}

// ProgramOn finds the agent's program on a PATH. It returns "" if there is none, or if the
// command names a file and not a program.
func (a Agent) ProgramOn(path string) string {
	if len(a.Command) == 0 || strings.ContainsRune(a.Command[0], filepath.Separator) {
		return ""
	}
	return lookPath(a.Command[0], func(string) string { return path })
}

// VariablesFrom returns the names in env_from of the agents that the user trusts, sorted, each
// once.
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

// Variables are the agent's variables where a client launches it, but for those that hold keys.
// For the client and getenv see [clientenv.Environment.For].
func (a Agent) Variables(client clientenv.Environment, getenv func(string) string) map[string]string {
	env := client.For(a.EnvFrom, getenv)
	maps.Copy(env, a.Env)
	return env
}

// KeyVariable is the variable of the environment that has the key of a service
// for which nothing is configured.
func KeyVariable(service string) string { return strings.ToUpper(service) + "_API_KEY" }

// FetchKeys gets the agent's keys, by the variables that get them, without asking
// anybody. What could not be had is told in missing, in words.
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
