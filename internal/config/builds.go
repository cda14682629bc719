package config

import (
	"path/filepath"
	"strings"
	"time"
)

// This file is [[builds]] of a configuration: commands that build parts of the project.

// A Build is a command that builds a part of the project. Its directory is relative to the
// project's root.
type Build struct {
	Definition
	Backend bool // buildBackend builds it
}

// decodeBuild reads [[builds]] of a file, and records the problems there.
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

// This file reads the common part of [[builds]] and [[gates]] of a configuration: named commands
// that a user has written.

// A Definition is a command with a name.
type Definition struct {
	Name      string
	Command   []string // a program and its arguments; nil if Shell is set
	Shell     string   // a line for `sh -c`
	Directory string   // working directory, relative to a base that its use defines; "" is the base itself
	Timeout   time.Duration
	Env       map[string]string
	Source    string // user or project
}

// Named returns the name.
func (d Definition) Named() string { return d.Name }

// Text returns the command for display.
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

// decodeCommand reads a section of a file that lists commands, and records the problems there.
// The tables may have the caller's own keys, more; add receives each table with its command.
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
		t.Missing("name", "its name")
	}
	switch hasCommand, hasShell := t.Has("command"), t.Has("shell"); {
	case hasCommand && hasShell:
		t.Wrong("shell", "nothing, where there is a command", "")
	case !hasCommand && !hasShell:
		t.Missing("command", `the program and its arguments, such as ["go", "build", "./..."], or a line for the shell as shell = "…"`)
	}
	return d
}

// overCommands merges the commands of two files; of two with one name that of above counts.
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

// [[gates]] of a configuration: commands that check the work of agents, if a prompt names them.

// A Gate is a command that must succeed. Its directory is relative to the agent's working
// directory.
type Gate struct{ Definition }

// decodeGate reads [[gates]] of a file, and records the problems there.
func decodeGate(top Table, source string) (out []Gate) {
	decodeCommand(top, "gates", source, nil, func(_ Table, d Definition) { out = append(out, Gate{d}) })
	return out
}

// ShellGate returns the gate of a shell line that is not in a configuration.
func ShellGate(shell string) Gate {
	return Gate{Definition{Name: shell, Shell: shell, Timeout: DefaultTimeout}}
}

// The section [preview] of the configuration: the files of a preview of the project.

// A Preview selects the files to show. A nil field is not configured.
type Preview struct {
	// Directory holds the files: relative to the project's root, or absolute.
	Directory *string
	// Fallback reports whether the directory's index.html answers for addresses without a file,
	// for pages that make their own addresses. Absent: it does.
	Fallback *bool
}

// decodePreview reads [preview], and records the problems. home is the user's directory, "" if
// unknown.
func decodePreview(t Table, home string) Preview {
	t.Only([]string{"directory", "fallback"})
	p := Preview{Directory: t.Text("directory"), Fallback: t.Flag("fallback")}
	if p.Directory != nil {
		name := fileNames{Home: home}.Path(filepath.FromSlash(*p.Directory), false)
		p.Directory = &name
	}
	return p
}

// ReachesOut reports whether the directory's name is outside the project. A name inside it that
// is a symbolic link to another place is not: such links are not followed.
func (p Preview) ReachesOut() bool { return p.Directory != nil && !filepath.IsLocal(*p.Directory) }

// Over returns below overridden by p; unless outside is set, it omits a directory outside the
// project.
func (p Preview) Over(below Preview, outside bool) Preview {
	if p.Directory != nil && (outside || !p.ReachesOut()) {
		below.Directory = p.Directory
	}
	if p.Fallback != nil {
		below.Fallback = p.Fallback
	}
	return below
}

// A PreviewSetting is a configured value with its key.
type PreviewSetting struct {
	Key   string
	Value any
}

// Settings returns the configured values.
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

// NeedTrust returns the values that need the user's trust in the project.
func (p Preview) NeedTrust() []PreviewSetting {
	if p.ReachesOut() {
		return []PreviewSetting{{directoryKey, *p.Directory}}
	}
	return nil
}

const directoryKey = "preview.directory"
