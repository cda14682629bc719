// Package git runs the git command and finds repositories. It isolates git from the environment
// of this process, and reads a repository's own configuration as data.
package git

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

const (
	mostOutput = 256 << 20 // bytes of a git process's output that are kept
	mostErrors = 4 << 10   // bytes of a git process's standard error that are kept
)

// A Command is one run of git.
type Command struct {
	Args  []string
	Env   []string // added to the environment
	Stdin io.Reader
	// Record, if set, receives each NUL-terminated record of the output, without the NUL.
	// The bytes are valid during the call. An error ends the process.
	Record func([]byte) error
	Stderr *Capped // nil if only the error needs it
	// Keep, if set, stays open in the process. It keeps a lock that is held on the file if this
	// process dies and git does not. Windows does not support it.
	Keep *os.File
	// Limit is how long the process may take; 0: 10 minutes.
	Limit time.Duration
}

// Isolation returns the part of git's environment that does not depend on the repository. No file
// of the user or the system configures git, and git asks for nothing.
func Isolation() []string {
	return []string{
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_CONFIG_SYSTEM=" + os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C",
		// glibc returns the memory of each object to the system otherwise: 20,000 new files took 36 s
		// instead of 1.3 s where a page fault is expensive.
		"MALLOC_TOP_PAD_=4194304",
	}
}

// CallersEnvironment returns the environment of this process without git's variables. A hub that
// a git hook has started has a GIT_DIR, for example.
func CallersEnvironment() (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GIT_") {
			env = append(env, variable)
		}
	}
	return env
}

const (
	// runLimit is how long a git process may take: a checkout of a very large tree through filters.
	runLimit = 10 * time.Minute
	// pipesAfter is how long a process runs before it is checked whether it waits for a named pipe, and
	// again after each such time. Two checks in a row end it.
	pipesAfter = 500 * time.Millisecond
)

// A PipeError reports a git process that waited for a named pipe where it expects a file, such as
// .gitignore.
type PipeError struct{ Path string }

func (e *PipeError) Error() string {
	return fmt.Sprintf("git waits for %s, which is a named pipe: remove it", e.Path)
}

// limit ends a process that takes too long, or that waits for a named pipe. It returns when ctx ends.
func limit(ctx context.Context, cancel context.CancelCauseFunc, pid int, c Command) {
	within := cmp.Or(c.Limit, runLimit)
	end := time.NewTimer(within)
	defer end.Stop()
	look := time.NewTicker(pipesAfter)
	defer look.Stop()
	waited := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			cancel(fmt.Errorf("git %s did not end within %v", c.Args[0], within))
			return
		case <-look.C:
			path, waits := pipeOf(pid)
			if waits && path == waited {
				cancel(&PipeError{Path: path})
				return
			}
			waited = path
		}
	}
}

// Run runs git in dir and returns its output, unless c.Record receives it. The process and
// its children are killed when ctx ends, after c.Limit, and when git waits for a named pipe.
func Run(ctx context.Context, program, dir string, env []string, c Command) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &output{record: c.Record, stop: cancel}
	stderr := c.Stderr
	if stderr == nil {
		stderr = &Capped{Left: mostErrors}
	}
	cmd := exec.CommandContext(ctx, program, c.Args...)
	cmd.Dir, cmd.Env = dir, slices.Concat(env, c.Env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, out, stderr
	cmd.WaitDelay = 5 * time.Second
	inOwnGroup(cmd)
	if c.Keep != nil {
		cmd.ExtraFiles = []*os.File{c.Keep}
	}
	err := cmd.Start()
	if err == nil {
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			limit(ctx, cancel, cmd.Process.Pid, c)
		}()
		err = cmd.Wait()
		failed := ctx.Err() != nil
		cancel(nil)
		<-watched
		if !failed {
			ctx = context.WithoutCancel(ctx)
		}
	}
	switch {
	case out.err != nil:
		return nil, out.err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &Error{args: c.Args, stderr: strings.TrimSpace(stderr.String()), err: err}
	case c.Record != nil && len(out.rest) > 0:
		return nil, fmt.Errorf("git %s: output ends within a record", c.Args[0])
	}
	return out.rest, nil
}

// An Error reports a git process that failed.
type Error struct {
	args   []string
	stderr string
	err    error
}

func (e *Error) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("git %s: %v", e.args[0], e.err)
	}
	return fmt.Sprintf("git %s: %v: %s", e.args[0], e.err, e.stderr)
}

func (e *Error) Unwrap() error { return e.err }

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

// A Capped keeps the first Left bytes that are written to it.
type Capped struct {
	strings.Builder
	Left int
}

func (c *Capped) Write(p []byte) (int, error) {
	n := min(len(p), c.Left)
	c.Left -= n
	c.Builder.Write(p[:n])
	return len(p), nil
}

var versionNumber = lazyregexp.New(`^git version (\d+)\.(\d+)`)

// CheckVersion returns an error unless the program is git 2.39 or later. what says who needs it.
func CheckVersion(ctx context.Context, program, dir, what string) error {
	out, err := Run(ctx, program, dir, outside(), Command{Args: []string{"version"}})
	if err != nil {
		return fmt.Errorf("cannot run git: %w", err)
	}
	var major, minor int
	if n := versionNumber().FindSubmatch(out); n != nil {
		fmt.Sscan(string(n[1]), &major)
		fmt.Sscan(string(n[2]), &minor)
	}
	if major<<16|minor < leastGit {
		return fmt.Errorf("git %d.%d is too old for %s: install git 2.39 or later", major, minor, what)
	}
	return nil
}

// outside returns an isolated environment without a repository.
func outside() []string {
	return slices.Concat(CallersEnvironment(), Isolation(), []string{"GIT_DIR=" + filepath.Join(os.DevNull, "none")})
}
