// Package sandbox runs an agent's processes in bubblewrap (bwrap), on Linux: their own view of the
// file system, without other processes, and without a network at the level "offline".
//
// A [Finder] finds bwrap and tries it. [New] makes a [Box] for one agent: a table of paths and what the
// agent may do below each. The table gives both the command line of bwrap and the answers to the
// agent's file requests that Duet serves, so the two cannot differ. docs/security.md says what a
// sandbox keeps out and what it does not.
package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An access is what the agent may do with a path and everything below it.
type access int

const (
	readOnly access = iota // the default
	hidden                 // empty
	writable
)

// A Box is the sandbox of one agent and of the programs that Duet starts for it. It does not change,
// and its methods may be called from any goroutine.
type Box struct {
	program string
	level   string
	dirs    map[string]access // by path, absolute and free of links
}

// A Place is where an agent works.
type Place struct {
	Root, CWD   string   // the project or worktree, and the working directory
	Directories []string // more directories that the agent may write; relative to CWD
	Programs    []string // files that stay readable wherever they are: the agent's program
	Env         map[string]string
}

// New makes the sandbox of an agent. It makes a few files in the git directories of a worktree that are
// missing, empty, so that the agent cannot make them. An error says why an agent cannot be confined to a
// directory: it contains the home directory, the sandbox hides it, or the agent may have made it a link.
func New(spec catalog.Sandbox, at Place) (*Box, error) {
	b := &Box{program: spec.Program, level: spec.Level, dirs: make(map[string]access)}
	if !slices.Contains(domain.SandboxLevels(), spec.Level) || !filepath.IsAbs(spec.Program) {
		return nil, fmt.Errorf("the sandbox %q is unknown here", spec.Level)
	}
	homes := homesOf(at.Env)
	for _, dir := range []string{"/dev", "/tmp", "/var/tmp", "/run", "/var/run", "/mnt/wslg", at.Env["XDG_RUNTIME_DIR"], os.Getenv("XDG_RUNTIME_DIR")} {
		b.set(dir, hidden)
	}
	for _, home := range homes {
		if b.access(home) == hidden {
			b.set(home, readOnly)
		}
		for _, name := range secrets {
			b.set(filepath.Join(home, name), hidden)
		}
	}
	for _, name := range secretVariables {
		b.set(at.Env[name], hidden)
	}
	for _, path := range []string{"/etc/resolv.conf", "/etc/hosts"} { // the links of systemd lead to /run
		b.show(path)
	}
	for _, path := range spec.Write {
		b.set(path, writable)
	}
	dirs := []string{at.Root, at.CWD}
	for _, dir := range at.Directories {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(at.CWD, dir)
		}
		dirs = append(dirs, dir)
	}
	for _, path := range spec.Hide {
		b.set(path, hidden)
	}
	for i, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue // the start of the agent reports a missing directory
		}
		for _, home := range homes {
			if within(real, home) {
				return nil, fmt.Errorf("%s contains the home directory, so nothing would be kept out: choose a directory below it", dir)
			}
		}
		switch a, listed := b.dirs[real]; {
		case listed && a == hidden && i < 2:
			return nil, fmt.Errorf("the sandbox hides %s: choose a directory below it", dir)
		case listed && a == hidden, !listed && b.access(real) == writable:
		default:
			b.dirs[real] = writable
		}
	}
	for _, dir := range append(dirs, spec.Write...) {
		if err := b.protectGit(dir); err != nil {
			return nil, err
		}
	}
	for _, dir := range append(dirs, spec.Write...) {
		if link := b.linkOfAgent(dir); link != "" {
			return nil, fmt.Errorf("%s is a link in a directory that the agent may write: name the directory that it leads to", link)
		}
	}
	b.pin()
	for _, path := range append(at.Programs, ownProgram()) {
		b.show(path)
	}
	return b, nil
}

