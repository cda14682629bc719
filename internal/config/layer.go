package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config/bounded"
	"github.com/duet-rpc/duet-rpc/internal/config/triggerconfig"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// layer is what one source says. What it does not say is nil.
type layer struct {
	*document
	source  string
	foreign error // why the file counts for nothing; nil where it does not

	defaultAgent, hub *string
	maxRuns, queueCap *int
	idleAgents        *int
	runTimeout        *time.Duration
	savedFiles        *bool
	safe              []string // directories, of the user's file alone
	probeServers      *bool    // of the user's file alone
	agents            map[string]agentTable
	services          map[string]Key
	rules             []Rule
	triggers          []triggerconfig.Trigger
	automation        *triggerconfig.Automation // of the user's file alone
}

// agentTable is what [agents.NAME] of one file says.
type agentTable struct {
	at                             place
	driver, prompt, history, title *string
	files                          *string
	startTimeout                   *time.Duration
	command                        []string
	env, keys                      map[string]string
	envFrom                        []string
	mcpServers                     []catalog.MCPServer
}

// The keys that each table may have.
var (
	topKeys    = []string{"default_agent", "hub", "limits", "agents", "keys", "rules", "safe_directories", "acp", "mcp", "triggers", "automation"}
	mcpKeys    = []string{"probe"}
	limitKeys  = []string{"max_runs", "queue_cap", "run_timeout", "idle_agents"}
	acpKeys    = []string{"saved_files"}
	agentKeys  = []string{"title", "driver", "command", "prompt", "history", "files", "start_timeout", "env", "env_from", "keys", "mcp_servers"}
	serverKeys = []string{"name", "type", "command", "args", "env", "url", "headers"}
	keyKeys    = []string{"env", "command", "file"}
	ruleKeys   = []string{"effect", "tool", "path", "command", "agent"}
)

// readLayer reads a file. An empty path and a file that does not exist say
// nothing.
//
// check gives an error for a file that counts for nothing.
func readLayer(path, source string, getenv func(string) string, check func(path string, info fs.FileInfo) error) *layer {
	name := shorten(path, getenv)
	if source == SourceProject {
		name = filepath.Base(path)
	}
	if path == "" {
		return &layer{document: &document{}, source: source}
	}
	content, err := bounded.Read(path, boundsOf(source).bytes, check)
	if errors.As(err, new(*project.ForeignError)) && source == SourceProject { // it counts for nothing
		return &layer{document: &document{path: path, name: name}, source: source, foreign: err}
	}
	if err != nil {
		d := &document{path: path, name: name}
		d.wrong(place{}, "it cannot be read: %v", err)
		return &layer{document: d, source: source}
	}
	return decodeLayer(path, name, source, content, getenv)
}

func decodeLayer(path, name, source string, content []byte, getenv func(string) string) *layer {
	most := boundsOf(source)
	l := &layer{document: parse(path, name, content, most), source: source}
	top := l.table()
	top.only(topKeys)
	l.defaultAgent = top.checked("default_agent", checkName)
	l.hub = top.checked("hub", checkHub)
	if v, ok := top.values["limits"]; ok {
		if values, ok := v.(map[string]any); ok {
			l.decodeLimits(top.sub("limits", values, " in [limits]"))
		} else {
			top.wrong("limits", "a table, [limits]", kind(v))
		}
	}
	if v, ok := top.values["acp"]; ok {
		if values, ok := v.(map[string]any); ok {
			t := top.sub("acp", values, " in [acp]")
			t.only(acpKeys)
			l.savedFiles = t.flag("saved_files")
		} else {
			top.wrong("acp", "a table, [acp]", kind(v))
		}
	}
	files := fileNames{base: filepath.Dir(path), home: getenv("HOME")}
	if _, set := top.values["safe_directories"]; set && source == SourceProject {
		l.wrong(l.keyAt([]string{"safe_directories"}), "safe_directories says whose files count, so it stands in your own configuration alone")
	} else {
		for _, dir := range top.texts("safe_directories", checkSafe) {
			l.safe = append(l.safe, files.path(dir, dir != "*"))
		}
	}
	if v, ok := top.values["mcp"]; ok {
		l.decodeMCP(top, v)
	}
	l.agents = map[string]agentTable{}
	for name, t := range top.tables("agents", most.agents) {
		if name == demoAgent {
			l.wrong(l.keyAt(t.path), "%s is the built-in demonstration agent and cannot be changed: choose another name", demoAgent)
			continue
		}
		l.agents[name] = decodeAgent(t, files)
	}
	l.services = map[string]Key{}
	for service, t := range top.tables("keys", most.agents) {
		l.services[service] = decodeKey(t, files)
	}
	for _, t := range top.list("rules", "rules", most.rules) {
		l.rules = append(l.rules, decodeRule(t, source))
	}
	l.decodeTriggers(top)
	sortProblems(l.problems)
	return l
}

