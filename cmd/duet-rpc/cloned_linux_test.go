package main_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// clonedEnd bounds the program's end in a repository of another author, once it
	// was asked to end.
	clonedEnd = watchdog / 3
	// clonedTime bounds a command that ends by itself.
	clonedTime = watchdog / 3
	// clonedMemory is the most that the program may have in memory there.
	clonedMemory = 150 << 20
)

// A clone is a third-party repository that this user has just
// cloned. Nothing of it may ever run.
type clone struct {
	*site
	outside  string // a directory of the user, beside the repository
	tripwire string // a program that notes that it was started
	fired    string // where it notes it
	ran      string // where the user's own agent notes what it was asked
	path     string // of the programs' PATH, what stands first
	cwd      string // where the program is started; empty: the root
	check    []func(t *testing.T)
}

// newClone makes an empty repository of a user with two agents: mine, which
// notes its prompts, and unsafe, a command that asks no permission and that this user
// would never take unasked.
func newClone(t *testing.T) *clone {
	s := newSite(t)
	dir := filepath.Dir(s.root)
	c := &clone{
		site: s, outside: filepath.Join(dir, "outside"), tripwire: filepath.Join(dir, "tripwire"),
		fired: filepath.Join(dir, "fired"), ran: filepath.Join(dir, "ran"),
	}
	require.NoError(t, os.Mkdir(c.outside, 0o700))
	c.program(c.tripwire)
	text := fmt.Sprintf(`default_agent = "mine"
[agents.mine]
driver = "command"
command = ["/bin/sh", "-c", 'echo "$0" >>%s; echo done', "{prompt}"]
[agents.unsafe]
driver = "command"
command = [%q, "{prompt}"]
`, c.ran, c.tripwire)
	require.NoError(t, os.WriteFile(filepath.Join(s.home, "config", "duet", "config.toml"), []byte(text), 0o600))
	return c
}

// program writes one that notes that it was started, and by what name.
func (c *clone) program(path string) {
	c.t.Helper()
	require.NoError(c.t, os.MkdirAll(filepath.Dir(path), 0o755))
	script := fmt.Sprintf("#!/bin/sh\necho \"$0 $*\" >>%s\n", c.fired)
	testkit.Program(c.t, path, script)
}

// file writes a file of the repository.
func (c *clone) file(name, content string) {
	c.t.Helper()
	path := filepath.Join(c.root, name)
	require.NoError(c.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(c.t, os.WriteFile(path, []byte(content), 0o644))
}

// state is where the repository has what an earlier version of the program would have taken
// for its state.
func (c *clone) state() string    { return filepath.Join(c.root, ".duet") }
func (c *clone) database() string { return filepath.Join(c.state(), "duet.db") }

// then adds something to be looked at when the program has ended.
func (c *clone) then(check func(t *testing.T)) { c.check = append(c.check, check) }

// requireHarmless looks at what became of it all.
func (c *clone) requireHarmless(t *testing.T) {
	t.Helper()
	fired, err := os.ReadFile(c.fired)
	assert.ErrorIs(t, err, os.ErrNotExist, "something of the repository ran: %s", fired)
	ran, _ := os.ReadFile(c.ran)
	for line := range strings.Lines(string(ran)) {
		assert.Equal(t, "hello\n", line, "the user's agent was asked what the user did not ask")
	}
	for _, check := range c.check {
		check(t)
	}
}

// A visited is what a program that was started there left.
type visited struct {
	out, problem string
	memory       int // the most, in bytes
	timely       bool
}

// enter starts the program in the repository. talk speaks with it, and returns
// when the program has been asked to end; nil: it is not asked, and has
// its time to come to an end.
func (c *clone) enter(t *testing.T, talk func(in io.Writer, out *testkit.Text, process *os.Process), args ...string) visited {
	t.Helper()
	binary, err := fastProgram()
	require.NoError(t, err)
	ctx, kill := context.WithTimeout(context.Background(), 3*clonedTime)
	defer kill()
	// Bounded, so that a test that fails does not take the machine's memory.
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `ulimit -v 4000000; exec "$0" "$@"`, binary}, args...)...)
	if cmd.Dir = c.cwd; cmd.Dir == "" {
		cmd.Dir = c.root
	}
	l := c.launch()
	cmd.Env = append(cleanEnvironment(), l.env...) // no --root: it is found as editors have it found
	if c.path != "" {
		cmd.Env = append(cmd.Env, "PATH="+c.path+":"+os.Getenv("PATH"))
	}
	out, problem := &testkit.Text{}, &testkit.Text{}
	cmd.Stdout, cmd.Stderr = out, problem
	cmd.WaitDelay = time.Second
	var in io.WriteCloser
	if talk != nil {
		in, err = cmd.StdinPipe()
		require.NoError(t, err)
	}
	require.NoError(t, cmd.Start())
	memory := watchMemory(cmd.Process.Pid)
	within := clonedTime
	if talk != nil {
		talk(in, out, cmd.Process)
		within = clonedEnd
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	e := visited{timely: true}
	select {
	case <-done:
	case <-time.After(within):
		e.timely = false
		_ = cmd.Process.Kill()
		<-done
	}
	e.out, e.problem = out.String(), problem.String()
	e.memory = int(memory())
	return e
}

