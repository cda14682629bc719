package usercommand

import "maps"

// passed are the variables of the hub's own environment that say where tools are and keep
// their files, and the way to the network. A command
// of the user gets them beside what every child gets,
// and nothing else: there may be keys among the rest.
var passed = []string{
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "LC_ALL", "LC_CTYPE", "SHELL",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOSUMDB", "GOPRIVATE", "GOTOOLCHAIN",
	"CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "PNPM_HOME", "NPM_CONFIG_PREFIX", "JAVA_HOME", "GRADLE_USER_HOME", "MAVEN_HOME",
	"DOTNET_ROOT", "ANDROID_HOME", "VIRTUAL_ENV", "PYENV_ROOT", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "PKG_CONFIG_PATH", "MAKEFLAGS",
}

// Environment is what a command of the user gets beside what every child gets: where tools
// are, out of the hub's own environment, and more.
func Environment(getenv func(string) string, more map[string]string) map[string]string {
	env := make(map[string]string)
	for _, name := range passed {
		if value := getenv(name); value != "" {
			env[name] = value
		}
	}
	maps.Copy(env, more)
	return env
}
