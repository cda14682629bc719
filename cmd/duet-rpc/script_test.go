package main_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// TestScripts runs the scripts in testdata/script. In addition to testscript's own commands the
// scripts have
//
//	refuses REGEXP ARG…   duet-rpc with these arguments fails with an error that matches
//	status N ARG…          duet-rpc with these arguments ends with this exit status
//	mode FILE 0600        a file has these permissions
//
// and $STATE, the state directory of $WORK/project.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", e2e.ProgramDir+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("PROGRAMS", e2e.ProgramDir)
			env.Setenv("GORACE", e2e.NoRaceDelay)
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/home/config")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/home/state")
			state, err := stateOfScript(env)
			if err != nil {
				return err
			}
			env.Setenv("STATE", state)
			env.Setenv("DUET_DEMO_DELAY", "0")
			env.Setenv("DUET_COMPLETION_TIMEOUT", "1m")
			env.Defer(func() { stopHubs(t, env.WorkDir) })
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"refuses": refuses,
			"status":  status,
			"mode":    mode,
		},
	})
}

func stateOfScript(env *testscript.Env) (string, error) {
	dir, err := filepath.EvalSymlinks(env.WorkDir)
	if err != nil {
		return "", err
	}
	return project.StateDirOf(env.Getenv, filepath.Join(dir, "project"))
}

// stopHubs stops the daemons that a script left running.
func stopHubs(t *testing.T, dir string) {
	var sockets []string
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil: // skips directories that a script made unreadable
		case filepath.Base(path) == "duet.sock":
			sockets = append(sockets, path)
		case filepath.Base(path) == "socket" && filepath.Base(filepath.Dir(filepath.Dir(path))) == "projects":
			if text, err := os.ReadFile(path); err == nil {
				sockets = append(sockets, strings.TrimSpace(string(text)))
			}
		}
		return nil
	})
	for _, path := range sockets {
		conn, err := net.Dial("unix", path)
		if err != nil {
			continue // no hub listens
		}
		t.Logf("%s: a hub was left behind", path)
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"daemon.stop","params":{"force":true}}`+"\n")
		_, _ = io.Copy(io.Discard, conn) // until the hub closes it
		conn.Close()
	}
}

// refuses requires the answer of every command to a wrong usage: status 1, nothing on standard
// output, and one matching line on standard error.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: refuses REGEXP ARG…")
	}
	err := ts.Exec("duet-rpc", args[1:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		ts.Fatalf("not status 1: %v", err)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("standard output is not empty: %q", out)
	}
	line := ts.ReadFile("stderr")
	if strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "duet-rpc: ") || !strings.HasSuffix(line, "\n") {
		ts.Fatalf("not one line of the program's: %q", line)
	}
	if !regexp.MustCompile(args[0]).MatchString(line) {
		ts.Fatalf("%q does not match %s", line, args[0])
	}
}

// status requires duet-rpc to end with an exit status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("duet-rpc", args[1:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != want {
		ts.Fatalf("not status %d: %v", want, err)
	}
}

func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode FILE 0600")
	}
	want, err := strconv.ParseUint(args[1], 8, 32)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := info.Mode().Perm(); got != os.FileMode(want) {
		ts.Fatalf("%s has mode %#o", args[0], got)
	}
}

// The help of every command describes its exit status.
func TestExitStatusOfEveryCommandIsTold(t *testing.T) {
	t.Parallel()
	listed := regexp.MustCompile(`(?m)^  ([a-z-]+) +\S`)
	var walk func(path ...string)
	walk = func(path ...string) {
		out, err := exec.Command(e2e.Program, append(path, "--help")...).Output()
		require.NoError(t, err, path)
		help := string(out)
		name := strings.Join(path, " ")
		assert.Regexp(t, `(?m)^Exit status: `, help, "duet-rpc %s", name)
		_, commands, _ := strings.Cut(help, "Available Commands:\n")
		commands, _, _ = strings.Cut(commands, "\n\n")
		for _, row := range listed.FindAllStringSubmatch(commands, -1) {
			if row[1] == "help" || row[1] == "completion" { // cobra's own
				continue
			}
			walk(append(path[:len(path):len(path)], row[1])...)
		}
	}
	for _, name := range strings.Fields(commandNames(t)) {
		walk(name)
	}
}

// commandNames returns the names of the commands in the overview.
func commandNames(t *testing.T) string {
	out, err := exec.Command(e2e.Program, "--help").Output()
	require.NoError(t, err)
	assert.LessOrEqual(t, strings.Count(string(out), "\n"), 24, "it fits on a screen")
	names := ""
	for _, row := range regexp.MustCompile(`(?m)^  [a-z, ]+  +([a-z-]+(?:, [a-z-]+)*)$`).FindAllStringSubmatch(string(out), -1) {
		names += strings.ReplaceAll(row[1], ",", "") + " "
	}
	return strings.ReplaceAll(names, "completion ", "") // it is cobra's
}
