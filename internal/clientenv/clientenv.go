// Package clientenv passes the environment of the client that launches a run to the agent of
// that run.
//
// A client sends some of its variables when it connects. The hub keeps them in memory: for the
// connection, and for each run until it has ended. They are never stored or logged.
package clientenv

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// MaxVariables is the largest number of variables that a client may send.
	MaxVariables = 256
	// MaxBytes limits the names and values of all variables together, in bytes.
	MaxBytes = 64 << 10
)

// passed are the variables that every agent gets. Another one reaches an agent only if the
// env_from of that agent names it. The first ones are sent even if not all of them fit.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "SSH_AUTH_SOCK",
	"LANG", "LANGUAGE", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT",
	"LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
}

// An Environment has the variables of a client by name. It is not changed once it is in use.
// A nil one is that of a client that has sent none.
type Environment map[string]string

// Collect returns the variables that a client sends: those that every agent gets, and more, the
// names in the env_from of agents. Variables that are empty, are not UTF-8 or exceed the limits
// are left out.
func Collect(getenv func(string) string, more []string) Environment {
	e := make(Environment)
	size := 0
	for _, name := range slices.Concat(passed, more) {
		value := getenv(name)
		if _, has := e[name]; has || value == "" || !utf8.ValidString(value) || len(e) == MaxVariables || size+len(name)+len(value) > MaxBytes {
			continue
		}
		e[name] = value
		size += len(name) + len(value)
	}
	return e
}

// Check returns an error that says which limit e exceeds, or which of its variables cannot be
// one. The error has no values.
func (e Environment) Check() error {
	if len(e) > MaxVariables {
		return fmt.Errorf("%d variables: more than %d are refused", len(e), MaxVariables)
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(e)) {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("the name %.40q, which no variable can have", name)
		case strings.ContainsRune(e[name], 0):
			return fmt.Errorf("a NUL in the value of %.40q", name)
		}
		size += len(name) + len(e[name])
	}
	if size > MaxBytes {
		return fmt.Errorf("%d bytes: more than %d are refused", size, MaxBytes)
	}
	return nil
}

// For returns the variables that an agent gets. Those that every agent gets are the client's,
// or getenv's for a client that has sent none. Those that from names, the agent's env_from,
// are the client's, or getenv's where the client has not sent the variable.
func (e Environment) For(from []string, getenv func(string) string) map[string]string {
	of := make(map[string]string, len(passed)+len(from))
	for _, name := range passed {
		value := e[name]
		if e == nil {
			value = getenv(name)
		}
		if value != "" {
			of[name] = value
		}
	}
	for _, name := range from {
		value := e[name]
		if value == "" && !slices.Contains(passed, name) {
			value = getenv(name)
		}
		if value != "" {
			of[name] = value
		}
	}
	return of
}

type key struct{}

// Context returns a context for the requests of a client that has sent e.
func Context(ctx context.Context, e Environment) context.Context {
	return context.WithValue(ctx, key{}, e)
}

// From returns the environment of the client whose request has the context ctx, or nil if it
// has sent none.
func From(ctx context.Context) Environment {
	e, _ := ctx.Value(key{}).(Environment)
	return e
}
