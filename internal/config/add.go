package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/duet-rpc/duet-rpc/internal/durable"
)

// An Edit is a change of the user's own file that has not been written yet.
type Edit struct {
	File string // the user's file
	Text string // added to it; empty: something is removed

	place    string // the file, with links followed
	old, new []byte
}

// NewAgent describes an agent for an [Edit]. The agent speaks the Agent Client Protocol.
type NewAgent struct {
	Name    string            `toml:"-"`
	Title   string            `toml:"title,omitempty"`
	Command []string          `toml:"command"`
	Env     map[string]string `toml:"env,inline,omitempty"`
}

// Add returns the edit that adds an agent to the user's file and preserves the text, with its
// comments. It writes nothing yet. Add fails if the file has a mistake, or already has the
// agent.
func Add(agent NewAgent, getenv func(string) string) (*Edit, error) {
	if err := checkName(agent.Name); err != nil {
		return nil, fmt.Errorf("%s is no name of an agent: it is %w", quoteShort(agent.Name), err)
	}
	if agent.Name == demoAgent {
		return nil, fmt.Errorf("%s is the built-in demonstration agent: choose another name", demoAgent)
	}
	was, e, err := edit(getenv)
	if err != nil {
		return nil, err
	}
	if _, there := was.agents[agent.Name]; there {
		return nil, fmt.Errorf("%s has [agents.%s] already: take that out first, or choose another name with --as", was.Name, agent.Name)
	}
	text, err := agent.table()
	if err != nil {
		return nil, err
	}
	e.append(text)
	return e, e.check(was, getenv, agent.Name, agent.Command)
}

// append adds a table below the text of the file.
func (e *Edit) append(table string) {
	separator := ""
	if len(e.old) > 0 {
		separator = strings.Repeat("\n", 2-min(1, len(e.old)-len(bytes.TrimSuffix(e.old, []byte("\n")))))
	}
	e.Text, e.new = table, slices.Concat(e.old, []byte(separator+table))
}

// tableName returns a name as TOML has it in the header of a table.
func tableName(name string) string {
	if strings.Contains(name, ".") {
		return strconv.Quote(name) // which has no characters that TOML quotes differently
	}
	return name
}

// Replace is Add for an agent that the file contains as text, and replaces that text. Text that
// the user has added below it stays.
func Replace(text string, agent NewAgent, getenv func(string) string) (*Edit, error) {
	was, e, err := edit(getenv)
	if err != nil {
		return nil, err
	}
	at, err := e.find(text, agent.Name)
	if err != nil {
		return nil, err
	}
	if e.Text, err = agent.table(); err != nil {
		return nil, err
	}
	e.new = slices.Concat(e.old[:at], []byte(e.Text), e.old[at+len(text):])
	return e, e.check(was, getenv, agent.Name, agent.Command)
}

// Remove returns the edit that removes an agent that the file contains as text. It is nil if the
// file no longer names the agent.
func Remove(name, text string, getenv func(string) string) (*Edit, error) {
	was, e, err := edit(getenv)
	if err != nil {
		return nil, err
	}
	if _, there := was.agents[name]; !there {
		return nil, nil
	}
	if value[string](was, "default_agent") == name {
		return nil, fmt.Errorf("default_agent in %s names %s: change that first", e.File, name)
	}
	at, err := e.find(text, name)
	if err != nil {
		return nil, err
	}
	before, after := e.old[:at], e.old[at+len(text):]
	if next := bytes.TrimSpace(after); len(next) > 0 && next[0] != '[' { // the rest would become part of another table
		return nil, fmt.Errorf("%s has more below [agents.%s] than was added: take the agent out there yourself, and try again", e.File, name)
	}
	e.new = slices.Concat(before, bytes.TrimLeft(after, "\n"))
	if len(bytes.TrimSpace(after)) == 0 {
		e.new = bytes.TrimSuffix(before, []byte("\n")) // the empty line added before
	}
	return e, e.check(was, getenv, name, nil)
}

// edit returns an empty change of the user's file, and the parsed file.
func edit(getenv func(string) string) (*layer, *Edit, error) {
	file, err := UserFile(getenv)
	if err != nil {
		return nil, nil, err
	}
	was := readUser(file, getenv)
	if len(was.Problems) > 0 {
		return nil, nil, fmt.Errorf("your configuration has a mistake, which is to be corrected first: %w",
			(&Error{Problems: was.Problems}).cut())
	}
	e := &Edit{File: file, place: file, old: was.Content}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		e.place = target
	}
	return was, e, nil
}

// find returns the position of an agent's text.
func (e *Edit) find(text, name string) (int, error) {
	at := bytes.Index(e.old, []byte(text))
	if text == "" || at < 0 || at > 0 && e.old[at-1] != '\n' || bytes.Count(e.old, []byte(text)) > 1 {
		return 0, fmt.Errorf("[agents.%s] in %s was changed since it was added: change it yourself", name, e.File)
	}
	return at, nil
}

// check reports whether the edited file is valid, and starts an agent with a command, or does
// not contain the agent if command is nil.
func (e *Edit) check(was *layer, getenv func(string) string, name string, command []string) error {
	is := decodeLayer(e.File, was.Name, SourceUser, e.new, getenv)
	if len(is.Problems) > 0 {
		verb := "appended to"
		if command == nil {
			verb = "taken out of"
		}
		return fmt.Errorf("it cannot be %s your configuration: %w", verb, (&Error{Problems: is.Problems}).cut())
	}
	if _, there := is.agents[name]; there != (command != nil) || there && !slices.Equal(
		value[[]string](is, "agents."+name+".command"), command,
	) {
		return errors.New("your configuration would not say the same of the agent")
	}
	return nil
}

// table returns the agent as the text of a TOML table.
func (agent NewAgent) table() (string, error) {
	text, err := toml.Marshal(agent)
	if err != nil {
		return "", fmt.Errorf("writing the agent as TOML: %w", err)
	}
	return fmt.Sprintf("[agents.%s]\n%s", tableName(agent.Name), text), nil
}

// Write writes the user's file atomically. It leaves a file alone that was changed since.
func (e *Edit) Write() error {
	now, err := os.ReadFile(e.place)
	mode := fs.FileMode(0o600)
	switch {
	case err == nil && !bytes.Equal(now, e.old), errors.Is(err, fs.ErrNotExist) && len(e.old) > 0:
		return fmt.Errorf("another program changed %s at the same time: try again", e.File)
	case err == nil:
		info, err := os.Stat(e.place)
		if err != nil {
			return err
		}
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	err = durable.MkdirAll(filepath.Dir(e.place), 0o700)
	if err == nil {
		err = durable.Replace(e.place, e.new, mode)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", e.File, err)
	}
	return nil
}
