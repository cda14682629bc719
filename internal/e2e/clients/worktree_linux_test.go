//go:build clients

package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A prompt works in a worktree. The user lands or discards the result, and only landing changes the
// user's files.
func TestWorktreesInTheShell(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t), "\n[checkpoints]\nenabled = true\n")
	git := gitIn(t, s.Root)
	run, refused := shellOf(t, s)
	refused("is in no git repository: run git init and make a commit", "prompt", "--yes", "--worktree", "hello")
	beginRepository(git)

	demo := filepath.Join(s.Root, "demo.txt")
	said := run("prompt", "--yes", "--worktree", "--title", "The parser", "hello")
	assert.Contains(t, said, "its worktree is on the branch duet/the-parser; bring its changes here with: duet-rpc land 1")
	assert.NoFileExists(t, demo)
	assert.Contains(t, run("session", "show", "1"), "on the branch duet/the-parser")
	// git-crypt is configured nowhere, so git would store the file as it is, too.
	attributes := filepath.Join(s.Root, ".git", "info", "attributes")
	require.NoError(t, os.WriteFile(attributes, []byte("*.txt filter=git-crypt\n"), 0o600))
	said = run("land")
	assert.Contains(t, said, "committed without the filter that .gitattributes names; look at it before you push: demo.txt")
	assert.Contains(t, said, "landed on main: 1 commit, 1 file")
	assert.Contains(t, run("session", "show", "1", "--export", "md"), "Landed duet/the-parser on main: 1 commit, 1 file. Committed without the filter that .gitattributes names: 1 file.")
	require.NoError(t, os.Remove(attributes))
	assert.FileExists(t, demo)
	assert.Empty(t, git("status", "--porcelain"))
	assert.Contains(t, run("land", "1"), "there is nothing new to land")

	// Both sides change the file.
	run("prompt", "--yes", "-c", "again")
	require.NoError(t, os.WriteFile(demo, []byte("mine\n"), 0o600))
	refused("these files of yours are not committed and would be overwritten\n  demo.txt\ncommit or stash them first", "land")
	git("commit", "-qam", "mine")
	head := git("rev-parse", "HEAD")
	refused("nothing was landed: these files conflict with your branch\n  demo.txt\nlet the agent merge: duet-rpc prompt --continue 1", "land", "--squash")
	assert.Equal(t, head, git("rev-parse", "HEAD"))
	data := e2e.ReadFile(t, demo)
	assert.Equal(t, "mine\n", data)

	refused("changed file that is not committed: demo.txt", "discard")
	refused("nothing was discarded: run `duet-rpc discard 1` on a terminal, or add --yes", "discard")
	refused("duet/the-parser has work that is not landed: run `duet-rpc land 1` or `duet-rpc discard 1` first", "session", "delete", "--yes", "1")
	refused("has work that is not landed", "projects", "forget", "--yes", s.Root)
	p := startTalk(s, t, "discard")
	p.sees("changed file that is not committed: demo.txt", "Discard the worktree with this work? [y/N]")
	p.types("n", "nothing was discarded")
	assert.Equal(t, 1, p.status())
	said = run("discard", "--yes")
	ref := regexp.MustCompile(`git branch NAME (\S+)`).FindStringSubmatch(said)
	require.NotNil(t, ref, said)
	assert.Contains(t, git("show", ref[1]+":demo.txt"), "again")
	assert.Equal(t, "main", strings.TrimSpace(git("branch", "--format=%(refname:short)")))
	refused("`duet-rpc prompt --fork 1.2 TEXT` continues it in the project's directory", "prompt", "--yes", "-c", "more")
	run("prompt", "--yes", "--worktree", "--title", "Forgotten", "hello")
	run("land")
	run("projects", "forget", "--yes", s.Root)
	assert.Equal(t, "main", strings.TrimSpace(git("branch", "--format=%(refname:short)")))
	assert.Equal(t, ref[1], strings.TrimSpace(git("for-each-ref", "--format=%(refname)", "refs/duet")), "only the ref of the discarded work remains")
}

