package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A loginFile is where an agent keeps what it learns when somebody signs in: a file
// below the directory that a variable names, or else below the home.
type loginFile struct{ variable, below, file string }

// LoginFile is the file in which a built-in agent keeps its login, or "" where that
// is not known. It may not be there, and is never to be read.
func (a Agent) LoginFile(getenv func(string) string) string {
	b, ok := a.known()
	if !ok || b.login.file == "" {
		return ""
	}
	variables := a.Variables(nil, getenv)
	if base := variables[b.login.variable]; filepath.IsAbs(base) {
		return filepath.Join(base, b.login.file)
	}
	home := variables["HOME"]
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, b.login.below, b.login.file)
}

// KeysAtHand are the variables of the agent that are to get a key, but for those whose
// key would be in an environment variable that is not set. Nothing is run or read for that.
func (c *Config) KeysAtHand(a Agent, getenv func(string) string) (variables []string) {
	for _, name := range slices.Sorted(maps.Keys(a.Keys)) {
		if a.Env[name] != "" {
			variables = append(variables, name)
			continue
		}
		key, configured := c.Keys[a.Keys[name]]
		if !configured {
			key = Key{Env: KeyVariable(a.Keys[name])}
		}
		if key.Env != "" && strings.TrimSpace(getenv(key.Env)) == "" {
			continue
		}
		variables = append(variables, name)
	}
	return variables
}

// IsBuiltIn reports whether it is an agent that is known without configuration, with
// its own program.
func (a Agent) IsBuiltIn() bool {
	_, ok := a.known()
	return ok
}

// IsDemo reports whether it is the agent inside this program.
func (a Agent) IsDemo() bool { return a.Name == demoAgent }
