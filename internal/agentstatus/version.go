package agentstatus

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

const (
	packageMost = 1 << 20         // bytes of a package.json
	packageUp   = 5               // directories above a program in which it is looked for
	printedMost = 4 << 10         // bytes that --version prints
	versionTime = 5 * time.Second // for --version; it is noted, and asked once for each file
)

var (
	versionText   = lazyregexp.New(`(?:^|[\s/v(@])(\d+\.\d+[0-9A-Za-z.+-]*)`)
	pinnedVersion = lazyregexp.New(`^(?:@[^/@\s]+/)?[^/@\s]+(?:@|==)(\d[0-9A-Za-z.+-]*)$`)
)

// versionOf is the version of an agent's program, as far as it can be told without
// starting the agent: as its package says, as its command names it, as it told when
// it was asked last, or as a built-in agent's program prints it.
func versionOf(ctx context.Context, a config.Agent, n *Notes, run bool) string {
	command := a.StartCommand()
	program, named := programOf(command)
	if named != "" {
		return named
	}
	if program != "" {
		if v := packageVersion(program); v != "" {
			return v
		}
	}
	made, ok := stampOf(command[0])
	if !ok {
		return ""
	}
	if known := n.read(a.Name, command).Version; known != nil && known.Stamp.same(made) {
		return known.Version
	}
	if !run || !a.IsBuiltIn() {
		return ""
	}
	version, asked := printedVersion(ctx, a)
	if asked {
		n.change(a.Name, command, func(t *note) { t.Version = &versionNote{version, made} })
	}
	return version
}

func (s stamp) same(t stamp) bool {
	return s.Path == t.Path && s.Size == t.Size && s.Modified.Equal(t.Modified)
}

// programOf is the file that a command runs, or the version of the package that it
// names; neither where that cannot be told.
func programOf(command []string) (file, version string) {
	switch name := strings.TrimSuffix(filepath.Base(command[0]), ".exe"); {
	case slices.Contains([]string{"npx", "uvx", "bunx", "pnpm", "npm", "bun", "uv", "pipx"}, name):
		for _, arg := range command[1:] {
			if m := pinnedVersion().FindStringSubmatch(arg); m != nil {
				return "", m[1]
			}
		}
		return "", ""
	case slices.Contains([]string{"node", "nodejs", "deno"}, name):
		for _, arg := range command[1:] {
			if filepath.IsAbs(arg) {
				return arg, ""
			}
		}
		return "", ""
	}
	return command[0], ""
}

// packageVersion is the version that the package.json of a program's package says, or "".
func packageVersion(program string) string {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return ""
	}
	for dir, up := filepath.Dir(program), 0; up < packageUp; up++ {
		if version, found := versionIn(dir, program); found {
			return version
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// versionIn is the version of the package in a directory; found tells that there is
// one. It is empty if the program is none of the package's.
func versionIn(dir, program string) (version string, found bool) {
	name := filepath.Join(dir, "package.json")
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > packageMost {
		return "", false
	}
	text, err := os.ReadFile(name)
	var described struct {
		Name, Version string
		Bin           json.RawMessage
	}
	if err != nil || json.Unmarshal(text, &described) != nil || described.Name == "" {
		return "", false // such as {"type":"module"}
	}
	installed := strings.HasSuffix(filepath.ToSlash(dir), "/node_modules/"+described.Name)
	if !installed && !slices.ContainsFunc(programsOf(described.Bin), func(bin string) bool { return filepath.Join(dir, filepath.FromSlash(bin)) == program }) {
		return "", true
	}
	return firstLine(described.Version), true
}

// programsOf are the programs of a package.json's member bin, a path or an object of
// them.
func programsOf(bin json.RawMessage) (paths []string) {
	var one string
	if json.Unmarshal(bin, &one) == nil {
		return []string{path.Clean(one)}
	}
	var several map[string]string
	_ = json.Unmarshal(bin, &several)
	for _, one := range several {
		paths = append(paths, one)
	}
	return paths
}

// printedVersion is what the program of an agent prints for --version; asked tells
// that it has ended by itself, so that there is no use in asking again.
func printedVersion(ctx context.Context, a config.Agent) (version string, asked bool) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "duet-version-")
	if err != nil {
		return "", false
	}
	defer os.RemoveAll(dir)
	runner := process.NewRunner(ctx, slog.New(slog.DiscardHandler), process.Grace{})
	defer runner.Close()
	p, err := runner.Start(process.Spec{Path: a.Path, Argv: []string{a.Path, "--version"}, CWD: dir, Env: process.NewEnvironment(a.Variables(nil, os.Getenv))})
	if err != nil {
		return "", false
	}
	defer context.AfterFunc(ctx, p.Kill)()
	out, stop := p.Output()
	text, _ := io.ReadAll(io.LimitReader(out, printedMost))
	stop()
	<-p.Done()
	if ctx.Err() != nil || !p.Succeeded() {
		return "", ctx.Err() == nil
	}
	if m := versionText().FindSubmatch(text); m != nil {
		return string(m[1]), true
	}
	return "", true
}

// firstLine is the beginning of a text that somebody else wrote.
func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.ToValidUTF8(text, "\uFFFD"), "\n")
	return text[:min(len(text), 100)]
}

// modified is when a file was changed, and whether it is there.
func modified(name string) (time.Time, bool) {
	info, err := os.Stat(name)
	if err != nil || info.Mode()&fs.ModeType != 0 || info.Size() == 0 {
		return time.Time{}, false
	}
	return info.ModTime(), true
}
