package build

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// suggestion is the usual build command of projects with certain files.
type suggestion struct {
	name    string
	files   []string // one of them exists
	command []string
	shell   string
	page    bool // builds a page for browsers, so it is no backend
}

// suggestions are checked in this order.
var suggestions = []suggestion{
	{name: "go", files: []string{"go.mod", "go.work"}, shell: "go build ./... && go vet ./..."},
	{name: "cargo", files: []string{"Cargo.toml"}, command: []string{"cargo", "build"}},
	{name: "npm", files: []string{"package.json"}, page: true},
	{name: "typescript", files: []string{"tsconfig.json"}, command: []string{"node_modules/.bin/tsc", "--noEmit"}, page: true},
	{name: "gradle", files: []string{"gradlew"}, command: []string{"./gradlew", "--console=plain", "assemble"}},
	{name: "maven", files: []string{"pom.xml"}, command: []string{"mvn", "-B", "-q", "compile"}},
	{name: "dotnet", files: []string{"*.sln", "*.csproj", "*.fsproj"}, command: []string{"dotnet", "build"}},
	{name: "swift", files: []string{"Package.swift"}, command: []string{"swift", "build"}},
	{name: "mix", files: []string{"mix.exs"}, command: []string{"mix", "compile"}},
	{name: "cmake", files: []string{"CMakeLists.txt"}, shell: "cmake -S . -B build && cmake --build build"},
	{name: "make", files: []string{"GNUmakefile", "makefile", "Makefile"}, command: []string{"make"}},
	{name: "python", files: []string{"pyproject.toml", "setup.py"}, command: []string{"python3", "-m", "compileall", "-q", "-x", `(^|/)(\..+|node_modules|venv)/`, "."}},
}

// detect suggests targets for a directory. If it has a page and another target, the other one is
// the backend.
func detect(root string) []Target {
	var targets, backends []Target
	for _, s := range suggestions {
		if !s.applies(root) {
			continue
		}
		t := Target{Build: config.Build{Definition: config.Definition{
			Name: s.name, Command: s.command, Shell: s.shell, Timeout: config.DefaultTimeout,
		}}, Detected: true}
		if s.name == "npm" {
			t.Command = []string{packageManager(root), "run", "build"}
		}
		if s.page {
			targets = append(targets, t)
		} else {
			backends = append(backends, t)
		}
	}
	hasPage := len(targets) > 0
	for _, t := range backends {
		t.Backend = hasPage
		targets = append(targets, t)
	}
	return targets
}

// applies reports whether the suggestion matches a directory.
func (s suggestion) applies(root string) bool {
	switch s.name {
	case "npm":
		return hasBuildScript(root)
	case "typescript":
		if hasBuildScript(root) || !isFile(filepath.Join(root, s.command[0])) {
			return false
		}
	}
	for _, pattern := range s.files {
		found, _ := filepath.Glob(filepath.Join(escape(root), pattern))
		if slices.ContainsFunc(found, isFile) {
			return true
		}
	}
	return false
}

// escape escapes a directory's name for [filepath.Glob].
func escape(name string) string {
	var out []rune
	for _, r := range name {
		if filepath.Separator != '\\' && (r == '*' || r == '?' || r == '[' || r == '\\') {
			out = append(out, '\\')
		}
		out = append(out, r)
	}
	return string(out)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

const mostPackage = 1 << 20

// hasBuildScript reports whether package.json has a build script.
func hasBuildScript(root string) bool {
	name := filepath.Join(root, "package.json")
	if !isFile(name) { // a pipe would block
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var p struct {
		Scripts map[string]string `json:"scripts"`
	}
	return json.NewDecoder(io.LimitReader(f, mostPackage)).Decode(&p) == nil && p.Scripts["build"] != ""
}

// packageManager returns the package manager of the lock file.
func packageManager(root string) string {
	for _, m := range []struct{ lock, name string }{
		{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"bun.lock", "bun"}, {"bun.lockb", "bun"},
	} {
		if isFile(filepath.Join(root, m.lock)) {
			return m.name
		}
	}
	return "npm"
}