// A session on a terminal works in a worktree, lands it and discards it. Commands in a
// worktree's directory use its project and its session.
func TestWorktreesInASession(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	git := gitIn(t, s.Root)
	beginRepository(git)
	p := startTalk(s, t)
	p.sees("RET sends")
	p.presses("/land\r", "there is no turn yet")
	p.presses("/worktree\r", "the next session works in its own git worktree", "scripted · in a worktree")
	p.presses("hello\r", "[?] Keys: ")
	p.presses("y", "scripted · duet/hello · context")
	p.presses("/worktree\r", "works in its own git worktree", "/new begins it")
	p.presses("/worktree\r", "the next session works in", s.Root, "/new begins it")
	p.presses("/land sqash\r", `method: expected one of merge, squash, rebase, patch`)
	p.presses("/land squash\r", "landed on main: 1 commit, 1 file")
	demo := filepath.Join(s.Root, "demo.txt")
	require.FileExists(t, demo)
	dir := worktreeOf(t, s, "1")
	s.RunIn(s.Root, "prompt", "--yes", "quiet")
	require.NoError(t, os.Remove(filepath.Join(dir, "demo.txt")))
	out, problem, err := s.CommandIn(dir, "land", "--squash", "--message", "Without it")
	require.NoError(t, err, problem)
	assert.Contains(t, out+problem, "landed on main: 1 commit, 1 file")
	assert.Contains(t, git("log", "-1", "--format=%s"), "Without it")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new.txt"), nil, 0o600))
	p.presses("/discard\r", "new file that is not committed: new.txt", "Discard the worktree with this work?")
	p.presses("n", "nothing was discarded")
	p.presses("/discard\r", "Discard the worktree with this work?")
	p.presses("y", "its work is kept", "your next prompt continues this session in", "scripted · RET sends")
	assert.NoDirExists(t, dir)
	p.presses("quiet after that\r", "You asked: quiet after that", "RET sends")
	p.presses("/resume 1\r", "your next prompt continues this session in", "scripted · RET sends")
}

// The configuration selects the sessions that get a worktree, and the setup of the worktree.
func TestConfiguredWorktrees(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	git := gitIn(t, s.Root)
	run, _ := shellOf(t, s)
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(s.Root, name), []byte(text), 0o600))
	}
	read := func(path ...string) string {
		t.Helper()
		data := e2e.ReadFile(t, filepath.Join(path...))
		return data
	}
	prepared := func() string { return filepath.Join(s.Home, "prepared") }
	configure := func(use, setup string) {
		s.Agents("[worktrees]\ncopy = [\".env\", \"*.pem\"]\nsetup = '" + setup + "'\ncleanup = 'echo cleaned $DUET_WORKTREE >> " + prepared() + "; exit 3'\n")
		path := filepath.Join(s.Home, "config", "duet", "config.toml")
		require.NoError(t, os.WriteFile(path, []byte("worktree = \""+use+"\"\n"+read(path)), 0o600))
	}
	configure("session", "cp .env copied.log; echo $DUET_PROJECT >> "+prepared())
	assert.Contains(t, run("prompt", "--yes", "hello"), "This session has no worktree: no commit to start from")
	demo := filepath.Join(s.Root, "demo.txt")
	require.NoError(t, os.Remove(demo))

	beginRepository(git)
	write(".gitignore", "*.log\n.env\n")
	git("add", ".gitignore")
	git("commit", "-q", "-m", "second")
	write(".env", "SECRET=1\n")
	write("key.pem", "key\n")
	said := run("prompt", "--yes", "--title", "One", "hello")
	e2e.RequireParts(t, said, "The setup of the worktree begins: cp .env copied.log", "duet/one")
	assert.NoFileExists(t, demo)
	root, err := filepath.EvalSymlinks(s.Root)
	require.NoError(t, err)
	assert.Equal(t, root+"\n", read(prepared()))
	one := worktreeOf(t, s, "2")
	assert.Equal(t, "SECRET=1\n", read(one, "copied.log"))
	assert.Equal(t, "key\n", read(one, "key.pem"))
	assert.NotContains(t, run("prompt", "--yes", "-c", "again"), "setup", "the setup runs once")
	assert.Equal(t, root+"\n", read(prepared()))
	assert.Contains(t, run("land"), "1 file")
	assert.Empty(t, strings.TrimSpace(git("status", "--porcelain", "--", "demo.txt", ".env")))
	assert.NotContains(t, git("ls-files"), "key.pem", "copies are not landed")
	assert.Contains(t, run("discard"), "its cleanup failed: echo cleaned")
	assert.Contains(t, read(prepared()), "cleaned "+one+"\n")
	assert.NoDirExists(t, one)

	// A prompt can override the configuration.
	assert.NotContains(t, run("prompt", "--yes", "--worktree=false", "hello"), "worktree")

	// The next prompt repeats a failed setup.
	git("commit", "-qam", "mine")
	configure("turn", "echo broken pipe; test -e "+filepath.Join(s.Home, "works"))
	_, problem, err := s.CommandIn(s.Root, "prompt", "--yes", "--title", "Two", "hello")
	require.Error(t, err)
	e2e.RequireParts(t, problem, "the setup of the worktree failed: echo broken pipe", "exit status 1\n  broken pipe")
	require.NoError(t, os.WriteFile(filepath.Join(s.Home, "works"), nil, 0o600))
	said = run("prompt", "--yes", "-c", "again")
	assert.Contains(t, said, "The setup of the worktree begins")

	// With "run", the next prompt starts from the landed work.
	run("land", "--squash")
	write("mine.txt", "mine\n")
	git("add", "mine.txt")
	git("commit", "-qm", "mine")
	said = run("prompt", "--yes", "-c", "third")
	assert.Contains(t, said, "All work in the worktree is landed: it is at the commit of main now.")
	two := worktreeOf(t, s, "4")
	assert.Equal(t, "mine\n", read(two, "mine.txt"))
	assert.NotContains(t, run("prompt", "--yes", "-c", "fourth"), "is landed", "the third prompt's work is not landed")

	// The project's file applies once the user trusts it.
	configure("never", "true")
	write(".duet.toml", "worktree = \"session\"\n[worktrees]\nsetup = [\"touch\", \"theirs.log\"]\n")
	assert.NotContains(t, run("prompt", "--yes", "--title", "Three", "hello"), "duet/three")
	assert.Contains(t, run("prompt", "--yes", "--worktree", "--title", "Four", "hello"), "has no effect until you trust it: duet-rpc trust")
	assert.NoFileExists(t, filepath.Join(filepath.Dir(two), "four", "theirs.log"))
	assert.Contains(t, run("trust", "--yes"), `worktrees.setup = ["touch", "theirs.log"]`)
	assert.Regexp(t, `worktree +project +"session"`, run("config"))
	assert.Contains(t, run("prompt", "--yes", "--title", "Five", "hello"), "duet/five")
	assert.FileExists(t, filepath.Join(filepath.Dir(two), "five", "theirs.log"))
}