// requireCivil requires that the program ended in time and without much memory.
func (e visited) requireCivil(t *testing.T) {
	t.Helper()
	assert.True(t, e.timely, "it does not end: %.2000s", e.problem)
	assert.Less(t, e.memory, clonedMemory, "it took %d MB", e.memory>>20)
	assert.NotContains(t, e.problem, "goroutine ", "it panics")
}

// awaitReply waits for the reply with an id, but no longer than the program has.
func awaitReply(t *testing.T, out *testkit.Text, id string) bool {
	return assert.Eventually(t, func() bool { return strings.Contains(out.String(), `"id":`+id) }, clonedTime, pollEvery, "no reply to request %s: %.2000s", id, out)
}

// moment is how long something that starts by itself is waited for.
const moment = 300 * time.Millisecond

// speak sends requests, waits for their replies and for what might start by
// itself then, and has the program end.
func speak(t *testing.T, end func(io.Writer, *os.Process), messages ...string) func(io.Writer, *testkit.Text, *os.Process) {
	return func(in io.Writer, out *testkit.Text, process *os.Process) {
		for i, message := range messages {
			_, err := io.WriteString(in, framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, i+1, message)))
			assert.NoError(t, err)
			if i == 0 {
				awaitReply(t, out, "1") // whatever else there is: this needs nothing
			}
		}
		for i := range messages {
			if !awaitReply(t, out, fmt.Sprint(i+1)) {
				break
			}
		}
		time.Sleep(moment) // machine: nothing tells that nothing starts
		end(in, process)
	}
}

func closeInput(in io.Writer, _ *os.Process) { _ = in.(io.Closer).Close() }
func terminate(_ io.Writer, p *os.Process)   { _ = p.Signal(syscall.SIGTERM) }
func method(name, params string) string      { return fmt.Sprintf(`"method":%q,"params":%s`, name, params) }

func command(args ...string) func(*testing.T, *clone) {
	return func(t *testing.T, c *clone) { c.enter(t, nil, args...).requireCivil(t) }
}

