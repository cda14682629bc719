package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// layer holds the values of one source. A missing value is nil.
type layer struct {
	*Document
	source  string
	foreign error // why the file is ignored; nil if it is not
	unread  bool  // the file could not be read

	defaultAgent      *string
	whenAlone         *string // from the user's file only
	maxRuns, queueCap *int
	idleAgents        *int
	runTimeout        *time.Duration
	savedFiles        *bool
	safe              []string       // directories, from the user's file only
	probeServers      *bool          // from the user's file only
	editorTools       *bool          // from the user's file only
	checkpoints       *bool          // from the user's file only
	daemonIdle        *time.Duration // from the user's file only
	agents            map[string]agentTable
	services          map[string]Key
	rules             []Rule
	triggers          []Trigger
	automation        *Automation // from the user's file only
	budget            Budget
	builds            []Build
	gates             []Gate
	preview           Preview
	worktrees         Worktrees
}

// agentTable is [agents.NAME] of one file.
type agentTable struct {
	at                             documentPlace
	driver, prompt, history, title *string
	files                          *string
	startTimeout                   *time.Duration
	silentAfter, silentToolAfter   *time.Duration
	quiet                          *time.Duration
	protocol                       *int
	command                        []string
	env, keys                      map[string]string
	envFrom                        []string
	mcpServers                     []catalog.MCPServer
}

// The valid keys of each table.
var (
	topKeys        = []string{"default_agent", "daemon", "limits", "agents", "keys", "rules", "safe_directories", "acp", "mcp", "checkpoints", "budget", "builds", "gates", "preview", "triggers", "automation", "worktree", "worktrees"}
	daemonKeys     = []string{"idle", "when_alone"}
	mcpKeys        = []string{"probe", "editor"}
	checkpointKeys = []string{"enabled"}
	limitKeys      = []string{"max_runs", "queue_cap", "run_timeout", "idle_agents"}
	acpKeys        = []string{"saved_files"}
	agentKeys      = []string{"title", "driver", "command", "prompt", "history", "files", "start_timeout", "silent_after", "silent_tool_after", "quiet", "protocol", "env", "env_from", "keys", "mcp_servers"}
	serverKeys     = []string{"name", "type", "command", "args", "env", "url", "headers"}
	keyKeys        = []string{"env", "command", "file"}
	ruleKeys       = []string{"effect", "tool", "path", "command", "agent"}
)

// readLayer reads a file. An empty path and a missing file give an empty layer.
//
// check returns an error for a file to ignore.
func readLayer(path, source string, getenv func(string) string, check func(path string, info fs.FileInfo) error) *layer {
	name := shorten(path, getenv)
	if source == SourceProject {
		name = filepath.Base(path)
	}
	if path == "" {
		return &layer{Document: &Document{}, source: source}
	}
	content, err := readBounded(path, boundsOf(source).bytes, check)
	if errors.As(err, new(*project.ForeignError)) && source == SourceProject { // the file is ignored
		return &layer{Document: &Document{Path: path, Name: name}, source: source, foreign: err}
	}
	if err != nil {
		d := &Document{Path: path, Name: name}
		d.Wrong(documentPlace{}, "it cannot be read: %v", err)
		return &layer{Document: d, source: source, unread: true}
	}
	return decodeLayer(path, name, source, content, getenv)
}

