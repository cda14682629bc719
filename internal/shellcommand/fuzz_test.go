package shellcommand_test

import (
	"context"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

// evasions are commands that look like others.
var evasions = []string{
	"touch x", "touch x; rm y", "touch x && rm y", "touch x\nrm y", "touch x | rm y", "touch x & rm y", "touch $(rm y)", "touch `rm y`", "touch <(rm y)", "touch \"$(rm y)\"",
	`"rm" y`, `r\m y`, `r''m y`, `'touch' x`, "touch 'a'\\''; rm y; '", `touch '\'' ; rm y ; echo '\''`, `touch "\"; rm y; "`, `touch $'a\'; rm y #'`, "$'\\x72m' y", "touch $\"x\"",
	"eval touch x", "eval 'rm y'", "eval \"r\"\"m y\"", "x=rm; $x y", "x='touch x'; $x", "touch $x", "${x:=rm} y", "touch ${x:-$(rm y)}", "touch $((x))", "x=1 touch y", "PATH=. touch x", "export PATH=.; touch x",
	"touch x <<E\nrm y\nE", "touch x <<E\n$(rm y)\nE", "touch x <<'E'\n$(rm y)\nE\nrm z", "bash <<E\nrm y\nE", "touch <<<$(rm y)", "touch x <<-E\n\tE\nrm y", "touch x <<E\\\nF\nrm y\nEF\nrm z",
	"touch x\\\nrm y", "touch x \\\n; rm y", "to\\\nuch x", "touch x # \\\nrm y", "touch x # y\nrm z", "touch x#; rm y", "touch '#'; rm y", "#\nrm x",
	"touch x\u00a0; rm y", "touch\u2003x", "touch x\u2028rm y", "touch x\x00; rm y", "touch x\r\nrm y", "touch x\r; rm y", "touch x\v; rm y", "\ufefftouch x",
	`bash -c "touch x"`, `bash -c "rm y"`, `bash -c "bash -c 'rm y'"`, `bash -c 'bash -c "touch x; rm y"'`, `sh -c "$x"`, "bash -lc 'touch x' rm y", "bash -c -- 'touch x'", "env A=b touch x", "env -S 'rm y'", "env rm y",
	"{rm,y}", "touch {x,y}", "{touch,x};rm y", "alias touch=rm\ntouch x", "touch() { rm \"$@\"; }; touch x", "function touch { rm y; }; touch x", "unset touch; touch x",
	"if touch x; then rm y; fi", "while rm y; do touch x; done", "for i in $(rm y); do touch x; done", "case $(rm y) in *) touch x;; esac", "case x in $(rm y)) touch x;; esac", "select i in x; do rm y; done", "until touch x; do :; done",
	"( touch x; rm y )", "{ touch x; rm y; }", "! rm y", "time rm y", "coproc rm y", "exec rm y", "command rm y", "nohup touch x", "timeout 1 rm y", "xargs rm", "find . -exec rm {} \\;", "trap 'rm y' EXIT; touch x",
	"touch x > y", "touch x 2>&1", "> y touch x", "touch x &> y", "touch x >& y", "touch x >/dev/null; rm y", "cd sub && touch x", "cd .. && touch x", "cd sub; cd ..; touch x", "[[ -n $(rm y) ]] && touch x", "(( $(rm y) ))", "let x=$(rm y)",
	"touch x;;rm y", "touch x;&rm y", "touch x ;\n\n; rm y", "touch x && ", "touch x ||\n rm y", "touch 'x", "touch \"x", "touch $(", "touch x)", "touch x; }", "touch @(x|$(rm y))", "touch x*", "touch [x]", "t?uch x", "~/touch x", "=touch x",
	"declare x=$(rm y)", "touch x{1..3}", "a=(touch x); ${a[@]}", "a[$(rm y)]=x touch z", "touch ${!x}", "touch ${x@P}", "printf -v PATH .; touch x", "read x <<< 'rm y'; $x", "set -- rm y; \"$@\"", "source x", ". ./x", "touch x |& rm y", "touch x &! rm y",
}

// judgeTime starts a measurement, and returns a function that fails if it took too long. The tag
// soak replaces it.
var judgeTime = func(*testing.T) func() { return func() {} }

// A command that rules allow runs nothing that they do not match: a shell interpreter runs it,
// and reports each command.
func FuzzNormalise(f *testing.F) {
	for _, command := range evasions {
		f.Add(command)
	}
	rules := globs("touch *", "make test")
	f.Fuzz(func(t *testing.T, command string) {
		judged := judgeTime(t)
		for _, c := range []shellcommand.Command{shellcommand.Read(command), shellcommand.ReadWords([]string{"/bin/bash", "-lc", command})} {
			judged()
			if _, isScript := c.Script(); isScript && c.Text != command && !strings.Contains(command, c.Text) {
				// The displayed text is part of the original command, or equal to it without
				// quotes.
				if !strings.ContainsAny(command, `'"\`) {
					t.Errorf("%q is shown as %q", command, c.Text)
				}
			}
			if !c.AllowedBy(rules, within) {
				continue
			}
			for _, ran := range programsRun(command) {
				if text := strings.Join(ran, " "); !strings.HasPrefix(text, "touch ") && text != "make test" {
					t.Errorf("%q is allowed, and runs %q", command, ran)
				}
			}
			if c.CouldRun(shellcommand.Glob("rm *")) && !strings.Contains(command, "rm") {
				t.Errorf("%q could not run it", command)
			}
		}
		if once := shellcommand.Canonical(command); shellcommand.Canonical(once) != once {
			t.Errorf("%q has two canonical forms", command)
		}
	})
}

// programsRun returns the programs that a script starts, with their arguments. It starts no
// program, and opens no file. It runs the scripts of nested shells in the same way.
func programsRun(script string) (ran [][]string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil
	}
	var mu sync.Mutex // guards ran: the commands of a pipeline run concurrently
	starts := func(commands ...[]string) {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, commands...)
	}
	call := func(ctx context.Context, args []string) ([]string, error) {
		switch {
		case args[0] == "cd" || args[0] == "true" || args[0] == "false" || args[0] == ":":
			return []string{"true"}, nil
		case isShell(args):
			rest := args[1:]
			for len(rest) > 1 && strings.HasPrefix(rest[0], "-") {
				rest = rest[1:]
			}
			starts(programsRun(rest[0])...)
		case args[0] == "command" || args[0] == "exec" || args[0] == "nohup":
			starts(args[1:])
		case args[0] == "env":
			rest := args[1:]
			for len(rest) > 0 && strings.Contains(rest[0], "=") {
				rest = rest[1:]
			}
			starts(rest)
		case args[0] == "timeout" && len(args) > 2:
			starts(args[2:])
		default:
			starts(args)
		}
		return []string{"true"}, nil
	}
	runner, err := interp.New(
		interp.StdIO(nil, io.Discard, io.Discard), interp.Env(expand.ListEnviron("PATH=/nowhere")), interp.CallHandler(call),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return func(context.Context, []string) error { return nil }
		}),
		interp.OpenHandler(func(context.Context, string, int, os.FileMode) (io.ReadWriteCloser, error) {
			return nil, os.ErrPermission
		}),
		interp.StatHandler(func(context.Context, string, bool) (os.FileInfo, error) { return nil, os.ErrNotExist }),
		interp.ReadDirHandler2(func(context.Context, string) ([]os.DirEntry, error) { return nil, nil }),
	)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond) // loops
	defer cancel()
	_ = runner.Run(ctx, file)
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(ran)
}

func isShell(args []string) bool {
	switch path.Base(args[0]) {
	case "sh", "bash", "dash", "ash", "zsh":
		return len(args) > 2
	}
	return false
}
