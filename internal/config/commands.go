package config

import (
	"path/filepath"
	"strings"
	"time"
)

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
func decodeCommand(top table, section, source string, more []string, add func(table, Definition)) {
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

func decode(t table) Definition {
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