func decodeLayer(path, name, source string, content []byte, getenv func(string) string) *layer {
	most := boundsOf(source)
	l := &layer{Document: ParseDocument(path, name, content, most.document), source: source}
	top := l.Table()
	top.Only(topKeys)
	l.defaultAgent = top.Checked("default_agent", checkName)
	if t, ok := top.Sub("limits"); ok {
		l.decodeLimits(t)
	}
	if t, ok := top.Sub("acp"); ok {
		t.Only(acpKeys)
		l.savedFiles = t.Flag("saved_files")
	}
	files := fileNames{Base: filepath.Dir(path), Home: getenv("HOME")}
	if top.Has("safe_directories") && source == SourceProject {
		l.Wrong(l.KeyAt([]string{"safe_directories"}), "safe_directories decides which users' files Duet accepts, so it belongs only in your own configuration")
	} else {
		for _, dir := range top.Texts("safe_directories", checkSafe) {
			l.safe = append(l.safe, files.Path(dir, dir != "*"))
		}
	}
	if t, ok := l.userTable(top, "mcp", "which servers agents get and whether these are tried"); ok {
		t.Only(mcpKeys)
		l.probeServers = t.Flag("probe")
		l.editorTools = t.Flag("editor")
	}
	if t, ok := l.userTable(top, "checkpoints", "what is stored on your disk"); ok {
		t.Only(checkpointKeys)
		l.checkpoints = t.Flag("enabled")
	}
	if t, ok := l.userTable(top, "daemon", "when daemons end"); ok {
		t.Only(daemonKeys)
		l.daemonIdle = t.Duration("idle", 0, mostTimeout)
		l.whenAlone = t.Checked("when_alone", oneOf(AloneContinue, AloneInterrupt))
	}
	if t, ok := top.Sub("budget"); ok {
		l.budget = DecodeBudget(t)
	}
	l.agents = map[string]agentTable{}
	for name, t := range top.Tables("agents", most.agents) {
		if name == demoAgent {
			t.WrongHere("%s is the built-in demonstration agent and cannot be changed: choose another name", demoAgent)
			continue
		}
		l.agents[name] = decodeAgent(t, files)
	}
	l.services = map[string]Key{}
	for service, t := range top.Tables("keys", most.agents) {
		l.services[service] = decodeKey(t, files)
	}
	for _, t := range top.List("rules", "rules", most.rules) {
		l.rules = append(l.rules, decodeRule(t, source))
	}
	l.decodeTriggers(top)
	l.builds = decodeBuild(top, source)
	l.gates = decodeGate(top, source)
	if t, ok := top.Sub("preview"); ok {
		l.preview = decodePreview(t, getenv("HOME"))
	}
	l.worktrees = decodeWorktrees(top)
	sortProblems(l.Problems)
	return l
}

// userTable returns a table that only the user's own configuration may have. decides says why.
func (l *layer) userTable(top Table, name, decides string) (Table, bool) {
	if l.source == SourceProject && top.Has(name) {
		l.Wrong(l.KeyAt([]string{name}), "[%s] decides %s, so it belongs only in your own configuration", name, decides)
		return Table{}, false
	}
	return top.Sub(name)
}

func (l *layer) decodeLimits(t Table) {
	t.Only(limitKeys)
	l.maxRuns = t.Whole("max_runs", leastRuns, mostRuns)
	l.queueCap = t.Whole("queue_cap", leastQueue, mostQueue)
	l.runTimeout = t.Duration("run_timeout", leastTimeout, mostTimeout)
	l.idleAgents = t.Whole("idle_agents", leastIdle, mostIdle)
}

func decodeAgent(t Table, files fileNames) agentTable {
	t.Only(agentKeys)
	a := agentTable{
		at:              t.At(),
		title:           t.Text("title"),
		driver:          t.Checked("driver", oneOf(DriverACP, DriverCommand, DriverExecutor)),
		prompt:          t.Checked("prompt", oneOf("arg", "stdin")),
		history:         t.Checked("history", oneOf("transcript", "none")),
		files:           t.Checked("files", oneOf(catalog.FilesReadWrite, catalog.FilesWrite, catalog.FilesNone)),
		startTimeout:    t.Duration("start_timeout", leastTimeout, mostStartTimeout),
		silentAfter:     t.Duration("silent_after", leastSilence, mostSilence),
		silentToolAfter: t.Duration("silent_tool_after", leastSilence, mostSilence),
		quiet:           t.Duration("quiet", leastSilence, mostSilence),
		protocol:        t.Whole("protocol", 1, 2),
		command:         files.Program(t.Command("command")),
		env:             t.TextMap("env", checkVariable, anything),
		envFrom:         t.Texts("env_from", checkVariables),
		keys:            t.TextMap("keys", checkVariable, checkName),
	}
	known := map[string]bool{}
	for _, server := range t.List("mcp_servers", strings.Join(t.Path(), ".")+".mcp_servers", mostServers) {
		s := decodeServer(server, files)
		if known[s.Name] {
			server.Wrong("name", "a name that no other server of the agent has", quoteShort(s.Name))
		}
		if s.Name == catalog.EditorServer {
			server.Wrong("name", "another name", quoteShort(s.Name)+", the server that gives agents your editor's tools")
		}
		known[s.Name] = s.Name != ""
		a.mcpServers = append(a.mcpServers, s)
	}
	return a
}

