//go:build linux && soak

package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/procenv"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// soon limits each wait for the program, also on a slow machine.
const soon = 20 * time.Second

// A machine is a directory with a home and a project, whose disk is recorded and cut.
type machine struct {
	t                         *testing.T
	top, project, home, state string
	trust                     *config.Store
	said                      *bytes.Buffer // by the last daemon
}

func machineAt(t *testing.T, top string) *machine {
	m := &machine{t: t, top: top, project: filepath.Join(top, "project"), home: filepath.Join(top, "home")}
	for _, dir := range []string{m.project, filepath.Join(m.home, "config", "duet"), filepath.Join(m.home, "state")} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	var err error
	m.state, err = project.StateDirOf(func(name string) string {
		return map[string]string{"XDG_STATE_HOME": filepath.Join(m.home, "state")}[name]
	}, m.project)
	require.NoError(t, err)
	m.trust = config.NewTrust(filepath.Join(m.home, "state", "duet", "trusted.json"))
	t.Cleanup(m.killAll)
	return m
}

// newMachine returns a machine with a project that is a git repository.
func newMachine(t *testing.T, top string) *machine {
	m := machineAt(t, top)
	require.NoError(t, os.WriteFile(filepath.Join(m.project, "demo.txt"), []byte("the user's\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(m.project, "other.txt"), []byte(strings.Repeat("other\n", 2000)), 0o600))
	m.git("init", "-q", "-b", "main")
	m.git("config", "user.name", "u")
	m.git("config", "user.email", "u@example.com")
	m.git("add", ".")
	m.git("commit", "-q", "-m", "one")
	require.NoError(t, os.WriteFile(filepath.Join(m.project, "other.txt"), []byte("stashed\n"), 0o600))
	m.git("stash", "-q")
	require.NoError(t, os.WriteFile(filepath.Join(m.project, "staged.txt"), []byte("staged\n"), 0o600))
	m.git("add", "staged.txt")
	m.git("branch", "other")
	return m
}

func (m *machine) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "DUET_") || strings.HasPrefix(entry, "XDG_") || strings.HasPrefix(entry, "GIT_")
	})
	return append(env, "HOME="+m.home, "XDG_CONFIG_HOME="+filepath.Join(m.home, "config"), "XDG_STATE_HOME="+filepath.Join(m.home, "state"),
		"GIT_CONFIG_NOSYSTEM=1")
}

// command returns a command in the project.
func (m *machine) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = m.project, m.environment()
	return cmd
}

func (m *machine) git(args ...string) string {
	m.t.Helper()
	out, err := m.command("git", args...).CombinedOutput()
	require.NoError(m.t, err, "git %q: %s", args, out)
	return string(out)
}

// configure writes the user's configuration, with an agent that is a command.
func (m *machine) configure(command ...string) {
	text := fmt.Sprintf("default_agent = \"player\"\n[agents.player]\ndriver = \"acp\"\ncommand = [%s]\n", `"`+strings.Join(command, `", "`)+`"`)
	require.NoError(m.t, os.WriteFile(filepath.Join(m.home, "config", "duet", "config.toml"), []byte(text), 0o600))
}

