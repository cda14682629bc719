package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a daemon logs is printed as it comes.
func TestTheLogOfADaemonIsFollowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := filepath.Join(s.state(), "daemon.log")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	log, err := os.Create(path)
	require.NoError(t, err)
	defer log.Close()
	l := s.launch()
	cmd := exec.Command(program, append([]string{"daemon", "logs", "-f"}, l.args...)...)
	cmd.Dir, cmd.Env = s.root, append(append(cleanEnvironment(), homeless(t)...), l.env...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	for _, line := range []string{"level=INFO msg=one", "level=INFO msg=two", "level=INFO msg=three"} {
		_, err = log.WriteString(line + "\n")
		require.NoError(t, err)
		require.True(t, lines.Scan())
		assert.Contains(t, lines.Text(), line)
	}
}

// A command that runs until it is interrupted ends, too, when its output has no reader:
// not with the next that it would print.
func TestWhoeverFollowsEndsWithItsReader(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.daemon()
	_, err := s.command("prompt", "quiet")
	require.NoError(t, err)
	for _, args := range [][]string{{"daemon", "logs", "-f"}, {"events", "--since", "0"}, {"events", "--since", "0", "--json"}} {
		l := s.launch()
		cmd := exec.Command(program, append(args, l.args...)...)
		cmd.Dir, cmd.Env = s.root, append(append(cleanEnvironment(), homeless(t)...), l.env...)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		require.True(t, bufio.NewScanner(out).Scan())
		require.NoError(t, out.Close())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait()
		}()
		select {
		case <-ended:
		case <-time.After(watchdog / 3):
			_ = cmd.Process.Kill()
			<-ended
			require.Fail(t, "it goes on", "%v", args)
		}
	}
	_, err = s.command("daemon", "stop")
	require.NoError(t, err)
}
