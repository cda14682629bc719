// Package registry reads the entry of an agent in a registry, and installs the agent. The format
// is that of the Agent Client Protocol's registry,
// https://github.com/agentclientprotocol/registry (FORMAT.md): an agent.json, or a registry.json
// with many.
//
// A registry is third-party data: the package checks it and its size before use, and runs
// nothing from it.
package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// Limits for a registry.
const (
	maxDocument = 10 << 20 // bytes of a registry
	maxAgents   = 5000     // in one registry
	maxText     = 2000     // bytes of a text
	maxArgs     = 100      // of a command
)

// An Entry is an agent, as a registry describes it.
type Entry struct {
	ID           string       `json:"id"`
	Name         string       `json:"name"`
	Version      string       `json:"version"`
	Description  string       `json:"description"`
	Distribution Distribution `json:"distribution"`
}

// A Distribution lists the ways to install an agent.
type Distribution struct {
	Binary map[string]Binary `json:"binary"` // by platform, such as linux-x86_64
	NPX    *Package          `json:"npx"`
	UVX    *Package          `json:"uvx"`
}

// A Binary is an archive with a program.
type Binary struct {
	Archive string            `json:"archive"`
	SHA256  string            `json:"sha256"`
	Cmd     string            `json:"cmd"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// A Package is one that npx or uvx downloads and runs.
type Package struct {
	Package string            `json:"package"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// UnmarshalJSON refuses unknown members: they might change the meaning.
func (b *Binary) UnmarshalJSON(raw []byte) error {
	type plain Binary
	return strict(raw, (*plain)(b))
}

// UnmarshalJSON refuses members that are not known.
func (p *Package) UnmarshalJSON(raw []byte) error {
	type plain Package
	return strict(raw, (*plain)(p))
}

func strict(raw []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// Parse finds an agent in the text of a registry, or in that of one agent; an empty id means the
// only one.
func Parse(text []byte, id string) (Entry, error) {
	var document struct {
		ID     string            `json:"id"`
		Agents []json.RawMessage `json:"agents"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return Entry{}, fmt.Errorf("this is no registry of agents: %w", err)
	}
	agents := document.Agents
	switch {
	case document.ID != "":
		agents = []json.RawMessage{text}
	case len(agents) == 0:
		return Entry{}, errors.New("this is no registry of agents: it has neither an id nor agents")
	case len(agents) > maxAgents:
		return Entry{}, fmt.Errorf("the registry has more than %d agents", maxAgents)
	}
	var ids []string
	for _, raw := range agents {
		var head struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(raw, &head) != nil {
			continue // other entries may be valid
		}
		ids = append(ids, head.ID)
		if head.ID != id && (id != "" || len(agents) > 1) {
			continue
		}
		var e Entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return Entry{}, fmt.Errorf("the agent %q is not as a registry describes agents: %w", head.ID, err)
		}
		if err := e.check(); err != nil {
			return Entry{}, fmt.Errorf("the agent %q is not as a registry describes agents: %w", e.ID, err)
		}
		return e, nil
	}
	if id == "" {
		return Entry{}, fmt.Errorf("the registry has %d agents: say which one", len(ids))
	}
	near := ""
	if found := similar(id, ids); len(found) > 0 {
		near = "; it has " + strings.Join(found, ", ")
	}
	return Entry{}, fmt.Errorf("the registry has no agent %q%s", id, near)
}

// similar returns a few ids that resemble one.
func similar(id string, ids []string) []string {
	var found []string
	for _, other := range ids {
		if idForm().MatchString(other) && len(found) < 10 && (strings.Contains(other, id) || strings.Contains(id, other)) {
			found = append(found, other)
		}
	}
	slices.Sort(found)
	return found
}

var (
	idForm      = lazyregexp.New(`^[a-z][a-z0-9-]{0,63}$`)
	versionForm = lazyregexp.New(`^[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]{0,40}$`)
	npmForm     = lazyregexp.New(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*(@[0-9A-Za-z^~][0-9A-Za-z.+~-]*)?$`)
	pythonForm  = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?((==|@)[0-9A-Za-z][0-9A-Za-z.+!-]*)?$`)
	nameForm    = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`) // of a variable
	pinnedForm  = lazyregexp.New(`(@|==)[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*$`)
	digestForm  = lazyregexp.New(`^[0-9a-fA-F]{64}$`)
)

// IsDigest reports whether a text is a SHA-256 in hexadecimal digits.
func IsDigest(s string) bool { return digestForm().MatchString(s) }

func (e Entry) check() error {
	switch d := e.Distribution; {
	case !idForm().MatchString(e.ID):
		return errors.New("its id is not made of lower-case letters, digits and dashes")
	case !versionForm().MatchString(e.Version):
		return fmt.Errorf("its version %q is not one such as 1.2.3", short(e.Version))
	case e.Name == "" || !isText(e.Name) || !isText(e.Description):
		return errors.New("its name or description is missing, or too long, or has control characters")
	case len(d.Binary) == 0 && d.NPX == nil && d.UVX == nil:
		return errors.New("it says no way to get it that is known: binary, npx or uvx")
	case d.NPX != nil && !npmForm().MatchString(d.NPX.Package):
		return fmt.Errorf("npx: %q is not the name of a package of the npm registry", short(d.NPX.Package))
	case d.UVX != nil && !pythonForm().MatchString(d.UVX.Package):
		return fmt.Errorf("uvx: %q is not the name of a package of PyPI", short(d.UVX.Package))
	}
	for platform, b := range e.Distribution.Binary {
		if err := b.check(); err != nil {
			return fmt.Errorf("%s: %w", short(platform), err)
		}
	}
	for _, p := range []*Package{e.Distribution.NPX, e.Distribution.UVX} {
		if p != nil {
			if err := checkCommand(p.Args, p.Env); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b Binary) check() error {
	switch {
	case b.SHA256 != "" && !IsDigest(b.SHA256):
		return errors.New("its sha256 is not 64 hexadecimal digits")
	case b.Archive == "" || !isText(b.Archive):
		return errors.New("its archive is no URL")
	case !isText(b.Cmd) || strings.ContainsAny(b.Cmd, `\:`) || !filepath.IsLocal(filepath.FromSlash(b.Cmd)) || filepath.Clean(b.Cmd) == ".":
		return fmt.Errorf("its cmd %q is no file of the archive", short(b.Cmd))
	}
	return checkCommand(b.Args, b.Env)
}

func checkCommand(args []string, env map[string]string) error {
	if len(args) > maxArgs || len(env) > maxArgs {
		return fmt.Errorf("it has more than %d arguments or variables", maxArgs)
	}
	for _, arg := range args {
		if !isText(arg) {
			return errors.New("an argument is too long, or has control characters")
		}
	}
	for name, value := range env {
		if !nameForm().MatchString(name) || !isText(value) {
			return errors.New("a variable has no proper name or value")
		}
	}
	return nil
}

// isText reports whether s is visible text of bounded length.
func isText(s string) bool {
	return len(s) <= maxText && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	})
}

func short(s string) string { return s[:min(len(s), 100)] }

// Platform returns the registries' name of this system.
func Platform() string {
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return runtime.GOOS + "-" + machine
}