// linkOfAgent returns the first link in a path that the agent could have put there, in an earlier turn;
// "" if there is none.
func (b *Box) linkOfAgent(path string) string {
	const mostLinks = 255
	rest, at := strings.Split(filepath.Clean(path), "/"), "/"
	for links := 0; len(rest) > 0; rest = rest[1:] {
		next := filepath.Join(at, rest[0])
		to, err := os.Readlink(next)
		if err != nil { // no link
			at = next
			continue
		}
		if links++; b.access(at) == writable || links > mostLinks {
			return next
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append([]string{""}, append(strings.Split(to, "/"), rest[1:]...)...)
	}
	return ""
}

// pin makes each directory between a writable one and a protected path in it a mount point. The agent
// cannot rename a mount point, and with it what is below.
func (b *Box) pin() {
	for path, a := range maps.Clone(b.dirs) {
		for dir := filepath.Dir(path); a != writable && b.access(dir) == writable; dir = filepath.Dir(dir) {
			if _, listed := b.dirs[dir]; listed {
				break
			}
			b.dirs[dir] = writable
		}
	}
}

// secrets are the files and directories of a home directory that the sandbox hides: keys and logins, and
// the sockets and keys of programs that would act outside of the sandbox.
var secrets = []string{
	".ssh", ".gnupg", ".password-store", ".netrc", ".pgpass", ".my.cnf", ".vault-token", ".Xauthority", ".ICEauthority",
	".git-credentials", ".config/git/credentials", ".git-credential-cache", ".cache/git/credential", ".config/gh", ".config/hub", ".config/glab-cli",
	".npmrc", ".pypirc", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".cache/huggingface/token",
	".aws", ".azure", ".config/gcloud", ".boto", ".s3cfg", ".oci", ".fly", ".config/doctl", ".config/rclone", ".terraform.d",
	".kube", ".minikube", ".docker", ".config/containers/auth.json", ".colima", ".lima", ".rd",
	".local/share/keyrings", ".local/share/kwalletd", ".config/op", ".1password", ".config/1Password", ".config/Bitwarden",
	".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
	".config/vivaldi", ".config/opera", "snap/firefox", "snap/chromium", ".var/app",
	".emacs.d/server", ".config/emacs/server", ".screen", ".local/share/jupyter/runtime",
	".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".psql_history", ".python_history",
}

// secretVariables name files that the sandbox hides.
var secretVariables = []string{
	"XAUTHORITY", "ICEAUTHORITY", "KUBECONFIG", "NPM_CONFIG_USERCONFIG", "NETRC", "GNUPGHOME", "DOCKER_CONFIG", "AWS_SHARED_CREDENTIALS_FILE",
	"AWS_CONFIG_FILE", "CLOUDSDK_CONFIG",
}

// droppedVariables lead to programs outside of the sandbox, or to places that are not in it.
var droppedVariables = []string{
	"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY",
	"WAYLAND_SOCKET", "XAUTHORITY", "ICEAUTHORITY", "SESSION_MANAGER", "XDG_RUNTIME_DIR", "TMUX", "TMUX_PANE", "TMUX_TMPDIR", "STY",
	"DOCKER_HOST", "CONTAINER_HOST", "GNOME_KEYRING_CONTROL", "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "WSL_INTEROP", "TMPDIR", "TEMP", "TMP",
}

// Environment returns a copy of env without the variables that lead out of the sandbox.
func (b *Box) Environment(env map[string]string) map[string]string {
	env = maps.Clone(env)
	for _, name := range droppedVariables {
		delete(env, name)
	}
	return env
}

// set sets the access of a path, if it exists. The last call for a path wins.
func (b *Box) set(path string, a access) {
	if !filepath.IsAbs(path) {
		return
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != "/" {
		b.dirs[real] = a
	}
}

// show keeps a path readable that is in a hidden directory.
func (b *Box) show(path string) {
	if real, err := filepath.EvalSymlinks(path); err == nil && b.access(real) == hidden {
		b.dirs[real] = readOnly
		if path = filepath.Clean(path); path != real && b.access(path) == hidden {
			b.dirs[path] = readOnly // bwrap makes it a file
		}
	}
}

// access returns the access of a path without links: that of the deepest listed directory above it.
func (b *Box) access(path string) access {
	for ; ; path = filepath.Dir(path) {
		if a, listed := b.dirs[path]; listed {
			return a
		}
		if path == filepath.Dir(path) {
			return readOnly
		}
	}
}

// CanRead reports whether the agent sees a path, which must be absolute and free of links.
func (b *Box) CanRead(path string) bool { return b.access(path) != hidden }

// CanWrite reports whether the agent may write a path, which must be absolute and free of links.
func (b *Box) CanWrite(path string) bool { return b.access(path) == writable }

// branches is the directory of the branches of Duet's worktrees in a git directory.
const branches = "refs/heads/duet"

// protectGit makes the repository of a directory read-only, except for what a commit in a linked
// worktree writes. A repository's own directory stays read-only as a whole: git needs to make files
// in it, and one of them, commondir, would make git read a configuration of the agent's choice.
func (b *Box) protectGit(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	link := filepath.Join(dir, ".git")
	info, err := os.Lstat(link)
	if err != nil {
		return nil
	}
	if info.Mode()&os.ModeSymlink != 0 {
		// A link cannot be a mount point, and the agent could replace it.
		return fmt.Errorf("%s is a symbolic link, which the sandbox cannot protect: use a worktree (--worktree)", link)
	}
	b.dirs[link] = readOnly
	if info.IsDir() {
		return nil
	}
	own, common, ok := worktreeOf(link)
	if !ok {
		return nil
	}
	// The agent may have written HEAD. On another branch than Duet's it cannot commit.
	head, err := os.ReadFile(filepath.Join(own, "HEAD"))
	branch := strings.TrimPrefix(strings.TrimSpace(string(head)), "ref: ")
	if err != nil || !strings.HasPrefix(branch, branches+"/") || filepath.Clean(branch) != branch {
		return nil
	}
	refs := filepath.Join(common, branches)
	if err := os.MkdirAll(refs, 0o777); err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(refs); err != nil || real != refs {
		return fmt.Errorf("cannot protect %s: a link is in its place", refs)
	}
	b.dirs[common] = readOnly // it may be in a hidden directory
	b.dirs[own], b.dirs[refs] = writable, writable
	for _, name := range []string{"objects", "reftable"} {
		b.set(filepath.Join(common, name), writable)
	}
	// git appends to reflogs through links, so the agent gets files that it cannot replace.
	if err := b.makeFile(common, "logs/"+branch, writable); err != nil {
		return err
	}
	if err := b.makeFile(own, "logs/HEAD", writable); err != nil {
		return err
	}
	b.dirs[filepath.Join(own, "logs")] = readOnly
	if err := b.makeFile(own, "config.worktree", readOnly); err != nil {
		return err
	}
	for _, name := range []string{"commondir", "gitdir"} { // git finds its configuration by these
		b.dirs[filepath.Join(own, name)] = readOnly
	}
	return nil
}

// makeFile sets the access of a file of git, which it makes if it is missing.
func (b *Box) makeFile(dir, name string, a access) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if _, missing := os.Lstat(path); err == nil && missing != nil {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666); err == nil {
			f.Close()
		}
	}
	if real, missing := filepath.EvalSymlinks(path); err == nil && (missing != nil || real != path) {
		err = errors.New("a link is in its place")
	}
	if err != nil {
		return fmt.Errorf("cannot protect %s: %w", path, err)
	}
	b.dirs[path] = a
	return nil
}

