package registry

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// The ways to install an agent.
const (
	ViaBinary = "binary"
	ViaNPX    = "npx"
	ViaUVX    = "uvx"
)

// A Plan describes how to install an agent, and the command that starts it.
type Plan struct {
	Entry   Entry
	Via     string
	Command []string
	Env     map[string]string
	Notes   []string // warnings to read before the user agrees

	// Of ViaBinary alone.
	Archive   string // its URL
	SHA256    string // lower case
	Directory string // extraction directory, which Install creates
	program   string // in Directory
}

// Choice holds the user's choices for a plan.
type Choice struct {
	Via       string                    // "" means the first way that works here: binary with a checksum, npx, uvx
	SHA256    string                    // of the archive, if the registry has none
	Directory string                    // parent directory of extracted archives
	Has       func(program string) bool // reports whether npx or uvx is installed
}

// Plan returns the installation plan, and does nothing yet. It refuses an archive without a
// checksum, because its content could not be verified.
func (e Entry) Plan(c Choice) (Plan, error) {
	var reasons []string
	for _, via := range []string{ViaBinary, ViaNPX, ViaUVX} {
		if c.Via != "" && c.Via != via {
			continue
		}
		p, err := e.plan(via, c)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, errNotOffered) || c.Via != "" {
			reasons = append(reasons, err.Error())
		}
	}
	if len(reasons) == 0 {
		return Plan{}, fmt.Errorf("there is no way %q to get an agent: there are binary, npx and uvx", c.Via)
	}
	return Plan{}, errors.New(strings.Join(reasons, "; "))
}

var errNotOffered = errors.New("the registry does not offer it in this way")

func (e Entry) plan(via string, c Choice) (Plan, error) {
	switch d := e.Distribution; {
	case via == ViaBinary && len(d.Binary) > 0:
		return e.planBinary(c)
	case via == ViaNPX && d.NPX != nil:
		return e.planPackage(via, d.NPX, "--yes"), needs(c, via, "Node.js")
	case via == ViaUVX && d.UVX != nil:
		return e.planPackage(via, d.UVX), needs(c, via, "uv")
	}
	return Plan{}, errNotOffered
}

func needs(c Choice, program, of string) error {
	if c.Has(program) {
		return nil
	}
	return fmt.Errorf("it needs %s, which is not on PATH: install %s", program, of)
}

func (e Entry) planPackage(via string, p *Package, options ...string) Plan {
	plan := Plan{
		Entry: e, Via: via, Env: p.Env, Command: slices.Concat([]string{via}, options, []string{p.Package}, p.Args),
		Notes: []string{fmt.Sprintf("%s downloads the package %s when the agent is started, and runs it.", via, p.Package)},
	}
	if !pinnedForm().MatchString(p.Package) {
		plan.Notes = append(plan.Notes, "No exact version is named: what runs may be another program from day to day.")
	}
	return plan
}

func (e Entry) planBinary(c Choice) (Plan, error) {
	b, ok := e.Distribution.Binary[Platform()]
	if !ok {
		return Plan{}, fmt.Errorf("the registry has no archive for %s", Platform())
	}
	digest := strings.ToLower(b.SHA256)
	switch {
	case c.SHA256 != "" && digest != "" && !strings.EqualFold(c.SHA256, digest):
		return Plan{}, errors.New("the registry names another checksum than you")
	case c.SHA256 != "":
		digest = strings.ToLower(c.SHA256)
	case digest == "":
		return Plan{}, errors.New("the registry has no checksum (sha256) of the archive: take another way, or give the checksum that the " +
			"agent's makers publish with --sha256")
	}
	if !IsDigest(digest) {
		return Plan{}, errors.New("a checksum is 64 hexadecimal digits")
	}
	if archiveKind(b.Archive) == "" {
		return Plan{}, errors.New("its archive is none that can be unpacked: .tar.gz, .tgz, .tar.bz2 or .zip")
	}
	directory := filepath.Join(c.Directory, e.ID, e.Version)
	program := filepath.Clean(filepath.FromSlash(b.Cmd))
	return Plan{
		Entry: e, Via: ViaBinary, Env: b.Env, Command: append([]string{filepath.Join(directory, program)}, b.Args...),
		Archive: b.Archive, SHA256: digest, Directory: directory, program: program,
	}, nil
}
