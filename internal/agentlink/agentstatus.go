package agentlink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// This file describes agents without starting them: the installed version, and the last known
// account.

// noteMost is the maximum size of a note, in bytes.
const noteMost = 64 << 10

// Notes store what agents have reported about themselves, one file for each agent name with a
// command, for all projects. Many goroutines and processes may use them at once; of two
// simultaneous writes one wins. A note that cannot be read or written counts as missing: nothing
// depends on it. A nil *Notes has none.
type Notes struct {
	dir string
	now func() time.Time
}

// DefaultNotes returns the user's notes, $XDG_STATE_HOME/duet/agents.
func DefaultNotes(getenv func(string) string) (*Notes, error) {
	dir, err := project.StateHome(getenv)
	if err != nil {
		return nil, fmt.Errorf("finding what is known of agents: %w", err)
	}
	return NewNotes(filepath.Join(dir, "agents")), nil
}

// NewNotes returns the notes in a directory, which is created on demand.
func NewNotes(dir string) *Notes { return &Notes{dir: dir, now: time.Now} }

// A note is a file of [Notes].
type note struct {
	Agent   string       `json:"agent"`
	Command []string     `json:"command"` // with the path of its program, if found
	Version *versionNote `json:"version,omitempty"`
	SignIn  *signInNote  `json:"sign_in,omitempty"`
}

// A versionNote is the version of a program, valid while the file is the same.
type versionNote struct {
	Version string `json:"version"` // "": it does not report one
	Stamp   stamp  `json:"stamp"`
}

// A signInNote is the last known sign-in state.
type signInNote struct {
	State   string    `json:"state"`
	Account string    `json:"account,omitempty"`
	At      time.Time `json:"at"`
}

// A stamp identifies a version of a file.
type stamp struct {
	Path     string    `json:"path"`
	Modified time.Time `json:"modified"`
	Size     int64     `json:"size"`
}

// stampOf returns the stamp of a program, with links followed.
func stampOf(program string) (stamp, bool) {
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return stamp{}, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, false
	}
	return stamp{path, info.ModTime().UTC(), info.Size()}, true
}

// Checked stores the report of an agent.
func (n *Notes) Checked(name string, command []string, r domain.AgentReport) {
	n.change(name, command, func(t *note) {
		t.SignIn = &signInNote{r.SignedIn, r.Account, n.now().UTC()}
		if made, ok := stampOf(command[0]); ok && r.Version != "" {
			t.Version = &versionNote{r.Version, made}
		}
	})
}

// Turn stores the sign-in state that the end of a turn shows: the agent has answered, or
// requires a sign-in.
func (n *Notes) Turn(name string, command []string, answered bool) {
	n.change(name, command, func(t *note) {
		state, account := domain.SignedOut, ""
		if answered {
			state = domain.SignInAnswered
			if was := t.SignIn; was != nil && (was.State == domain.SignedIn || was.State == domain.SignInNotNeeded) {
				state, account = was.State, was.Account
			}
		}
		t.SignIn = &signInNote{state, account, n.now().UTC()}
	})
}

// Authenticated records that the user has signed in.
func (n *Notes) Authenticated(name string, command []string) {
	n.change(name, command, func(t *note) { t.SignIn = &signInNote{State: domain.SignedIn, At: n.now().UTC()} })
}

// SignedOut records that an agent has signed its user out.
func (n *Notes) SignedOut(name string, command []string) { n.Turn(name, command, false) }

// change changes the note of an agent.
func (n *Notes) change(name string, command []string, change func(*note)) {
	if n == nil || len(command) == 0 {
		return
	}
	t := n.read(name, command)
	change(&t)
	text, err := json.Marshal(t)
	if err == nil && os.MkdirAll(n.dir, 0o700) == nil && project.CheckPrivate(n.dir) == nil {
		_ = n.write(n.path(name, command), text)
	}
}

func (n *Notes) write(path string, text []byte) error {
	f, err := os.CreateTemp(n.dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// read returns the note of an agent; an empty one if there is none.
func (n *Notes) read(name string, command []string) note {
	none := note{Agent: name, Command: command}
	if n == nil || len(command) == 0 || project.CheckPrivate(n.dir) != nil {
		return none
	}
	path := n.path(name, command)
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeType != 0 || info.Size() > noteMost {
		return none
	}
	text, err := os.ReadFile(path)
	var t note
	if err != nil || json.Unmarshal(text, &t) != nil || t.Agent != name {
		return none
	}
	t.Command = command
	return t
}

func (n *Notes) path(name string, command []string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + strings.Join(command, "\x00")))
	return filepath.Join(n.dir, hex.EncodeToString(sum[:16])+".json")
}

