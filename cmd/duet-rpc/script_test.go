package main_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Whole commands, as testdata/script tells them. Beside testscript's own
// commands the scripts have
//
//	refuses REGEXP ARG…   duet-rpc with these arguments fails, and says why
//	mode FILE 0600        a file has these permissions
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", programDir+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("GORACE", noRaceDelay)
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/home/config")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/home/state")
			env.Setenv("DUET_DEMO_DELAY", "0")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"refuses": refuses,
			"mode":    mode,
		},
	})
}

// refuses requires of duet-rpc what every command owes to whoever misspelt it:
// status 1, nothing on standard output, and one line on standard error that
// matches.
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
		ts.Fatalf("%q does not say %s", line, args[0])
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