// worktreeOf returns the git directory of a linked worktree and that of its repository, by the
// worktree's .git file. The link must be mutual, as git makes it: the project may have come with a
// file that leads elsewhere.
func worktreeOf(link string) (own, common string, ok bool) {
	text, err := os.ReadFile(link)
	name, isLink := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if err != nil || !isLink {
		return "", "", false
	}
	if own, err = resolved(filepath.Dir(link), name); err != nil {
		return "", "", false
	}
	back, err := os.ReadFile(filepath.Join(own, "gitdir"))
	if err != nil {
		return "", "", false
	}
	if there, err := resolved(own, strings.TrimSpace(string(back))); err != nil || there != link {
		return "", "", false
	}
	text, err = os.ReadFile(filepath.Join(own, "commondir"))
	if err != nil {
		return "", "", false
	}
	if common, err = resolved(own, strings.TrimSpace(string(text))); err != nil {
		return "", "", false
	}
	return own, common, filepath.Dir(own) == filepath.Join(common, "worktrees")
}

// resolved returns a name in a directory as an absolute path without links.
func resolved(dir, name string) (string, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return filepath.EvalSymlinks(name)
}

// Command returns the command line of a program in the sandbox. bwrap writes the ID of the sandbox's
// first process to the descriptor info, as the member child-pid of a JSON object.
func (b *Box) Command(path string, argv []string, cwd string, info int) []string {
	command := append(b.options(), "--info-fd", strconv.Itoa(info), "--chdir", cmp.Or(cwd, "/"), "--", path)
	return append(command, argv[1:]...)
}

// options returns bwrap and its options, except for the program.
func (b *Box) options() []string {
	args := append([]string{b.program}, basis(b.level)...)
	var seal []string
	for _, path := range slices.Sorted(maps.Keys(b.dirs)) { // a directory comes before what is in it
		info, err := os.Stat(path)
		if err != nil {
			continue // it was removed
		}
		switch a := b.dirs[path]; {
		case a == hidden && (b.access(filepath.Dir(path)) == hidden || path == "/dev"): // already
		case a == writable:
			args = append(args, "--bind", path, path)
		case a == readOnly:
			args = append(args, "--ro-bind", path, path)
		case !info.IsDir():
			args = append(args, "--dev-bind", "/dev/null", path)
		case path == "/tmp" || path == "/var/tmp":
			args = append(args, "--perms", "1777", "--tmpfs", path)
		default:
			args = append(args, "--tmpfs", path)
			seal = append(seal, "--remount-ro", path) // last: bwrap makes directories in it
		}
	}
	return append(args, seal...)
}

// basis returns the options that every sandbox of a level has.
func basis(level string) []string {
	args := []string{
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
		"--unshare-cgroup-try", "--new-session", "--die-with-parent", "--cap-drop", "ALL",
	}
	if level != domain.SandboxWorkspace {
		args = append(args, "--unshare-net")
	}
	return args
}

// homesOf returns the home directories of the user, without links: by the environment of the agent and
// of this process, and by the system's list of users.
func homesOf(env map[string]string) (homes []string) {
	names := []string{env["HOME"], os.Getenv("HOME")}
	if u, err := user.Current(); err == nil {
		names = append(names, u.HomeDir)
	}
	for _, name := range names {
		if !filepath.IsAbs(name) {
			continue
		}
		if home, err := filepath.EvalSymlinks(name); err == nil && home != "/" && !slices.Contains(homes, home) {
			homes = append(homes, home)
		}
	}
	return homes
}

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// ownProgram returns this program, which agents may run: duet-rpc.
func ownProgram() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return self
}