// DescribeOptions are the options of [Describe].
type DescribeOptions struct {
	Notes   *Notes
	Version string // of this program, and so of its built-in agent
	Getenv  func(string) string
	// Run allows running the program of a built-in agent with --version, if no other source has
	// its version: for a few seconds at most, and once for each file.
	Run bool
}

// Describe describes every agent of a configuration, in the order of [config.Config.List]. It is
// fast, except with DescribeOptions.Run.
func Describe(ctx context.Context, c *config.Config, o DescribeOptions) []domain.Agent {
	const atOnce = 4
	room := make(chan struct{}, atOnce)
	described, agents := c.Describe(), c.List()
	list := make([]domain.Agent, len(agents))
	var work sync.WaitGroup
	for i, a := range agents {
		list[i].ConfiguredAgent = described[i]
		if !a.Available || !a.Trusted || a.Driver != config.DriverACP {
			continue
		}
		work.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			list[i].AgentStatus = o.look(ctx, c, a)
		})
	}
	work.Wait()
	return list
}

// look returns the status of an agent that speaks the protocol.
func (o DescribeOptions) look(ctx context.Context, c *config.Config, a config.Agent) domain.AgentStatus {
	if a.IsDemo() {
		return domain.AgentStatus{Version: o.Version, SignedIn: domain.SignInNotNeeded}
	}
	s := domain.AgentStatus{Version: versionOf(ctx, a, o.Notes, o.Run), SignedIn: domain.SignInUnknown}
	login := a.LoginFile(o.Getenv)
	changed, there := modified(login)
	if signIn := o.Notes.read(
		a.Name, a.StartCommand(),
	).SignIn; signIn != nil && (signIn.State != domain.SignedOut || !changed.After(signIn.At)) {
		s.SignedIn, s.Account, s.ToldAt = signIn.State, signIn.Account, &signIn.At
		return s
	}
	switch keys := c.KeysAtHand(a, o.Getenv); {
	case len(keys) > 0:
		s.Hint = "it is given " + strings.Join(keys, ", ")
	case there:
		s.Hint = "it has a login in " + (project.Project{}).ShortenPaths(login)
	}
	return s
}

const (
	packageMost = 1 << 20         // bytes of a package.json
	packageUp   = 5               // directories above a program in which to look for it
	printedMost = 4 << 10         // bytes of --version output
	versionTime = 5 * time.Second // for --version; the result is stored, so it runs once for each file
)

var (
	versionText   = lazyregexp.New(`(?:^|[\s/v(@])(\d+\.\d+[0-9A-Za-z.+-]*)`)
	pinnedVersion = lazyregexp.New(`^(?:@[^/@\s]+/)?[^/@\s]+(?:@|==)(\d[0-9A-Za-z.+-]*)$`)
)

// versionOf returns the version of an agent's program, without starting the agent. Its sources
// are the package, the command, the last report, and for a built-in agent the output of
// --version.
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

// programOf returns the file that a command runs, or the version of the package that it names;
// both empty if unknown.
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

// packageVersion returns the version in the package.json of a program's package, or "".
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

// versionIn returns the version of the package in a directory; found reports that there is one.
// The version is empty if the program does not belong to the package.
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
	if !installed && !slices.ContainsFunc(programsOf(described.Bin), func(bin string) bool {
		return filepath.Join(
			dir, filepath.FromSlash(bin),
		) == program
	}) {
		return "", true
	}
	return firstLine(described.Version), true
}

// programsOf returns the programs in a package.json's member bin, a path or an object of paths.
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

// printedVersion returns the version that an agent's program prints for --version. asked reports
// that the program ended by itself, so that another try is useless.
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
	p, err := runner.Start(process.Spec{
		Path: a.Path, Argv: []string{a.Path, "--version"}, CWD: dir, Env: process.NewEnvironment(a.Variables(nil, os.Getenv)),
	})
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

// firstLine returns the beginning of a third-party text.
func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.ToValidUTF8(text, "\uFFFD"), "\n")
	return text[:min(len(text), 100)]
}

// modified returns the modification time of a file, and whether it exists.
func modified(name string) (time.Time, bool) {
	info, err := os.Stat(name)
	if err != nil || info.Mode()&fs.ModeType != 0 || info.Size() == 0 {
		return time.Time{}, false
	}
	return info.ModTime(), true
}
