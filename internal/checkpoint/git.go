package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

const (
	mostOutput = 256 << 20 // bytes of a git process's output that are kept
	mostErrors = 4 << 10   // bytes of a git process's standard error that are kept
)

// A command is one run of git.
type command struct {
	args  []string
	env   []string // added to the environment
	stdin io.Reader
	// record, if set, receives each NUL-terminated record of the output, without the NUL.
	// The bytes are valid during the call. An error ends the process.
	record func([]byte) error
	stderr *capped // nil if only the error needs it
}

// isolation is the part of git's environment that does not depend on the repository. No file
// of the user or the system configures git, and git asks for nothing.
var isolation = []string{
	"GIT_CONFIG_GLOBAL=" + os.DevNull,
	"GIT_CONFIG_SYSTEM=" + os.DevNull,
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_ATTR_NOSYSTEM=1",
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_NO_LAZY_FETCH=1",
	"GIT_OPTIONAL_LOCKS=0",
	"GIT_TERMINAL_PROMPT=0",
	"LC_ALL=C",
}

// callersEnvironment returns the environment of this process without git's variables. A hub that
// a git hook has started has a GIT_DIR, for example.
func callersEnvironment() (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GIT_") {
			env = append(env, variable)
		}
	}
	return env
}

// runGit runs git in dir and returns its output, unless c.record receives it. The process and
// its children are killed when ctx ends.
func runGit(ctx context.Context, program, dir string, env []string, c command) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &output{record: c.record, stop: cancel}
	stderr := c.stderr
	if stderr == nil {
		stderr = &capped{left: mostErrors}
	}
	cmd := exec.CommandContext(ctx, program, c.args...)
	cmd.Dir, cmd.Env = dir, slices.Concat(env, c.env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, out, stderr
	cmd.WaitDelay = 5 * time.Second
	inOwnGroup(cmd)
	err := cmd.Run()
	switch {
	case out.err != nil:
		return nil, out.err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &gitError{args: c.args, stderr: strings.TrimSpace(stderr.String()), err: err}
	case c.record != nil && len(out.rest) > 0:
		return nil, fmt.Errorf("git %s: output ends within a record", c.args[0])
	}
	return out.rest, nil
}

// A gitError reports a git process that failed.
type gitError struct {
	args   []string
	stderr string
	err    error
}

func (e *gitError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("git %s: %v", e.args[0], e.err)
	}
	return fmt.Sprintf("git %s: %v: %s", e.args[0], e.err, e.stderr)
}

func (e *gitError) Unwrap() error { return e.err }

// An output receives the standard output of a process.
type output struct {
	record func([]byte) error
	rest   []byte // output that record has not received
	err    error
	stop   context.CancelCauseFunc
}

func (o *output) Write(p []byte) (int, error) {
	o.rest = append(o.rest, p...)
	for o.record != nil && o.err == nil {
		record, rest, found := bytes.Cut(o.rest, []byte{0})
		if !found {
			break
		}
		o.err = o.record(record)
		o.rest = rest
	}
	if len(o.rest) > mostOutput {
		o.err = fmt.Errorf("git wrote more than %d MB", mostOutput>>20)
	}
	if o.err != nil {
		o.stop(o.err)
		return 0, o.err
	}
	return len(p), nil
}

// A capped keeps the first bytes that are written to it.
type capped struct {
	strings.Builder
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	c.Builder.Write(p[:n])
	return len(p), nil
}