func decodeServer(t Table, files fileNames) catalog.MCPServer {
	t.Only(serverKeys)
	s := catalog.MCPServer{
		Name:    deref(t.Checked("name", checkName)),
		Type:    deref(t.Checked("type", oneOf("stdio", "http", "sse"))),
		Command: files.Path(deref(t.Text("command")), false),
		Args:    t.Texts("args", anything),
		Env:     t.TextMap("env", checkVariable, anything),
		URL:     deref(t.Text("url")),
		Headers: t.TextMap("headers", anything, anything),
	}
	hasCommand, hasURL := t.Has("command"), t.Has("url")
	if !t.Has("name") {
		t.Missing("name", "the server's name for the agent")
	}
	switch remote := s.Type == "http" || s.Type == "sse" || s.Type == "" && hasURL; {
	case remote && hasCommand:
		t.Wrong("command", "nothing, for a server that has a url", "")
	case remote && !hasURL:
		t.Missing("url", "where the server is")
	case !remote && hasURL:
		t.Wrong("url", `nothing, for a server of type "stdio"`, "")
	case !remote && !hasCommand:
		t.Missing("command", "the program of the server")
	case remote && s.Type == "":
		s.Type = "http"
	}
	return s
}

func decodeKey(t Table, files fileNames) Key {
	t.Only(keyKeys)
	k := Key{
		Env:     deref(t.Discreet("env", checkVariable)),
		Command: files.Program(t.Command("command")),
		File:    files.Path(deref(t.Text("file")), true),
	}
	sources := 0
	for _, key := range keyKeys {
		if t.Has(key) {
			sources++
		}
	}
	if sources != 1 {
		t.WrongHere("[%s]: expected one of env, command and file, found %d", strings.Join(t.Path(), "."), sources)
	}
	return k
}

