// Package clientenv passes the environment of the client that launches a turn to the agent of
// that turn.
//
// A client sends some of its variables when it connects. The hub keeps them in memory: for the
// connection, and for each turn until it has ended. They are never stored or logged.
package clientenv

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const (
	// MaxVariables is the largest number of variables that a client may send.
	MaxVariables = 256
	// MaxBytes limits the names and values of all variables together, in bytes.
	MaxBytes = 64 << 10
)

// passed are the variables that every agent gets, in addition to tools. Another one reaches an
// agent only if the env_from of that agent names it. The first ones are sent even if not all of them fit.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "SSH_AUTH_SOCK",
	"LANG", "LANGUAGE", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT",
	"LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
}

// tools are the variables with the locations of tools and of their files, and the network
// settings. Every agent gets them, for the commands that it runs. A command of the user, such as a
// build, gets them in addition to the variables above that name no desktop session. It gets
// nothing else, because the rest may contain keys.
var tools = []string{
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "NIX_SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE", "GOENV", "GOWORK", "GOFLAGS", "GOPROXY", "GOSUMDB", "GOPRIVATE", "GOTOOLCHAIN",
	"CGO_ENABLED",
	"CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS",
	"NVM_DIR", "NVM_BIN", "FNM_DIR", "VOLTA_HOME", "PNPM_HOME", "NPM_CONFIG_PREFIX", "NODE_PATH", "BUN_INSTALL", "DENO_DIR",
	"JAVA_HOME", "GRADLE_USER_HOME", "MAVEN_HOME", "SDKMAN_DIR", "DOTNET_ROOT", "ANDROID_HOME", "ANDROID_SDK_ROOT",
	"VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYTHONPATH", "UV_CACHE_DIR",
	"RBENV_ROOT", "GEM_HOME", "GEM_PATH", "BUNDLE_PATH", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "NIX_PATH",
	"CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "MAKEFLAGS",
	"KUBECONFIG", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG",
}

// IsPublic reports whether a variable contains no secret: every agent gets it, and it is not a
// proxy, whose address may have a password.
func IsPublic(name string) bool {
	return slices.Contains(passed, name) && !strings.HasSuffix(strings.ToLower(name), "_proxy")
}

// basic are the variables among passed that a command of the user gets.
var basic = []string{
	"PATH", "HOME", "USER", "SHELL", "TERM", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "XDG_RUNTIME_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// An Environment has the variables of a client by name. It does not change once it is in use. A
// nil Environment means that the client has sent none.
type Environment map[string]string

// Collect returns the variables that a client sends, of environ, a list of NAME=value: those that
// every agent gets, and more, the names and patterns in the env_from of agents. Variables that are
// empty, are not UTF-8 or exceed the limits are left out.
func Collect(environ, more []string) Environment { return collect(environ, passed, more, tools) }

// Only is Collect for more alone.
func Only(environ, more []string) Environment { return collect(environ, nil, more, nil) }

func collect(environ, first, more, last []string) Environment {
	all := make(map[string]string, len(environ))
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		all[name] = value
	}
	e := make(Environment)
	size := 0
	for _, name := range slices.Concat(first, expand(more, slices.Sorted(maps.Keys(all))), last) {
		value := all[name]
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

// IsPattern reports whether an entry of env_from is not a name but the beginning of names, with a
// * behind it.
func IsPattern(entry string) bool { return strings.HasSuffix(entry, "*") }

// Matches reports whether an entry of env_from, a name or a pattern, is for a variable.
func Matches(entry, name string) bool {
	if IsPattern(entry) {
		return strings.HasPrefix(name, strings.TrimSuffix(entry, "*"))
	}
	return entry == name
}

// expand replaces the patterns among entries by the names that match them.
func expand(entries, names []string) (of []string) {
	for _, entry := range entries {
		if !IsPattern(entry) {
			of = append(of, entry)
			continue
		}
		for _, name := range names {
			if Matches(entry, name) {
				of = append(of, name)
			}
		}
	}
	return of
}

// secretWords end the names of variables that contain keys, in the form of _WORD or as a whole.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE"}

// IsSecret reports whether the name of a variable says that its value is a key, a token or a
// password.
func IsSecret(name string) bool {
	upper := strings.ToUpper(name)
	return slices.ContainsFunc(secretWords, func(word string) bool { return upper == word || strings.HasSuffix(upper, "_"+word) }) ||
		strings.Contains(upper, "_BEARER_TOKEN_")
}

// Secrets returns the values of the variables that contain keys. A path is not a secret.
func Secrets(variables map[string]string) (values []string) {
	for name, value := range variables {
		if IsSecret(name) && !filepath.IsAbs(value) {
			values = append(values, value)
		}
	}
	return values
}

// KeptBack returns the names in environ, a list of NAME=value, of the variables that contain keys
// and that an agent with from as env_from does not get, sorted.
func KeptBack(environ, from []string) (names []string) {
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		matches := func(entry string) bool { return Matches(entry, name) }
		if value != "" && IsSecret(name) && !slices.ContainsFunc(from, matches) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Lookup returns a function that finds a variable of the client. A variable that the client has
// not sent comes from the hub's process, by getenv.
func (e Environment) Lookup(getenv func(string) string) func(name string) string {
	return func(name string) string {
		if value, has := e[name]; has {
			return value
		}
		return getenv(name)
	}
}

// lookup is Lookup for a child that the client has launched. If the client has sent variables, a
// missing one among those for every agent stays missing.
func (e Environment) lookup(getenv func(string) string) func(name string) string {
	of := e.Lookup(getenv)
	return func(name string) string {
		if _, has := e[name]; !has && e != nil && (slices.Contains(passed, name) || slices.Contains(tools, name)) {
			return ""
		}
		return of(name)
	}
}

// For returns the variables of an agent that the client launches: those that every agent gets,
// and those of from, names and patterns. If the client has sent variables, a pattern is for these
// only, so that the parts of one sign-in have one source. A named variable that the client has not
// sent comes from the hub's process, by getenv.
func (e Environment) For(from []string, getenv func(string) string) map[string]string {
	names := slices.Collect(maps.Keys(e))
	if e == nil {
		for _, variable := range os.Environ() {
			name, _, _ := strings.Cut(variable, "=")
			names = append(names, name)
		}
	}
	return pick(e.lookup(getenv), passed, tools, expand(from, names))
}

// ForCommand returns the variables of a command of the user, such as a build, and more, which
// win.
func (e Environment) ForCommand(getenv func(string) string, more map[string]string) map[string]string {
	of := pick(e.lookup(getenv), basic, tools)
	maps.Copy(of, more)
	return of
}

func pick(lookup func(string) string, lists ...[]string) map[string]string {
	of := make(map[string]string)
	for _, names := range lists {
		for _, name := range names {
			if value := lookup(name); value != "" {
				of[name] = value
			}
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

type restrictedKey struct{}

// Restrict returns a context for requests of a client that does not trust the workspace, an
// editor in a restricted mode. Its turns ignore everything that the project's file defines, even
// if the user has trusted that file elsewhere. A turn keeps the mark: it may wait, and outlive
// its client.
func Restrict(ctx context.Context) context.Context {
	return context.WithValue(ctx, restrictedKey{}, true)
}

// IsRestricted reports whether ctx comes from [Restrict].
func IsRestricted(ctx context.Context) bool { return ctx.Value(restrictedKey{}) != nil }

// Carry restricts a turn if ctx is restricted.
func Carry(ctx context.Context, turn *domain.Turn) {
	turn.Restricted = turn.Restricted || IsRestricted(ctx)
}