func (l *layer) decodeMCP(top table, v any) {
	values, ok := v.(map[string]any)
	switch {
	case l.source == SourceProject:
		l.wrong(l.keyAt([]string{"mcp"}), "[mcp] says whether servers are tried, so it stands in your own configuration alone")
	case !ok:
		top.wrong("mcp", "a table, [mcp]", kind(v))
	default:
		t := top.sub("mcp", values, " in [mcp]")
		t.only(mcpKeys)
		l.probeServers = t.flag("probe")
	}
}

func (l *layer) decodeLimits(t table) {
	t.only(limitKeys)
	l.maxRuns = t.whole("max_runs", leastRuns, mostRuns)
	l.queueCap = t.whole("queue_cap", leastQueue, mostQueue)
	l.runTimeout = t.duration("run_timeout", leastTimeout, mostTimeout)
	l.idleAgents = t.whole("idle_agents", leastIdle, mostIdle)
}

func decodeAgent(t table, files fileNames) agentTable {
	t.only(agentKeys)
	a := agentTable{
		at:           t.doc.keyAt(t.path),
		title:        t.text("title"),
		driver:       t.checked("driver", oneOf(DriverACP, DriverCommand, DriverExecutor)),
		prompt:       t.checked("prompt", oneOf("arg", "stdin")),
		history:      t.checked("history", oneOf("transcript", "none")),
		files:        t.checked("files", oneOf(catalog.FilesReadWrite, catalog.FilesWrite, catalog.FilesNone)),
		startTimeout: t.duration("start_timeout", leastTimeout, mostStartTimeout),
		command:      files.program(t.command("command")),
		env:          t.textMap("env", checkVariable, anything),
		envFrom:      t.texts("env_from", checkVariable),
		keys:         t.textMap("keys", checkVariable, checkName),
	}
	known := map[string]bool{}
	for _, server := range t.list("mcp_servers", strings.Join(t.path, ".")+".mcp_servers", mostServers) {
		s := decodeServer(server, files)
		if known[s.Name] {
			server.wrong("name", "a name that no other server of the agent has", quoteShort(s.Name))
		}
		known[s.Name] = s.Name != ""
		a.mcpServers = append(a.mcpServers, s)
	}
	return a
}

func decodeServer(t table, files fileNames) catalog.MCPServer {
	t.only(serverKeys)
	s := catalog.MCPServer{
		Name:    deref(t.checked("name", checkName)),
		Type:    deref(t.checked("type", oneOf("stdio", "http", "sse"))),
		Command: files.path(deref(t.text("command")), false),
		Args:    t.texts("args", anything),
		Env:     t.textMap("env", checkVariable, anything),
		URL:     deref(t.text("url")),
		Headers: t.textMap("headers", anything, anything),
	}
	_, hasName := t.values["name"]
	_, hasCommand := t.values["command"]
	_, hasURL := t.values["url"]
	if !hasName {
		t.missing("name", "what the agent calls the server")
	}
	switch remote := s.Type == "http" || s.Type == "sse" || s.Type == "" && hasURL; {
	case remote && hasCommand:
		t.wrong("command", "nothing, for a server that has a url", "")
	case remote && !hasURL:
		t.missing("url", "where the server is")
	case !remote && hasURL:
		t.wrong("url", `nothing, for a server of type "stdio"`, "")
	case !remote && !hasCommand:
		t.missing("command", "the program of the server")
	case remote && s.Type == "":
		s.Type = "http"
	}
	return s
}

