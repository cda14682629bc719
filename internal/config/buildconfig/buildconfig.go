// Package buildconfig is [[builds]] of a configuration: what can be built, by which
// command.
package buildconfig

import (
	"path/filepath"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config/document"
)

// A Build is something that can be built.
type Build struct {
	Name      string
	Command   []string // a program and its arguments; nil where Shell is set
	Shell     string   // a line for `sh -c`
	Directory string   // in which it runs, relative to the project's root, or absolute; "" is the root
	Backend   bool     // it is what buildBackend builds
	Timeout   time.Duration
	Env       map[string]string
	Source    string // user or project
}

// Text is the command as people are shown it.
func (b Build) Text() []string {
	if b.Shell != "" {
		return []string{"sh", "-c", b.Shell}
	}
	return b.Command
}

// The limits of [[builds]].
const (
	Most           = 100
	DefaultTimeout = 30 * time.Minute
	leastTimeout   = time.Second
	mostTimeout    = 24 * time.Hour
)

var keys = []string{"name", "command", "shell", "directory", "backend", "timeout", "env"}

// Decode reads [[builds]] of a file; what is wrong is noted there.
func Decode(top document.Table, source string) []Build {
	var out []Build
	names := map[string]bool{}
	for _, t := range top.List("builds", "builds", Most) {
		b := decode(t)
		b.Source = source
		if names[b.Name] && b.Name != "" {
			t.Wrong("name", "a name that no other build of the file has", document.QuoteShort(b.Name))
		}
		names[b.Name] = true
		out = append(out, b)
	}
	return out
}

func decode(t document.Table) Build {
	t.Only(keys)
	b := Build{Timeout: DefaultTimeout, Command: t.Command("command"), Env: t.TextMap("env", document.CheckVariable, document.Anything)}
	for key, to := range map[string]*string{"shell": &b.Shell, "directory": &b.Directory} {
		if s := t.Text(key); s != nil {
			*to = *s
		}
	}
	if s := t.Checked("name", document.CheckName); s != nil {
		b.Name = *s
	}
	if d := t.Duration("timeout", leastTimeout, mostTimeout); d != nil {
		b.Timeout = *d
	}
	if yes := t.Flag("backend"); yes != nil {
		b.Backend = *yes
	}
	b.Directory = filepath.FromSlash(b.Directory)
	if !t.Has("name") {
		t.Missing("name", "what it is called")
	}
	switch hasCommand, hasShell := t.Has("command"), t.Has("shell"); {
	case hasCommand && hasShell:
		t.Wrong("shell", "nothing, where there is a command", "")
	case !hasCommand && !hasShell:
		t.Missing("command", `the program and its arguments, such as ["go", "build", "./..."], or a line for the shell as shell = "…"`)
	}
	return b
}

// Over are builds with those of another file added; of two with one name that of above counts.
func Over(below, above []Build) []Build {
	out := append([]Build{}, above...)
	names := map[string]bool{}
	for _, b := range above {
		names[b.Name] = true
	}
	for _, b := range below {
		if !names[b.Name] {
			out = append(out, b)
		}
	}
	return out
}
