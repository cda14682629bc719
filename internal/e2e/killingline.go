package e2e

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// KillingLine makes the test binary a line to a host, which runs the command line that is its arguments. The variable names a
// directory. If its file "kill" has the name of a step, the line kills the process of its file "pid" instead of that step. Steps are
// the start of a command of duet-rpc ("receive 1"), its end ("receive ended 1") and each request for the daemon there
// ("session.start 2"), with their number in the directory.
const KillingLine = "DUET_TEST_KILLING_LINE"

// playKillingLine reports whether this process is a line.
func playKillingLine() bool {
	dir := os.Getenv(KillingLine)
	if dir == "" {
		return false
	}
	os.Unsetenv(KillingLine)
	line := killingLine{dir}
	args := os.Args[1:]
	names := []string{"receive", "upload", "connect"}
	name := filepath.Base(args[0])
	if i := slices.IndexFunc(args, func(arg string) bool { return slices.Contains(names, arg) }); i >= 0 {
		name = args[i]
	}
	line.step(name)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var err error
	if name == "connect" {
		err = line.pass(cmd)
	} else {
		err = cmd.Run()
	}
	line.step(name + " ended")
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

type killingLine struct{ dir string }

// pass runs a command, and passes each request to it.
func (l killingLine) pass(cmd *exec.Cmd) error {
	cmd.Stdin = nil
	to, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	go func() { // until the process ends
		defer to.Close()
		var m frame.Message
		for in := frame.NewReader(os.Stdin, frame.LSP, frame.Limits{}); in.Next(&m) == nil; {
			if method, is := rawjson.Text(m.Method); is {
				l.step(string(method))
			}
			if _, err := to.Write(frame.Append(nil, frame.LSP, m.Body)); err != nil {
				_, _ = io.Copy(io.Discard, os.Stdin)
				return
			}
		}
	}()
	return cmd.Run()
}

// step counts a step, and kills instead of it if it is the one.
func (l killingLine) step(name string) {
	for n := 1; ; n++ {
		step := fmt.Sprint(name, " ", n)
		f, err := os.OpenFile(filepath.Join(l.dir, "step "+step), os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			f.Close()
		}
		if at, err := os.ReadFile(filepath.Join(l.dir, "kill")); err != nil || string(at) != step {
			return
		}
		text, _ := os.ReadFile(filepath.Join(l.dir, "pid"))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		if process, err := os.FindProcess(pid); err == nil && pid > 0 {
			_ = process.Kill()
		}
		os.Exit(1)
	}
}
