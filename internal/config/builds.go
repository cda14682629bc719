package config

import (
	"path/filepath"
	"strings"
	"time"
)

// This file is [[builds]] of a configuration: what can be built, by which
// command.

// A Build is something that can be built. Its directory is relative to the project's root.
type Build struct {
	Definition
	Backend bool // it is what buildBackend builds
}

// decodeBuild reads [[builds]] of a file; what is wrong is noted there.
func decodeBuild(top Table, source string) (out []Build) {
	decodeCommand(top, "builds", source, []string{"backend"}, func(t Table, d Definition) {
		b := Build{Definition: d}
		if yes := t.Flag("backend"); yes != nil {
			b.Backend = *yes
		}
		out = append(out, b)
	})
	return out
}

// This file reads what [[builds]] and [[gates]] of a configuration have in
// common: commands that a user has written down, each with a name.

// A Definition is a command with a name.
type Definition struct {
	Name      string
	Command   []string // a program and its arguments; nil where Shell is set
	Shell     string   // a line for `sh -c`
	Directory string   // in which it runs; what that is relative to is said where it is used; "" is that itself
	Timeout   time.Duration
	Env       map[string]string
	Source    string // user or project
}

// Named is the name.
func (d Definition) Named() string { return d.Name }

// Text is the command as people are shown it.
func (d Definition) Text() []string {
	if d.Shell != "" {
		return []string{"sh", "-c", d.Shell}
	}
	return d.Command
}

// The limits of commands.
const (
	mostCommands        = 100 // of a section
	DefaultTimeout      = 30 * time.Minute
	leastCommandTimeout = time.Second
	mostCommandTimeout  = 24 * time.Hour
)

var keys = []string{"name", "command", "shell", "directory", "timeout", "env"}

// decodeCommand reads a section of a file that lists commands; what is wrong is noted there. Tables
// of it may have more keys, which are the caller's, who is given each table with its command.
func decodeCommand(top Table, section, source string, more []string, add func(Table, Definition)) {
	names := map[string]bool{}
	for _, t := range top.List(section, section, mostCommands) {
		t.Only(append(more, keys...))
		d := decode(t)
		d.Source = source
		if names[d.Name] && d.Name != "" {
			t.Wrong("name", "a name that no other "+strings.TrimSuffix(section, "s")+" of the file has", quoteShort(d.Name))
		}
		names[d.Name] = true
		add(t, d)
	}
}

func decode(t Table) Definition {
	d := Definition{Timeout: DefaultTimeout, Command: t.Command("command"), Env: t.TextMap("env", checkVariable, anything)}
	for key, to := range map[string]*string{"shell": &d.Shell, "directory": &d.Directory} {
		if s := t.Text(key); s != nil {
			*to = *s
		}
	}
	if s := t.Checked("name", checkName); s != nil {
		d.Name = *s
	}
	if limit := t.Duration("timeout", leastCommandTimeout, mostCommandTimeout); limit != nil {
		d.Timeout = *limit
	}
	d.Directory = filepath.FromSlash(d.Directory)
	if !t.Has("name") {
		t.Missing("name", "what it is called")
	}
	switch hasCommand, hasShell := t.Has("command"), t.Has("shell"); {
	case hasCommand && hasShell:
		t.Wrong("shell", "nothing, where there is a command", "")
	case !hasCommand && !hasShell:
		t.Missing("command", `the program and its arguments, such as ["go", "build", "./..."], or a line for the shell as shell = "…"`)
	}
	return d
}

// overCommands are commands with those of another file added; of two with one name that of above counts.
func overCommands[C interface{ Named() string }](below, above []C) []C {
	out := append([]C{}, above...)
	names := map[string]bool{}
	for _, c := range above {
		names[c.Named()] = true
	}
	for _, c := range below {
		if !names[c.Named()] {
			out = append(out, c)
		}
	}
	return out
}

// What follows is [[gates]] of a configuration: commands that work of agents is checked
// by, where a prompt names them.

// A Gate is a command that has to succeed. Its directory is relative to that in which the
// agent works.
type Gate struct{ Definition }

// decodeGate reads [[gates]] of a file; what is wrong is noted there.
func decodeGate(top Table, source string) (out []Gate) {
	decodeCommand(top, "gates", source, nil, func(_ Table, d Definition) { out = append(out, Gate{d}) })
	return out
}

// ShellGate is the gate of a line for the shell that no configuration has.
func ShellGate(shell string) Gate {
	return Gate{Definition{Name: shell, Shell: shell, Timeout: DefaultTimeout}}
}

// What follows is the section [preview] of the configuration: which files a
// preview of the project is made of.

// A Preview is which files are shown. What is nil is not configured.
type Preview struct {
	// Directory holds the files: relative to the project's root, or absolute.
	Directory *string
	// Fallback tells whether the directory's index.html answers for addresses that no
	// file has, as pages want it that make their addresses themselves. Absent: it does.
	Fallback *bool
}

// decodePreview reads [preview], and notes what is wrong. home is the user's directory, "" if
// that is not known.
func decodePreview(t Table, home string) Preview {
	t.Only([]string{"directory", "fallback"})
	p := Preview{Directory: t.Text("directory"), Fallback: t.Flag("fallback")}
	if p.Directory != nil {
		name := fileNames{Home: home}.Path(filepath.FromSlash(*p.Directory), false)
		p.Directory = &name
	}
	return p
}

// ReachesOut reports whether the directory is named as one outside of the project. One that
// is named as one within it and is a symbolic link to another place is not: such links are
// not followed.
func (p Preview) ReachesOut() bool { return p.Directory != nil && !filepath.IsLocal(*p.Directory) }

// Over is below with what p says in its place; unless outside is set, a directory outside of
// the project is left out.
func (p Preview) Over(below Preview, outside bool) Preview {
	if p.Directory != nil && (outside || !p.ReachesOut()) {
		below.Directory = p.Directory
	}
	if p.Fallback != nil {
		below.Fallback = p.Fallback
	}
	return below
}

// A PreviewSetting is a value that is configured, with its key.
type PreviewSetting struct {
	Key   string
	Value any
}

// Settings are the values that are configured.
func (p Preview) Settings() []PreviewSetting {
	var out []PreviewSetting
	if p.Directory != nil {
		out = append(out, PreviewSetting{directoryKey, *p.Directory})
	}
	if p.Fallback != nil {
		out = append(out, PreviewSetting{"preview.fallback", *p.Fallback})
	}
	return out
}

// NeedTrust are the values for which the user has to trust the project.
func (p Preview) NeedTrust() []PreviewSetting {
	if p.ReachesOut() {
		return []PreviewSetting{{directoryKey, *p.Directory}}
	}
	return nil
}

const directoryKey = "preview.directory"
