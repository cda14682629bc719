package process

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// inherited are the variables of the executor that a child may see. Nothing
// else gets in unasked.
var inherited = append([]string{"PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER"}, statePlaces...)

// statePlaces lead duet-rpc in a child to the sessions of the daemon.
var statePlaces = []string{"DUET_STATE_HOME", "XDG_STATE_HOME"}

// An Environment is a child's environment while it is made.
type Environment map[string]string

// NewEnvironment is what every child gets, and more; the last one counts.
func NewEnvironment(more ...map[string]string) Environment { return own(inherited, more...) }

// ClientEnvironment is the environment of a client for a child, and more; the last one counts.
func ClientEnvironment(client map[string]string, more ...map[string]string) Environment {
	return own(statePlaces, append([]map[string]string{client}, more...)...)
}

// own returns variables of this process, and more.
func own(names []string, more ...map[string]string) Environment {
	e := make(Environment)
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			e[name] = value
		}
	}
	for _, m := range more {
		maps.Copy(e, m)
	}
	return e
}

// With returns a copy of e with more variables, which win.
func (e Environment) With(more map[string]string) Environment {
	with := make(Environment, len(e)+len(more))
	maps.Copy(with, e)
	maps.Copy(with, more)
	return with
}

// List is the environment as package exec wants it. Variables that the system
// would refuse are left out.
func (e Environment) List() []string {
	list := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(e[name], 0) {
			continue // the system would refuse all of it
		}
		list = append(list, name+"="+e[name])
	}
	return list
}

// Find is the file of a program: as the shell would find it with the PATH of
// the child's own environment, relative to cwd if it has a slash.
func (e Environment) Find(program, cwd string) (string, error) {
	if strings.ContainsRune(program, filepath.Separator) || strings.ContainsRune(program, '/') {
		if !filepath.IsAbs(program) {
			program = filepath.Join(cwd, program)
		}
		return exec.LookPath(program)
	}
	for _, dir := range filepath.SplitList(e["PATH"]) {
		if !filepath.IsAbs(dir) {
			continue // a program of the working directory is not meant
		}
		file, err := exec.LookPath(filepath.Join(dir, program))
		if err == nil || errors.Is(err, fs.ErrPermission) {
			return file, err
		}
	}
	return "", exec.ErrNotFound
}