// worktreeOf returns the worktree directory of a session.
func worktreeOf(t *testing.T, s *e2e.Site, session string) string {
	t.Helper()
	out := s.RunIn(s.Root, "session", "show", "--json", session)
	var shown struct {
		Turn struct{ Worktree struct{ Dir string } }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &shown), out)
	require.NotEmpty(t, shown.Turn.Worktree.Dir, out)
	return shown.Turn.Worktree.Dir
}

// shellOf returns two functions: run runs a command in the project, and refused requires that a
// command fails with an error text.
func shellOf(t *testing.T, s *e2e.Site) (run func(args ...string) string, refused func(want string, args ...string)) {
	run = func(args ...string) string {
		t.Helper()
		return s.RunIn(s.Root, args...)
	}
	return run, func(want string, args ...string) {
		t.Helper()
		_, problem, err := s.CommandIn(s.Root, args...)
		require.Error(t, err)
		assert.Contains(t, problem, want)
	}
}

// beginRepository makes a git repository with a first commit.
func beginRepository(git func(args ...string) string) {
	git("init", "-q", "-b", "main")
	git("config", "user.name", "User")
	git("config", "user.email", "user@localhost")
	git("commit", "-q", "--allow-empty", "-m", "first")
}

// gitIn returns a function that runs git in a directory.
func gitIn(t *testing.T, dir string) func(args ...string) string {
	return func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(e2e.CleanEnvironment(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
}

// Several agents attempt one prompt. The user chooses one result, and Duet discards the others.
func TestAttempts(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	agent := e2e.FastProgram(t)
	s.Agents("[agents.other]\ntitle = \"Other\"\ndriver = \"acp\"\ncommand = [\"" + agent + "\", \"demo-agent\"]\nenv = { DUET_DEMO_DELAY = \"0\" }\n" +
		"[[gates]]\nname = \"demo\"\ncommand = [\"test\", \"-e\", \"demo.txt\"]\n")
	git := gitIn(t, s.Root)
	run, refused := shellOf(t, s)
	refused("run git init and make a commit", "prompt", "--yes", "--agents", "scripted,other", "hello")
	beginRepository(git)
	refused("2 to 10 agents", "prompt", "--yes", "--agents", "scripted", "hello")
	refused("nosuch", "prompt", "--yes", "--agents", "scripted,nosuch", "hello")
	refused("no prompt had several agents", "attempts")
	assert.Equal(t, "main", strings.TrimSpace(git("branch", "--format=%(refname:short)")))

	said := run("prompt", "--yes", "--agents", "scripted,other", "--title", "Fix", "--gate", "demo", "hello")
	e2e.RequireParts(t, said, "1.1 · agent scripted · duet/fix-scripted", "2.1 · agent other · duet/fix-other")
	assert.Contains(t, said, "allowed by --yes")
	e2e.RequireParts(t, said, "1.1 · scripted: Write demo.txt") // what each does, while it works
	assert.Contains(t, said, "2.1 · other: Write demo.txt")
	assert.Regexp(t, `1\.1 +scripted.* +completed +passed +1 +\+1 -0 `, said)
	assert.Regexp(t, `2\.1 +other.* +completed +passed +1 +\+1 -0 `, said)
	assert.Contains(t, said, "land one with: duet-rpc land 1.1 --discard-others")
	assert.Contains(t, run("attempts", "--patch"), "+++ b/demo.txt\n@@ -0,0 +1 @@\n+Turn 1: hello\n")
	assert.NoFileExists(t, filepath.Join(s.Root, "demo.txt"))

	run("prompt", "--continue", "1", "--yes", "again")
	said = run("land", "2", "--discard-others", "--squash", "--message", "Fix it")
	assert.Contains(t, said, "landed on main: 1 commit, 1 file")
	assert.Regexp(t, `discarded 1\.2 · scripted; its work is kept: git branch NAME refs/duet/discarded/fix-scripted`, said)
	assert.Equal(t, "Fix it", strings.TrimSpace(git("log", "-1", "--format=%s")))
	assert.Contains(t, git("show", "refs/duet/discarded/fix-scripted:demo.txt"), "again")
	assert.Regexp(t, `scripted.*the worktree was discarded`, run("attempts"))

	// The command asks one question at a time. `choose` interrupts a working attempt only with
	// --yes.
	p := startTalk(s, t, "prompt", "--agents", "scripted,other", "hello")
	for range 2 {
		p.sees("[?] Keys: ")
		p.presses("y")
	}
	p.sees("land one with")
	assert.Equal(t, 0, p.status())
	working := startTalk(s, t, "prompt", "-c", "quiet stream:1000000@1") // the last one, session 4
	working.sees("agent other")
	refused("nothing was landed, because other attempts still work (4.2): run `duet-rpc land 3.1 --discard-others` on a terminal, or add --yes", "land", "3", "--discard-others")
	assert.Contains(t, run("land", "--discard-others", "--yes", "3"), "discarded 4.2 · other")
	slow := startTalk(s, t, "prompt", "--agents", "scripted,other", "quiet stream:1000000@1")
	slow.sees("agent other", "scripted: writes · other: writes")
	refused("5.1 still works: wait for its end", "land", "5", "--discard-others")
	require.NoError(t, slow.Cmd.Process.Signal(os.Interrupt))
	slow.sees("interrupting all")
	assert.Equal(t, 130, slow.status())
	leaves := startTalk(s, t, "prompt", "--agents", "scripted,other", "hello")
	leaves.sees("[q] Quit")
	leaves.presses("q", "the attempts go on: duet-rpc approvals answers")
	assert.Equal(t, 1, leaves.status())
	closed := startTalk(s, t, "prompt", "--agents", "scripted,other", "quiet stream:1000000@1")
	closed.sees("agent other", "scripted: writes · other: writes")
	closed.signal(syscall.SIGHUP)
	closed.sees("the terminal was closed; the session continues")
	assert.Equal(t, 1, closed.status())
	assert.Regexp(t, `9\.1 +scripted +running`, run("attempts", "9"))
	run("session", "interrupt", "9")
	run("session", "interrupt", "10")
	said = run("prompt", "--json", "--yes", "--agents", "scripted,other", "--gate", "demo", "once")
	e2e.RequireParts(t, said, `{"kind":"result","turn":"11.1","session":11,`, `{"kind":"result","turn":"12.1","session":12,`)
}

// Attempts continue with the next hub, which asks their questions again.
func TestAttemptsOutliveTheirHub(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	git := gitIn(t, s.Root)
	beginRepository(git)
	p := startTalk(s, t, "prompt", "--agents", "scripted,scripted", "hello")
	p.sees("[?] Keys: ")
	require.NoError(t, syscall.Kill(s.LockHolder(), syscall.SIGKILL))
	p.sees("the daemon has gone; going on with another one")
	// The hub may withdraw a question during its answer, because the agent is gone and the session
	// continues.
	for ends := false; !ends; {
		p.tty.Printed.Await(t, func(printed string) bool {
			_, question, asks := strings.Cut(printed[p.read:], "[?] Keys: ")
			ends = strings.Contains(printed[p.read:], "land one with")
			if asks && !ends {
				p.read = len(printed) - len(question)
			}
			return asks || ends
		}, "a question or the end")
		if !ends {
			p.presses("y")
		}
	}
	assert.Equal(t, 0, p.status())
	out := s.Run("attempts")
	assert.Equal(t, 2, strings.Count(out, "completed"), out)
}

func TestMovedProjectKeepsItsWorktrees(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	git := gitIn(t, s.Root)
	beginRepository(git)
	s.RunIn(s.Root, "prompt", "--yes", "--worktree", "hello")
	elsewhere := filepath.Join(s.Home, "elsewhere")
	require.NoError(t, os.Rename(s.Root, elsewhere))
	s.RunIn(elsewhere, "prompt", "--yes", "-c", "again")
	out, problem, err := s.CommandIn(elsewhere, "land")
	require.NoError(t, err, problem)
	assert.Contains(t, out+problem, "landed on main: 1 commit, 1 file")
	assert.FileExists(t, filepath.Join(elsewhere, "demo.txt"))
	s.RunIn(elsewhere, "discard")
	assert.Equal(t, "main", strings.TrimSpace(gitIn(t, elsewhere)("branch", "--format=%(refname:short)")))
}

// A rewind restores the files from before a turn, in the shell and in a session. The user can
// undo it.
func TestRewindInTheShell(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t), "\n[checkpoints]\nenabled = true\n")
	// A checkpoint takes longer than a turn.
	git, err := exec.LookPath("git")
	require.NoError(t, err)
	slow := t.TempDir()
	testkit.Program(t, filepath.Join(slow, "git"), "#!/bin/sh\n[ \"$1\" != mktag ] || sleep 1\nexec "+git+" \"$@\"\n")
	s.Env = append(s.Env, "PATH="+slow+":"+os.Getenv("PATH"))
	editor := s.Start() // keeps the hub running
	editor.Call("task.stats", object{}, nil)
	for i, args := range [][]string{{"one"}, {"-c", "two"}} {
		s.RunIn(s.Root, append([]string{"prompt", "--yes"}, args...)...)
		// rewind waits for the checkpoints. Otherwise the checkpoint after a turn could contain
		// changes of the next turn.
		s.RunIn(s.Root, "rewind", fmt.Sprintf("1.%d", i+1), "--dry-run")
	}
	demo := filepath.Join(s.Root, "demo.txt")
	two := e2e.ReadFile(t, demo)
	ask := func(want string, args ...string) {
		t.Helper()
		out, problem, err := s.CommandIn(s.Root, append([]string{"rewind"}, args...)...)
		require.NoError(t, err, problem)
		assert.Contains(t, out+problem, want)
	}
	ask("— restores demo.txt +0 -1", "1.2", "--dry-run")
	_, problem, err := s.CommandIn(s.Root, "rewind", "1.2")
	require.Error(t, err)
	assert.Contains(t, problem, "no file was restored: run `duet-rpc rewind 1.2` on a terminal, or add --yes")
	now := e2e.ReadFile(t, demo)
	assert.Equal(t, two, now)

	ask("1 file restored; take it back with: duet-rpc rewind 1.1 --undo", "1.1", "--yes")
	assert.NoFileExists(t, demo)
	ask("the rewind is undone: 1 file restored", "1.1", "--undo")
	now = e2e.ReadFile(t, demo)
	assert.Equal(t, two, now)

	require.NoError(t, os.WriteFile(demo, []byte("mine\n"), 0o600))
	ask("stays, edited since: demo.txt", "1.2", "--dry-run")
	p := startTalk(s, t, "prompt", "-c")
	p.sees(idleFooter)
	p.presses("/rewind\r", "stays, edited since: demo.txt")
	p.sees("Go back in the session? [y] Yes, [a] All of them, [k] Keep the files, [n] No: ")
	p.presses("a", "1 file restored", "your next prompt continues from before 1.2")
	p.presses(" again\r", "[?] Keys: ")
	p.presses("y", "tokens", idleFooter)
	p.leaves()
	list := editor.Sessions()
	editor.Leave()
	require.Len(t, list, 3)
	assert.Equal(t, "two again", list[0].Query)
	assert.NotEqual(t, list[0].ThreadID, list[1].ThreadID)
	now = e2e.ReadFile(t, demo)
	assert.Equal(t, "Turn 1: one\nTurn 1: two again\n", now)
}

