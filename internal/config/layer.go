package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// layer holds the values of one source.
type layer struct {
	*Document
	source  string
	foreign error // why the file is ignored; nil if it is not
	unread  bool  // the file could not be read

	settings []setting
	agents   map[string]Table // [agents.NAME]
}

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

// decodeLayer reads the content of a file.
func decodeLayer(path, name, source string, content []byte, getenv func(string) string) *layer {
	l := &layer{Document: ParseDocument(path, name, content, boundsOf(source).document), source: source, agents: map[string]Table{}}
	l.files = fileNames{Base: filepath.Dir(path), Home: getenv("HOME")}
	l.read(l.Table(), keys(), setting{}, nil, l.add)
	sortProblems(l.Problems)
	return l
}

func (l *layer) add(s setting) { l.settings = append(l.settings, s) }

// value returns a value of the layer; the zero value if it has none.
func value[T any](l *layer, key string) (v T) {
	for _, s := range l.settings {
		if s.key == key {
			return s.value.(T)
		}
	}
	return v
}

// requirePrograms records a problem for each agent without a command and a host in either file. An agent
// that is changed in one file may get its program from another.
func requirePrograms(below, above *layer) {
	has := map[string]bool{}
	for _, name := range builtInNames() {
		has[name] = true
	}
	for _, l := range []*layer{below, above} {
		for name, a := range l.agents {
			_, written := l.Value("agents", name, "command") // its problem is recorded already
			_, away := l.Value("agents", name, "host")       // its program is there
			if has[name] = has[name] || written || away; !has[name] {
				l.Wrong(a.At(), "command is missing in [agents.%s]: the program and its arguments%s", name, didYouMean(name, builtInNames()))
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

// environmentLayer returns the values of environment variables.
func environmentLayer(getenv func(string) string) *layer {
	l := &layer{Document: &Document{Root: map[string]any{}}, source: SourceEnvironment}
	l.files.Home = getenv("HOME")
	l.readVariables(keys(), "", getenv)
	for i, p := range l.Problems { // the name of the variable takes the place of a file's
		l.Problems[i].Name, l.Problems[i].Message, _ = strings.Cut(p.Message, ": ")
	}
	return l
}

// readVariables reads the environment variables of keys. An empty variable sets nothing.
func (l *layer) readVariables(of *schema, prefix string, getenv func(string) string) {
	for i := range of.rows {
		r := &of.rows[i]
		if r.kind.form == section {
			l.readVariables(r.kind.schema, prefix+r.key+".", getenv)
		}
		if r.env == "" || getenv(r.env) == "" {
			continue
		}
		l.Root[r.env] = getenv(r.env)
		if r.kind.parse != nil {
			l.Root[r.env] = r.kind.parse(getenv(r.env))
		}
		if v := r.kind.read(l.Table(), r.env); v != nil {
			l.add(setting{row: r, key: prefix + r.key, value: v})
		}
	}
}

// bounds limit a configuration file: one that came with a project is not trustworthy.
type bounds struct {
	bytes    int    // of the file
	document Bounds // checked before parsing
}

// boundsOf returns the bounds of a source. The user's own file may be larger; an honest project
// file has a few hundred lines.
func boundsOf(source string) bounds {
	if source == SourceProject {
		return bounds{bytes: 256 << 10, document: Bounds{Keys: 5_000, Values: 5_000, Parts: 16, Nesting: 16}}
	}
	return bounds{bytes: 1 << 20, document: Bounds{Keys: 50_000, Values: 50_000, Parts: 16, Nesting: 16}}
}
