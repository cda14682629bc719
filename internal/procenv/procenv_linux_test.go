package procenv_test

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/procenv"
)

// variable marks the processes of a test.
const variable = "DUET_PROCENV_TEST=1"

func isMarked(v string) bool { return v == variable }

// TestMain is the marked process, too: it restarts its program as fast as it can.
func TestMain(m *testing.M) {
	if os.Getenv("DUET_PROCENV_TEST") == "" {
		os.Exit(m.Run())
	}
	if os.Getenv("DUET_PROCENV_IDLE") != "" {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	if _, err := os.Stdout.WriteString("x\n"); err != nil {
		os.Exit(0)
	}
	_ = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// A process that starts program after program has no environment much of the time. Kill still
// finds it, together with another one.
func TestKillFindsAProcessThatStartsPrograms(t *testing.T) {
	assert.Empty(t, procenv.Find(isMarked))
	for range 20 {
		idle := exec.Command(os.Args[0])
		idle.Env = append(os.Environ(), variable, "DUET_PROCENV_IDLE=1")
		in, err := idle.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, idle.Start())
		for len(procenv.Find(isMarked)) == 0 { // until it runs the program
			require.NoError(t, t.Context().Err())
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), variable)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(out)
		for range 3 {
			_, err := lines.ReadString('\n')
			require.NoError(t, err)
		}
		gone := make(chan struct{})
		go func() { // so that the process does not block
			defer close(gone)
			for _, err := lines.ReadString('\n'); err == nil; {
				_, err = lines.ReadString('\n')
			}
		}()
		procenv.Kill(isMarked)
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			assert.Fail(t, "the process lives")
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait()
		_ = in.Close()
		_ = idle.Wait()
		assert.Equal(t, syscall.SIGKILL, idle.ProcessState.Sys().(syscall.WaitStatus).Signal())
	}
}