// start starts a daemon, under prefix if there is one, and returns it with a connection.
func (m *machine) start(ctx context.Context, prefix []string, opts ...client.Option) (*exec.Cmd, *client.Client, error) {
	args := slices.Concat(prefix, []string{program, "daemon", "start", "--foreground", "--log-level", "debug"})
	cmd := m.command(args[0], args[1:]...)
	said := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr, m.said = said, said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	for {
		if path, err := socket.Find(m.state); err == nil && path != "" {
			opts := append([]client.Option{client.WithReconnect(false), client.WithFraming(frame.LSP), client.WithCallTimeout(soon)}, opts...)
			if c, err := client.Dial(ctx, client.Socket(path), opts...); err == nil {
				return cmd, c, nil
			}
		}
		select {
		case err := <-ended:
			return nil, nil, fmt.Errorf("the daemon ends at once: %v: %s", err, said.Bytes())
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("the daemon does not answer: %s", said.Bytes())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// killAll kills all processes of the machine.
func (m *machine) killAll() {
	home := "HOME=" + m.home
	for {
		pids := procenv.Find(func(variable string) bool { return variable == home })
		pids = slices.DeleteFunc(pids, func(pid int) bool { return syscall.Kill(pid, syscall.SIGKILL) != nil || isZombie(pid) })
		if len(pids) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func isZombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err != nil || len(text) == 0
}

// A promise is a part of the world that a client knows from a response: it is so in each state after
// the response, until the step begins that takes the promise back.
type promise struct {
	Key, Want   string
	From, Until int      // lines of the recording
	Or          []string `json:",omitempty"` // what other clients write at the same time
}

// A view is what a user sees of the project at the end of a step, when all is durable.
type view struct {
	Line  int
	World world // files and references
}

// A step is an action of a user.
type step struct {
	Name    string
	Agent   bool // the agent changes files, too
	End     int  // a line of the recording
	marked  []byte
	answers []answered
	taken   []*promise // promises that this step takes back
	view    view
}

// An answered is a response with the promises that it makes.
type answered struct {
	response []byte
	promises []*promise
}

// A recording is a day of the daemon: what it wrote, and what it promised. Its directory has all that
// is needed to judge it again: the files before the day in "before", "trace" and "recording.json".
type recording struct {
	Name     string
	Top      string // the directory that was recorded
	Moves    bool   // the project is moved
	Lines    int
	Promises []*promise
	Views    []view
	Steps    []step

	m          *machine
	dir        string
	disk       *disk
	sentEvents []received // see events
	c          *client.Client
	last       []byte   // the last response
	shell      *os.File // gets commands that are recorded, too
	commands   int
}

// take remembers the responses: with it the line of each is found in the recording.
func (r *recording) take(sent bool, message []byte) {
	var m struct{ Method string }
	if !sent && json.Unmarshal(message, &m) == nil && m.Method == "" {
		r.last = bytes.Clone(message)
	}
}

type object = map[string]any

// call makes a call that must succeed, and returns the promises that hold from its response on: parts
// of the world, each with its value.
func (r *recording) call(method string, params object, into any) {
	r.m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	err := r.c.Call(ctx, method, params, into)
	require.NoError(r.m.t, err, "%s %v", method, params)
	s := &r.Steps[len(r.Steps)-1]
	s.answers = append(s.answers, answered{response: r.last})
}

// promise says what the last response promises.
func (r *recording) promise(key, want string) *promise {
	s := &r.Steps[len(r.Steps)-1]
	a, p := &s.answers[len(s.answers)-1], &promise{Key: key, Want: want}
	a.promises = append(a.promises, p)
	return p
}

// promiseNow says that the last response promises a part of the world as it is now.
func (r *recording) promiseNow(keys ...string) (list []*promise) {
	now := r.m.look()
	for _, key := range keys {
		list = append(list, r.promise(key, now[key]))
	}
	return list
}

// step does what a user does next. afterwards all is durable: the kernel has had the time.
func (r *recording) step(name string, do func()) {
	r.m.t.Helper()
	r.Steps = append(r.Steps, step{Name: name, Agent: strings.HasPrefix(name, "agent")})
	do()
	s := &r.Steps[len(r.Steps)-1]
	s.view = view{World: r.m.look()}
	r.call("echo", object{"message": fmt.Sprintf("the end of %d: %s", len(r.Steps), name)}, nil)
	s.marked = r.last
}

// takesBack says that the present step takes promises back.
func (r *recording) takesBack(list ...*promise) {
	s := &r.Steps[len(r.Steps)-1]
	s.taken = append(s.taken, list...)
}

// look reads the files and the references of the project. Those of checkpoints are not a user's.
func (m *machine) look() world {
	w := make(world)
	for line := range strings.Lines(m.git("for-each-ref", "--format=%(refname) %(objectname)")) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		if checkpointRef.MatchString(name) {
			continue
		}
		w["ref "+name] = id
	}
	w["ref HEAD"] = strings.TrimSpace(m.git("symbolic-ref", "HEAD"))
	w["ref index"] = m.git("ls-files", "-s")
	list, err := os.ReadDir(m.project)
	require.NoError(m.t, err)
	for _, e := range list {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".duet-") { // a file that was about to replace another one
			text, err := os.ReadFile(filepath.Join(m.project, e.Name()))
			require.NoError(m.t, err)
			w["file "+e.Name()] = string(text)
		}
	}
	return w
}

var checkpointRef = regexp.MustCompile(`^refs/duet/[^/]*/[0-9]+$`)

// begin begins a recording into dir. Earlier promises still hold.
func (m *machine) begin(dir, name string, earlier []*promise) *recording {
	t := m.t
	r := &recording{Name: name, Top: m.top, m: m, dir: dir}
	for _, p := range earlier {
		if p.Until == never && !strings.HasPrefix(p.Key, "file ") { // in the next steps the agent works again
			r.Promises = append(r.Promises, &promise{Key: p.Key, Want: p.Want, Until: never, Or: p.Or})
		}
	}
	before, err := readDisk(m.top, m.top)
	require.NoError(t, err)
	require.NoError(t, write(before.cut(0, none, nil).files(), filepath.Join(dir, "before")))
	r.Views = []view{{World: m.look()}}
	return r
}

// strace is the beginning of a command whose system calls are recorded.
func (r *recording) strace() []string {
	return append(append([]string{"strace"}, straceFlags(filepath.Join(r.dir, "trace"))...), "--")
}

// finish reads what was recorded.
func (r *recording) finish() *recording {
	t := r.m.t
	r.m.killAll()
	require.NoError(t, r.readDisk())
	r.place()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "recording.json"), text, 0o600))
	r.settle()
	r.requireSame()
	return r
}

