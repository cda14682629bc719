package config

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

// A Host is another machine, a container, or anything else that runs a command with its standard
// input and output. Only the user's own file may name one.
type Host struct {
	Name      string
	Command   []string // the prefix: the command line that follows it runs there
	Shell     bool     // a shell there reads what follows the prefix
	Directory string   // where projects are there; "": where commands begin
	Program   string   // duet-rpc there
	EnvFrom   []string // variables of this machine that go there, names and patterns
}

// CommandLine returns the command of this machine that runs a program on the host.
func (h Host) CommandLine(program string, args ...string) []string {
	words := append([]string{program}, args...)
	if h.Shell {
		for i, word := range words {
			words[i] = shellcommand.Argument(word)
		}
	}
	return append(slices.Clone(h.Command), words...)
}

// Root returns the directory of a project on the host: a given one, or else the one below Directory
// with the name of a directory on this machine.
func (h Host) Root(given, here string) string {
	if given != "" {
		return given
	}
	return path.Join(h.Directory, path.Base(here))
}

// An UnknownHostError reports a host that the user's file does not name.
type UnknownHostError struct {
	Name  string
	Known []string
}

func (e *UnknownHostError) Error() string {
	known := "your configuration names no host"
	if len(e.Known) > 0 {
		known = "your configuration names " + strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("there is no host %q: %s; `duet-rpc hosts add %s COMMAND…` adds it", e.Name, known, e.Name)
}

// Hosts returns the hosts of the user's configuration, by name.
func Hosts(getenv func(string) string) (map[string]Host, error) {
	file, err := UserFile(getenv)
	if err != nil {
		return nil, err
	}
	user := readUser(file, getenv)
	if len(user.Problems) > 0 {
		return nil, Explain((&Error{Problems: user.Problems, Unread: user.unread}).cut())
	}
	c := standard()
	c.apply(user, true)
	for name, h := range c.Hosts {
		h.Name = name
		c.Hosts[name] = h
	}
	return c.Hosts, nil
}

// HostNamed returns a host of the user's configuration. The error is an [*UnknownHostError] if there
// is none of that name.
func HostNamed(name string, getenv func(string) string) (Host, error) {
	hosts, err := Hosts(getenv)
	if err != nil {
		return Host{}, err
	}
	h, ok := hosts[name]
	if !ok {
		return Host{}, &UnknownHostError{Name: name, Known: slices.Sorted(maps.Keys(hosts))}
	}
	return h, nil
}

// AddHost returns the edit that adds a host to the user's file, as [Add] adds an agent.
func AddHost(h Host, getenv func(string) string) (*Edit, error) {
	if err := checkName(h.Name); err != nil {
		return nil, fmt.Errorf("%s is no name of a host: it is %w", quoteShort(h.Name), err)
	}
	was, e, err := edit(getenv)
	if err != nil {
		return nil, err
	}
	hosts, err := Hosts(getenv)
	if err != nil {
		return nil, err
	}
	if _, there := hosts[h.Name]; there {
		return nil, fmt.Errorf("%s has [hosts.%s] already: change it there", was.Name, h.Name)
	}
	text, err := toml.Marshal(struct {
		Command   []string `toml:"command"`
		Shell     bool     `toml:"shell,omitempty"`
		Directory string   `toml:"directory,omitempty"`
	}{h.Command, h.Shell, h.Directory})
	if err != nil {
		return nil, fmt.Errorf("writing the host as TOML: %w", err)
	}
	e.append(fmt.Sprintf("[hosts.%s]\n%s", tableName(h.Name), text))
	is := decodeLayer(e.File, was.Name, SourceUser, e.new, getenv)
	if len(is.Problems) > 0 {
		return nil, fmt.Errorf("it cannot be added to your configuration: %w", (&Error{Problems: is.Problems}).cut())
	}
	return e, nil
}

// checkPlain reports a text that a host's command line cannot have.
func checkPlain(s string) error {
	if s == "" || strings.HasPrefix(s, "-") || strings.ContainsAny(s, "\x00\n\r") {
		return errors.New("a path of one line that does not begin with a dash")
	}
	return nil
}
