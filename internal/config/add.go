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
)

// An Addition is an agent that is to be added to the user's own file.
type Addition struct {
	File string // the user's file
	Text string // what is appended to it

	place    string // the file, where links lead to
	old, new []byte
}

// NewAgent is what an [Addition] says of an agent, which speaks the Agent Client
// Protocol.
type NewAgent struct {
	Name    string            `toml:"-"`
	Title   string            `toml:"title,omitempty"`
	Command []string          `toml:"command"`
	Env     map[string]string `toml:"env,inline,omitempty"`
}

// Add says how an agent is added to the user's file, whose text, with its
// comments, stays as it is. Nothing is written yet. A file that has a mistake, or
// the agent already, is not added to.
func Add(agent NewAgent, getenv func(string) string) (*Addition, error) {
	if err := checkName(agent.Name); err != nil {
		return nil, fmt.Errorf("%s is no name of an agent: it is %w", quoteShort(agent.Name), err)
	}
	if agent.Name == demoAgent {
		return nil, fmt.Errorf("%s is the built-in demonstration agent: choose another name", demoAgent)
	}
	file, err := UserFile(getenv)
	if err != nil {
		return nil, err
	}
	was := readUser(file, getenv)
	if len(was.problems) > 0 {
		return nil, fmt.Errorf("your configuration has a mistake, which is to be corrected first: %w", (&Error{Problems: was.problems}).cut())
	}
	if _, there := was.agents[agent.Name]; there {
		return nil, fmt.Errorf("%s has [agents.%s] already: take that out first, or choose another name with --as", was.name, agent.Name)
	}
	text, err := agent.table()
	if err != nil {
		return nil, err
	}
	a := &Addition{File: file, Text: text, place: file, old: was.content}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		a.place = target
	}
	separator := ""
	if len(a.old) > 0 {
		separator = strings.Repeat("\n", 2-min(1, len(a.old)-len(bytes.TrimSuffix(a.old, []byte("\n")))))
	}
	a.new = slices.Concat(a.old, []byte(separator+text))
	is := decodeLayer(file, was.name, SourceUser, a.new, getenv)
	if len(is.problems) > 0 {
		return nil, fmt.Errorf("it cannot be appended to your configuration: %w", (&Error{Problems: is.problems}).cut())
	}
	if t, added := is.agents[agent.Name]; !added || !slices.Equal(t.command, agent.Command) {
		return nil, errors.New("your configuration would not say the same of the agent")
	}
	return a, nil
}

// table is the agent as it stands in a file.
func (agent NewAgent) table() (string, error) {
	name := agent.Name
	if strings.Contains(name, ".") {
		name = strconv.Quote(name) // which has no characters that TOML writes otherwise
	}
	text, err := toml.Marshal(agent)
	if err != nil {
		return "", fmt.Errorf("writing the agent as TOML: %w", err)
	}
	return fmt.Sprintf("[agents.%s]\n%s", name, text), nil
}

// Write appends the agent to the user's file, which is there as it was or as it is
// to be, and nothing between. A file that was changed since is left as it is.
func (a *Addition) Write() error {
	now, err := os.ReadFile(a.place)
	mode := fs.FileMode(0o600)
	switch {
	case err == nil && !bytes.Equal(now, a.old), errors.Is(err, fs.ErrNotExist) && len(a.old) > 0:
		return fmt.Errorf("%s was changed meanwhile: try again", a.File)
	case err == nil:
		info, err := os.Stat(a.place)
		if err != nil {
			return err
		}
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(a.place), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(a.place), ".config-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // in vain once it has its name
	_, err = temporary.Write(a.new)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Sync(), temporary.Close())
	if err != nil {
		return fmt.Errorf("writing %s: %w", a.File, err)
	}
	return os.Rename(temporary.Name(), a.place)
}
