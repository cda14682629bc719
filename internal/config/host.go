package config

import (
	"crypto/sha256"
	"encoding/hex"
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

	Start []string // the command of this machine that makes the host; nil: it is there without one
	Stop  []string // the command of this machine that removes it
	Per   string   // what has a host of its own: PerProject or PerSession

	Of   string // the name in the configuration, if Name is that of the host of one session; else ""
	Made string // what {host} in Command, Start and Stop stood for; "": they are as configured
}

// The values of [Host].Per.
const (
	PerProject = "project"
	PerSession = "session"
)

// placeholder stands for the name of the made host in its commands.
const placeholder = "{host}"

// IsMade reports whether the host is made when it is needed.
func (h Host) IsMade() bool { return len(h.Start) > 0 }

// NeedsSession reports whether each session has a host of its own, and this is none of them.
func (h Host) NeedsSession() bool { return h.IsMade() && h.Per == PerSession && h.Of == "" }

// ForProject returns the host that is made for a project of this machine, by the project's root.
func (h Host) ForProject(root string) Host {
	return h.made(fmt.Sprintf("duet-%s-%s", h.Name, shortHash(root, 8)))
}

// ForSession returns the host that is made for a session. Its name, such as box-3f2a9c, is that of a host
// for [HostNamed].
func (h Host) ForSession(uuid string) Host { return h.instance(shortHash(uuid, instanceDigits)) }

// instanceDigits is how many hexadecimal digits the name of a session's host has behind the last dash.
const instanceDigits = 6

// shortHash returns the first digits of a hash. A UUID's own digits would do less: those of some kinds
// begin with the time.
func shortHash(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}

func (h Host) instance(digits string) Host {
	h.Of, h.Name = h.Name, h.Name+"-"+digits
	return h.made("duet-" + h.Name)
}

// made returns the host with its commands for the made host of this name.
func (h Host) made(name string) Host {
	replace := func(words []string) []string {
		words = slices.Clone(words)
		for i, word := range words {
			words[i] = strings.ReplaceAll(word, placeholder, name)
		}
		return words
	}
	h.Made, h.Command, h.Start, h.Stop = name, replace(h.Command), replace(h.Start), replace(h.Stop)
	return h
}

// checkMade records combinations of keys that make no host.
func checkMade(t Table, h *Host) {
	if !h.IsMade() {
		for _, key := range []string{"stop", "per"} {
			if _, is := t.Values[key]; is {
				t.Wrong(key, "start beside it", "none")
			}
		}
		return
	}
	if h.Per != PerSession {
		return
	}
	for key, words := range map[string][]string{"command": h.Command, "start": h.Start} {
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, placeholder) }) {
			t.Wrong(key, `an argument with {host}, because each session has a host of its own (per = "session")`, "none")
		}
	}
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

// OfUser returns the configuration of the user's file alone.
func OfUser(getenv func(string) string) (*Config, error) {
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
	return c, nil
}

// Hosts returns the hosts of the user's configuration, by name.
func Hosts(getenv func(string) string) (map[string]Host, error) {
	c, err := OfUser(getenv)
	if err != nil {
		return nil, err
	}
	return c.Hosts, nil
}

// HostNamed returns a host of the user's configuration, or the host of one session, such as box-3f2a9c for
// [hosts.box]. The error is an [*UnknownHostError] if there is none of that name.
func HostNamed(name string, getenv func(string) string) (Host, error) {
	hosts, err := Hosts(getenv)
	if err != nil {
		return Host{}, err
	}
	return HostIn(hosts, name)
}

// HostIn is HostNamed for hosts that were read before.
func HostIn(hosts map[string]Host, name string) (Host, error) {
	h, ok := hosts[name]
	if base, digits, is := cutInstance(name); !ok && is {
		if h = hosts[base]; h.IsMade() && h.Per == PerSession {
			return h.instance(digits), nil
		}
	}
	if !ok {
		return Host{}, &UnknownHostError{Name: name, Known: slices.Sorted(maps.Keys(hosts))}
	}
	return h, nil
}

// cutInstance cuts the name of a session's host, such as box-3f2a9c, into that of the configured host and its digits.
func cutInstance(name string) (base, digits string, is bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 1 {
		return "", "", false
	}
	base, digits = name[:dash], name[dash+1:]
	return base, digits, len(digits) == instanceDigits && strings.Trim(digits, "0123456789abcdef") == ""
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