func decodeKey(t table, files fileNames) Key {
	t.only(keyKeys)
	k := Key{
		Env:     deref(t.discreet("env", checkVariable)),
		Command: files.program(t.command("command")),
		File:    files.path(deref(t.text("file")), true),
	}
	sources := 0
	for _, key := range keyKeys {
		if _, ok := t.values[key]; ok {
			sources++
		}
	}
	if sources != 1 {
		t.doc.wrong(t.doc.keyAt(t.path), "[%s]: expected one of env, command and file, found %d", strings.Join(t.path, "."), sources)
	}
	return k
}

func decodeRule(t table, source string) Rule {
	t.only(ruleKeys)
	r := Rule{
		Effect:  deref(t.checked("effect", oneOf(EffectAllow, EffectDeny))),
		Tool:    deref(t.checked("tool", checkGlob)),
		Path:    deref(t.checked("path", checkGlob)),
		Command: deref(t.checked("command", checkGlob)),
		Agent:   deref(t.checked("agent", checkName)),
		Source:  source,
		File:    t.doc.name,
		Line:    t.doc.keyAt(t.path).line,
	}
	for key, what := range map[string]string{"effect": `"allow" or "deny"`, "tool": `a pattern for the tool's name, such as "Bash" or "*"`} {
		if _, ok := t.values[key]; !ok {
			t.missing(key, what)
		}
	}
	return r
}

// command is the words of a program: at least one, the first not empty.
func (t table) command(key string) []string {
	words := t.texts(key, anything)
	if words != nil && (len(words) == 0 || words[0] == "") {
		t.wrong(key, `a program and its arguments, such as ["program", "argument"]`, "no program")
	}
	return words
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// fileNames makes the names of files in a configuration absolute.
type fileNames struct{ base, home string }

// program makes the first word absolute where it is more than a name.
func (f fileNames) program(words []string) []string {
	if len(words) > 0 {
		words[0] = f.path(words[0], false)
	}
	return words
}

// path makes a name absolute: ~/ is the home directory, what is relative is so
// to the directory of the configuration. A bare name stays, to be looked for on
// PATH, unless it can only be a file's.
func (f fileNames) path(name string, isFile bool) string {
	switch rest, inHome := strings.CutPrefix(name, "~/"); {
	case name == "":
		return ""
	case inHome && f.home != "":
		return filepath.Join(f.home, rest)
	case filepath.IsAbs(name) || !isFile && !strings.ContainsAny(name, `/`+string(filepath.Separator)):
		return name
	}
	return filepath.Join(f.base, name)
}

// requirePrograms notes the agents that neither a file nor the one below it
// gives a command to. An agent that is changed in one file may get its program
// from another.
func requirePrograms(below, above *layer) {
	has := map[string]bool{}
	for _, name := range builtInNames() {
		has[name] = true
	}
	for _, l := range []*layer{below, above} {
		for name, a := range l.agents {
			_, written := l.tableValue("agents", name, "command") // what is wrong with it has been told
			if has[name] = has[name] || written; !has[name] {
				l.wrong(a.at, "command is missing in [agents.%s]: the program and its arguments%s", name, didYouMean(name, builtInNames()))
			}
		}
		sortProblems(l.problems)
	}
}

// tableValue looks a value up as it was written.
func (d *document) tableValue(path ...string) (any, bool) {
	var v any = d.root
	for _, key := range path {
		t, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = t[key]; !ok {
			return nil, false
		}
	}
	return v, true
}
