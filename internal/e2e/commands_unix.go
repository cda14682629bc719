//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// Command runs the program as a shell in the project does, with the site's environment. It counts
// as a client, and returns its standard output.
func (s *Site) Command(args ...string) (stdout string, err error) {
	s.T.Helper()
	l := s.counted()
	cmd := exec.Command(Program, slices.Concat(l.First, args, l.Args)...)
	cmd.Dir = s.Root
	cmd.Env = append(append(CleanEnvironment(), Homeless(s.T)...), l.Env...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	switch strings.Join(args[:min(2, len(args))], " ") {
	case "daemon start":
		s.DaemonStays.Store(true)
	case "daemon stop":
		defer s.DaemonStays.Store(false)
	}
	s.Clients.Add(1)
	defer s.left()
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%w: %s", err, problem.String())
	}
	return out.String(), err
}

// Run is Command for a command that must succeed.
func (s *Site) Run(args ...string) (stdout string) {
	s.T.Helper()
	stdout, err := s.Command(args...)
	require.NoError(s.T, err, "%q", args)
	return stdout
}

// Refuses is Command for a command that must fail with an error that contains why.
func (s *Site) Refuses(why string, args ...string) {
	s.T.Helper()
	_, err := s.Command(args...)
	require.ErrorContains(s.T, err, why, "%q", args)
}

// CommandIn runs the program in a directory, without a named root.
func (s *Site) CommandIn(dir string, args ...string) (stdout, stderr string, err error) {
	s.T.Helper()
	cmd := exec.Command(Program, args...)
	cmd.Dir = dir
	cmd.Env = append(append(append(CleanEnvironment(), Homeless(s.T)...), s.counted().Env...), "DUET_ROOT=", "PWD="+dir)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	s.Clients.Add(1)
	defer s.left()
	err = cmd.Run()
	return out.String(), problem.String(), err
}

// RunIn is CommandIn for a command that must succeed, and returns both outputs.
func (s *Site) RunIn(dir string, args ...string) string {
	s.T.Helper()
	out, problem, err := s.CommandIn(dir, args...)
	require.NoError(s.T, err, problem)
	return out + problem
}

// Daemon starts a daemon and returns its process id. The cleanup of a failed test kills the daemon.
func (s *Site) Daemon(args ...string) (pid int) {
	s.T.Helper()
	out, err := s.Command(append([]string{"daemon", "start", "--json"}, args...)...)
	require.NoError(s.T, err)
	var status struct{ PID int }
	require.NoError(s.T, json.Unmarshal([]byte(out), &status), out)
	require.NotZero(s.T, status.PID)
	process, err := os.FindProcess(status.PID)
	require.NoError(s.T, err)
	s.T.Cleanup(func() {
		if s.T.Failed() && s.LockHolder() == status.PID {
			_ = process.Kill()
		}
	})
	return status.PID
}