// runsBeside is a shell script that runs its arguments and, beside them, each line of the file $0.
const runsBeside = `"$@" & while read -r line; do eval "$line" & done <"$0"; wait`

// record records steps with a daemon.
func (m *machine) record(dir, name string, earlier []*promise, steps func(*recording)) *recording {
	r := m.begin(dir, name, earlier)
	var cmd *exec.Cmd
	var err error
	r.shell = r.pipe("commands")
	prefix := append(r.strace(), "sh", "-c", runsBeside, r.shell.Name())
	cmd, r.c, err = m.start(context.Background(), prefix, client.WithTrace(r.take))
	require.NoError(m.t, err)
	steps(r)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	_ = r.c.Call(ctx, "daemon.stop", nil, nil)
	r.c.Close()
	r.shell.Close()
	for syscall.Kill(-cmd.Process.Pid, 0) == nil {
		time.Sleep(10 * time.Millisecond)
	}
	return r.finish()
}

// recordMove records a user who moves the project.
func (m *machine) recordMove(dir string, earlier []*promise) *recording {
	r := m.begin(dir, "move", earlier)
	r.Moves = true
	args := append(r.strace(), "sh", "-c", "mv project moved && cd moved && "+program+" projects move ../project .")
	cmd := m.command(args[0], args[1:]...)
	cmd.Dir = m.top
	out, err := cmd.CombinedOutput()
	require.NoError(m.t, err, "%s", out)
	return r.finish()
}

// locate finds the project, which a power cut may have left in its old place, and its state.
func (m *machine) locate() error {
	m.project = filepath.Join(m.top, "project")
	if _, err := os.Stat(m.project); err != nil {
		m.project = filepath.Join(m.top, "moved")
	}
	out, err := m.command(program, "paths", "--json").Output()
	if err != nil {
		return fmt.Errorf("duet-rpc paths: %w", err)
	}
	var paths struct{ State string }
	err = json.Unmarshal(out, &paths)
	m.state = paths.State
	return err
}

// load reads a recording that was kept.
func load(t *testing.T, dir string) *recording {
	r := &recording{dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, "recording.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, r))
	require.NoError(t, os.MkdirAll(r.Top, 0o700))
	r.m = machineAt(t, r.Top)
	require.NoError(t, r.readDisk())
	r.settle()
	return r
}

// readDisk reads the trace.
func (r *recording) readDisk() (err error) {
	if r.disk, err = readDisk(filepath.Join(r.dir, "before"), r.Top); err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(r.dir, "trace"))
	if err != nil {
		return err
	}
	defer file.Close()
	list, lines, err := readTrace(file, 1)
	if err != nil {
		return err
	}
	r.Lines = lines
	r.disk.cwd[list[0].pid] = r.m.project
	if r.Moves {
		r.disk.cwd[list[0].pid] = r.Top
	}
	r.disk.add(list)
	if len(r.disk.kept) > 0 {
		err = fmt.Errorf("calls that the model of the disk does not know: %q", r.disk.kept)
	}
	return err
}

// place finds the lines of the steps and the promises.
func (r *recording) place() {
	at := 0 // the first message of the step
	find := func(response []byte) (index, line int) {
		for i, message := range r.disk.sent[at:] {
			if bytes.Contains(message.data, response[:min(len(response), 120)]) {
				return at + i, message.began
			}
		}
		require.Fail(r.m.t, "a response is not in the recording", "%.200s", response)
		return 0, 0
	}
	began := 0
	for i := range r.Steps {
		s := &r.Steps[i]
		for _, p := range s.taken {
			p.Until = began
		}
		for _, a := range s.answers {
			_, line := find(a.response)
			for _, p := range a.promises {
				p.From, p.Until = line, never
				r.Promises = append(r.Promises, p)
			}
		}
		at, s.End = find(s.marked)
		began, s.view.Line = s.End, s.End
		r.Views = append(r.Views, s.view)
	}
}

// settle makes all durable at the end of each step.
func (r *recording) settle() {
	for _, s := range r.Steps {
		r.disk.syncs = append(r.disk.syncs, sync{s.End, s.End, nil, "time"})
	}
	r.disk.settle()
}

// requireSame requires that the model of the disk has the same files as the disk. A recording of
// which a part is missing would judge nothing.
func (r *recording) requireSame() {
	t := r.m.t
	real, err := readDisk(r.m.top, r.m.top)
	require.NoError(t, err)
	want := real.cut(0, none, nil).files()
	got := r.disk.cut(never, none, nil).files()
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	for path, f := range want {
		require.True(t, bytes.Equal(f.content, got[path].content), "%s has %d bytes on the disk and %d in the model, which differ from byte %d on",
			path, len(f.content), len(got[path].content), firstDifference(f.content, got[path].content))
	}
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
