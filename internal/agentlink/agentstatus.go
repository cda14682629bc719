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
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// This file tells what is known of agents without starting them: which
// version is installed, and who was signed in when an agent told that last.

// noteMost is the most that is read of a note, in bytes.
const noteMost = 64 << 10

// Notes are what agents have told of themselves last, a file for each: an agent of a
// name with a command, whatever project it was asked in. Many goroutines and processes
// may use them at once; of two that write at the same time one counts. Notes that
// cannot be read or kept are none: nothing depends on them. A nil *Notes has none.
type Notes struct {
	dir string
	now func() time.Time
}

// DefaultNotes are the user's, $XDG_STATE_HOME/duet/agents.
func DefaultNotes(getenv func(string) string) (*Notes, error) {
	dir, err := project.StateHome(getenv)
	if err != nil {
		return nil, fmt.Errorf("finding what is known of agents: %w", err)
	}
	return NewNotes(filepath.Join(dir, "agents")), nil
}

// NewNotes are those in a directory, which is made when it is needed.
func NewNotes(dir string) *Notes { return &Notes{dir: dir, now: time.Now} }

// A note is a file of [Notes].
type note struct {
	Agent   string       `json:"agent"`
	Command []string     `json:"command"` // with its program where it was found
	Version *versionNote `json:"version,omitempty"`
	SignIn  *signInNote  `json:"sign_in,omitempty"`
}

// A versionNote is the version of a program, as long as it is the same file.
type versionNote struct {
	Version string `json:"version"` // "": it does not tell
	Stamp   stamp  `json:"stamp"`
}

// A signInNote is what was told of who is signed in.
type signInNote struct {
	State   string    `json:"state"`
	Account string    `json:"account,omitempty"`
	At      time.Time `json:"at"`
}

// A stamp tells a file from one that has come into its place.
type stamp struct {
	Path     string    `json:"path"`
	Modified time.Time `json:"modified"`
	Size     int64     `json:"size"`
}

// stampOf is the stamp of a program, behind links.
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

// Checked notes what an agent that was asked about itself has told.
func (n *Notes) Checked(name string, command []string, r Report) {
	n.change(name, command, func(t *note) {
		t.SignIn = &signInNote{r.SignedIn, r.Account, n.now().UTC()}
		if made, ok := stampOf(command[0]); ok && r.Version != "" {
			t.Version = &versionNote{r.Version, made}
		}
	})
}

// Turn notes what the end of a turn tells of who is signed in: it has answered, or
// wants somebody to sign in.
func (n *Notes) Turn(name string, command []string, answered bool) {
	n.change(name, command, func(t *note) {
		state, account := SignedOut, ""
		if answered {
			state = Answered
			if was := t.SignIn; was != nil && (was.State == SignedIn || was.State == NotNeeded) {
				state, account = was.State, was.Account
			}
		}
		t.SignIn = &signInNote{state, account, n.now().UTC()}
	})
}

// Authenticated notes that somebody has signed in.
func (n *Notes) Authenticated(name string, command []string) {
	n.change(name, command, func(t *note) { t.SignIn = &signInNote{State: SignedIn, At: n.now().UTC()} })
}

// SignedOut notes that an agent has signed its user out.
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

// read is the note of an agent; an empty one where nothing was told.
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

// Values of [Status.SignedIn] beside those of [Report.SignedIn].
const (
	// Answered says that it has answered a prompt, which it might not have without.
	Answered = "answered"
	// Unknown says that it has told nothing yet, or not since its login was changed.
	Unknown = "unknown"
)

// A Status is what is known of an agent.
type Status struct {
	Version  string     `json:"version,omitempty" doc:"Of its program, or of the adapter through which it is spoken with; absent: not known without starting it."`
	SignedIn string     `json:"signed_in,omitempty" doc:"What it told last: yes, no, not_needed, opens_sessions (as of agent.check), answered: it has answered a prompt; or unknown: agent.check asks it. Absent: it cannot be asked."`
	Account  string     `json:"account,omitempty" doc:"As whom, in its words; or why not."`
	ToldAt   *time.Time `json:"signed_in_at,omitempty" doc:"When it told that."`
	Hint     string     `json:"signed_in_hint,omitempty" doc:"Where that is not known: what speaks for that somebody is signed in, in words."`
}

// An Agent is one with what is known of it.
type Agent struct {
	config.Description
	Status
}

// DescribeOptions say how agents are looked at.
type DescribeOptions struct {
	Notes   *Notes
	Version string // of this program, which is that of its own agent
	Getenv  func(string) string
	// Run lets the program of a built-in agent be run with --version, where nothing else
	// tells it: for two seconds at the most, and once for each file.
	Run bool
}

// Describe describes every agent of a configuration, in the order of
// [config.Config.List]. It takes no time to speak of, but for Options.Run.
func Describe(ctx context.Context, c *config.Config, o DescribeOptions) []Agent {
	const atOnce = 4
	room := make(chan struct{}, atOnce)
	described, agents := c.Describe(), c.List()
	list := make([]Agent, len(agents))
	var work sync.WaitGroup
	for i, a := range agents {
		list[i].Description = described[i]
		if !a.Available || !a.Trusted || a.Driver != config.DriverACP {
			continue
		}
		work.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			list[i].Status = o.look(ctx, c, a)
		})
	}
	work.Wait()
	return list
}

// look is what is known of an agent that can be asked.
func (o DescribeOptions) look(ctx context.Context, c *config.Config, a config.Agent) Status {
	if a.IsDemo() {
		return Status{Version: o.Version, SignedIn: NotNeeded}
	}
	s := Status{Version: versionOf(ctx, a, o.Notes, o.Run), SignedIn: Unknown}
	login := a.LoginFile(o.Getenv)
	changed, there := modified(login)
	if told := o.Notes.read(a.Name, a.StartCommand()).SignIn; told != nil && (told.State != SignedOut || !changed.After(told.At)) {
		s.SignedIn, s.Account, s.ToldAt = told.State, told.Account, &told.At
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