func decodeRule(t Table, source string) Rule {
	t.Only(ruleKeys)
	r := Rule{
		Effect:  deref(t.Checked("effect", oneOf(EffectAllow, EffectDeny))),
		Tool:    deref(t.Checked("tool", checkGlob)),
		Path:    deref(t.Checked("path", checkGlob)),
		Command: deref(t.Checked("command", checkGlob)),
		Agent:   deref(t.Checked("agent", checkName)),
		Source:  source,
		File:    t.File(),
		Line:    t.At().Line,
	}
	for key, what := range map[string]string{"effect": `"allow" or "deny"`, "tool": `a pattern for the tool's name, such as "Bash" or "*"`} {
		if !t.Has(key) {
			t.Missing(key, what)
		}
	}
	return r
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// requirePrograms records a problem for each agent without a command in either file. An agent
// that is changed in one file may get its program from another.
func requirePrograms(below, above *layer) {
	has := map[string]bool{}
	for _, name := range builtInNames() {
		has[name] = true
	}
	for _, l := range []*layer{below, above} {
		for name, a := range l.agents {
			_, written := l.Value("agents", name, "command") // its problem is recorded already
			if has[name] = has[name] || written; !has[name] {
				l.Wrong(a.at, "command is missing in [agents.%s]: the program and its arguments%s", name, didYouMean(name, builtInNames()))
			}
		}
		sortProblems(l.Problems)
	}
}

// shorten writes the user's home directory as ~.
func shorten(path string, getenv func(string) string) string {
	if rest, ok := strings.CutPrefix(path, getenv("HOME")+string(filepath.Separator)); ok && getenv("HOME") != "" {
		return filepath.Join("~", rest)
	}
	return path
}

// textNames are the names of values that come as texts: variables or flags.
type textNames struct{ agent, maxRuns, queueCap, runTimeout, idleAgents, daemonIdle string }

// environmentLayer returns the values of environment variables.
func environmentLayer(getenv func(string) string) *layer {
	names := textNames{"DUET_AGENT", "DUET_MAX_RUNS", "DUET_QUEUE_CAP", "DUET_RUN_TIMEOUT", "DUET_IDLE_AGENTS", "DUET_DAEMON_IDLE"}
	l := textLayer(SourceEnvironment, names, Overrides{
		Agent: getenv(names.agent), MaxRuns: getenv(names.maxRuns),
		QueueCap: getenv(names.queueCap), RunTimeout: getenv(names.runTimeout), IdleAgents: getenv(names.idleAgents), DaemonIdle: getenv(names.daemonIdle),
	})
	if getenv("DUET_ACP_SAVED_FILES") != "" {
		l.savedFiles = new(true)
	}
	return l
}

// flagLayer returns the values of flags.
func flagLayer(o Overrides) *layer {
	return textLayer(SourceFlag, textNames{"--agent", "--max-runs", "--queue-cap", "--run-timeout", "--idle-agents", "--daemon-idle"}, o)
}

// textLayer returns the values of texts. An empty text sets nothing.
func textLayer(source string, names textNames, texts Overrides) *layer {
	l := &layer{Document: &Document{Root: map[string]any{}}, source: source}
	t := l.Table()
	for name, text := range map[string]string{names.agent: texts.Agent, names.runTimeout: texts.RunTimeout, names.daemonIdle: texts.DaemonIdle} {
		if text != "" {
			t.Values[name] = text
		}
	}
	whole := func(name, text string, least, most int) *int {
		if text == "" {
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Wrong(name, wholeRange(least, most), quoteShort(text))
			return nil
		}
		t.Values[name] = n
		return t.Whole(name, least, most)
	}
	l.defaultAgent = t.Checked(names.agent, checkName)
	l.maxRuns = whole(names.maxRuns, texts.MaxRuns, leastRuns, mostRuns)
	l.queueCap = whole(names.queueCap, texts.QueueCap, leastQueue, mostQueue)
	l.idleAgents = whole(names.idleAgents, texts.IdleAgents, leastIdle, mostIdle)
	l.runTimeout = t.Duration(names.runTimeout, leastTimeout, mostTimeout)
	l.daemonIdle = t.Duration(names.daemonIdle, 0, mostTimeout)
	for i, p := range l.Problems { // the name of the variable or flag takes the place of a file's
		l.Problems[i].Name, l.Problems[i].Message, _ = strings.Cut(p.Message, ": ")
	}
	return l
}

// bounds limit a configuration file: one that came with a project is not trustworthy.
type bounds struct {
	bytes    int    // of the file
	document Bounds // checked before parsing
	agents   int
	rules    int
}

// boundsOf returns the bounds of a source. The user's own file may be larger; an honest project
// file has a few hundred lines.
func boundsOf(source string) bounds {
	if source == SourceProject {
		return bounds{bytes: 256 << 10, document: Bounds{Keys: 5_000, Values: 5_000, Parts: 16, Nesting: 16}, agents: 100, rules: 1_000}
	}
	return bounds{bytes: 1 << 20, document: Bounds{Keys: 50_000, Values: 50_000, Parts: 16, Nesting: 16}, agents: 1_000, rules: 10_000}
}

// mostServers is the maximum number of MCP servers of an agent.
const mostServers = 100