// While a line to one host is cut, the questions of the attempts on another one are asked. Those of the first are asked
// again when it can be reached.
func TestAttemptsOverABrokenLine(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	lines := filepath.Join(s.Home, "lines")
	e2e.WriteFile(t, filepath.Join(s.Home, ".gitconfig"), "[user]\nname = u\nemail = u@localhost\n")
	hosts := ""
	for _, name := range []string{"one", "two"} {
		hosts += fmt.Sprintf(`[hosts.%[1]s]
command = ["sh", "-c", 'test -e %[2]s.%[1]s.down && { echo "no way there" >&2; exit 255; }; echo "$$ $*" >>%[2]s.%[1]s; cd %[3]q; exec "$@"', "line"]
directory = %[1]q
program = %[4]q
`, name, lines, s.Home, e2e.Program)
	}
	s.Agents(hosts)
	beginRepository(gitIn(t, s.Root))
	l := s.Launch("prompt", "--agents", "scripted@one,scripted@two", "hello")
	l.Dir = s.Root
	l.Env = append(l.Env, "TERM=xterm", "DUET_ROOT=")
	p := onTerminal(l, t, 80)
	p.sees("[?] Keys: ")
	cut := func(host string) {
		var pid int
		for line := range strings.Lines(e2e.ReadFile(t, lines+"."+host)) {
			if number, command, _ := strings.Cut(line, " "); strings.HasSuffix(command, " connect\n") {
				pid, _ = strconv.Atoi(number)
			}
		}
		e2e.WriteFile(t, lines+"."+host+".down", "")
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	host, other := "one", "two"
	if strings.Contains(p.tty.Printed.String(), "1.1@two · agent scripted · 0s ago") {
		host, other = other, host
	}
	cut(host)
	p.sees("the line to "+host+" broke", "1.1@"+other+" · agent scripted", "[?] Keys: ")
	p.presses("y", "not taken", "[?] Keys: ") // it may have been for the other question
	p.presses("y", "1.1@"+other+" · scripted · completed", host+": cannot be reached")
	require.NoError(t, os.Remove(lines+"."+host+".down"))
	p.sees("1.1@"+host+" · agent scripted", "[?] Keys: ")
	p.presses("y", "land one with")
	assert.Equal(t, 0, p.status())

	// C-c interrupts those that it reaches.
	l.Args = slices.Concat([]string{"prompt", "--agents", "scripted@one,scripted@two", "quiet stream:1000000@1"}, l.Args[4:])
	p = onTerminal(l, t, 80)
	p.sees("scripted@one: writes", "scripted@two: writes")
	cut("one")
	p.sees("the line to one broke", "scripted@one: cannot be reached")
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	p.sees("2.1@one goes on: one cannot be reached", "2.1@two · scripted · interrupted")
	assert.Equal(t, 130, p.status())
	require.NoError(t, os.Remove(lines+".one.down"))
	interrupt := s.Launch("session", "interrupt", "2@one")
	interrupt.Args = interrupt.Args[:3] // without --root, which would be there
	interrupt.Dir, interrupt.Env = s.Root, append(interrupt.Env, "DUET_ROOT=")
	assert.Equal(t, 0, onTerminal(interrupt, t, 80).status())
}