// entries are the ways into a repository.
var entries = []struct {
	name  string
	enter func(*testing.T, *clone)
}{
	{"an editor that greets", func(t *testing.T, c *clone) {
		c.enter(t, speak(t, closeInput, method("ping", "{}"), method("task.stats", "{}"), method("fetchApprovals", "{}"))).requireCivil(t)
	}},
	{"an editor without trust", func(t *testing.T, c *clone) {
		c.enter(t, speak(t, closeInput, method("initialize", `{"workspaceTrusted":false,"clientInfo":{"name":"test"}}`), method("task.stats", "{}"), method("launchSession", `{"query":"hello"}`))).requireCivil(t)
	}},
	{"an editor that is ended by a signal", func(t *testing.T, c *clone) {
		c.enter(t, func(in io.Writer, out *testkit.Text, process *os.Process) {
			_, _ = io.WriteString(in, framed(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)+framed(`{"jsonrpc":"2.0","id":2,"method":"task.stats"}`))
			awaitReply(t, out, "1")
			terminate(in, process)
		}).requireCivil(t)
	}},
	{"prompt", command("prompt", "hello")},
	{"doctor", command("doctor")},
	{"session list", command("session", "list")},
	{"agents", command("agents")},
	{"trust, shown", command("trust", "--show")},
	{"daemon", func(t *testing.T, c *clone) {
		c.enter(t, nil, "daemon", "start").requireCivil(t)
		time.Sleep(moment) // machine: nothing tells that nothing starts
		c.enter(t, nil, "daemon", "stop", "--force").requireCivil(t)
	}},
}

// fullyTried are the tricks that TestAClonedRepositoryDoesNothing meets by every entry: one
// of each kind, settings, a database, a file of the state directory and programs.
var fullyTried = []string{"agents, keys and rules", "a database with an answer", "a socket that is elsewhere", "programs with known names"}

// A repository that was cloned does nothing by itself, whatever is in it and
// however one comes in; nothing of it makes the program hang, or large. An editor meets
// every trick, and every other entry meets four; `make soak` tries each with each.
func TestAClonedRepositoryDoesNothing(t *testing.T) {
	t.Parallel()
	var names []string
	for _, trick := range tricks {
		names = append(names, trick.name)
		tried := entries
		if !soak && !slices.Contains(fullyTried, trick.name) {
			tried = entries[:1]
		}
		t.Run(trick.name, func(t *testing.T) {
			t.Parallel()
			for _, entry := range tried {
				t.Run(entry.name, func(t *testing.T) {
					c := newClone(t)
					trick.lay(t, c)
					t.Cleanup(c.endAll)
					entry.enter(t, c)
					c.requireHarmless(t)
				})
			}
		})
	}
	require.Subset(t, names, fullyTried)
}

// endAll ends what a test that failed has left.
func (c *clone) endAll() {
	for _, r := range c.running() {
		_ = syscall.Kill(r.pid, syscall.SIGKILL)
	}
}

// A planted rule answers nothing: what an agent of this user asks is asked.
func TestAPlantedRuleAnswersNothing(t *testing.T) {
	t.Parallel()
	for _, trick := range tricks {
		if !trick.rules {
			continue
		}
		t.Run(trick.name, func(t *testing.T) {
			t.Parallel()
			c := newClone(t)
			trick.lay(t, c)
			t.Cleanup(c.endAll)
			e := c.enter(t, func(in io.Writer, out *testkit.Text, process *os.Process) {
				for _, message := range []string{
					`{"jsonrpc":"2.0","id":1,"method":"Subscribe","params":{"since":0}}`,
					`{"jsonrpc":"2.0","id":2,"method":"launchSession","params":{"query":"permit:1","agent":"demo"}}`,
				} {
					_, _ = io.WriteString(in, framed(message))
				}
				assert.Eventually(t, func() bool {
					return slices.ContainsFunc([]string{`"new_approval"`, `"completed"`, `"id":2,"error"`}, func(s string) bool { return strings.Contains(out.String(), s) })
				}, clonedTime, pollEvery, "nothing comes of it: %.2000s", out)
				closeInput(in, process)
			})
			e.requireCivil(t)
			assert.NotContains(t, e.out, `"completed"`, "no question was asked")
			c.requireHarmless(t)
		})
	}
}

// fingerprint is everything in a directory, to see whether it changes.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %d", path, info.Mode(), info.Size())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", content)
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}
