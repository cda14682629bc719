//go:build unix

package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func TestCrashFailsOnlyItsOwnTurn(t *testing.T) {
	s := newSupervisor(t)
	a, b := acquire(t, s, acp("a")), acquire(t, s, acp("b"))
	pidA, pidB := prompt(t, a, "pid"), prompt(t, b, "pid")
	for range 5 {
		_, err := a.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "crash"})
		require.ErrorIs(t, err, jsonrpc2.ErrClosed)
		a.Release()
		a = acquire(t, s, acp("a")) // at once, while the dead process is still being cleaned up
		next := prompt(t, a, "pid")
		assert.NotEqual(t, pidA, next)
		pidA = next
	}
	assert.Equal(t, pidB, prompt(t, b, "pid"))
	a.Release()
	b.Release()
}

func TestErrorResponseIsNoCrash(t *testing.T) {
	s := newSupervisor(t)
	l := acquire(t, s, acp("a"))
	defer l.Release()
	r, err := l.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "refuse"})
	require.NoError(t, err)
	assert.Equal(t, catalog.StatusFailed, r.Status)
	assert.Equal(t, &catalog.ExecutionError{Code: "EXECUTOR_ERROR", Message: "I will not"}, r.Error)
	assert.Contains(t, prompt(t, l, "key"), "told: there is none", "and errors of ours arrive there")
	assert.Contains(t, prompt(t, l, "key"), "-32077")
	assert.Equal(t, "written", prompt(t, l, "long line"))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = l.ExecutePrompt(ctx, catalog.ExecutePromptParams{Prompt: "hang"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	again := acquire(t, s, acp("a"))
	assert.Equal(t, prompt(t, l, "pid"), prompt(t, again, "pid"), "the caller that gave up did not lose the executor")
	again.Release()
}

// reportedBeside returns what the hub gets from an executor with a prompt, while another one has a
// task, too.
func reportedBeside(t *testing.T, p catalog.ExecutePromptParams) []string {
	daemon := &asked{}
	s := newSupervisor(t, func(o *Options) { o.Daemon = daemon })
	l := acquire(t, s, acp("a"))
	defer l.Release()
	other := acquire(t, s, acp("b"))
	defer other.Release()
	_, err := other.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "pid", TaskID: "another's"})
	require.NoError(t, err)
	_, err = l.ExecutePrompt(context.Background(), p)
	require.NoError(t, err)
	daemon.mu.Lock()
	defer daemon.mu.Unlock()
	return daemon.reported
}

func TestTerminalsOfOtherTasksAreRefused(t *testing.T) {
	reported := reportedBeside(t, catalog.ExecutePromptParams{Prompt: "terminal", TaskID: "own"})
	assert.Equal(t, []string{"started own", "output own", "exit own", "started ", "output ", "exit "}, reported)
}

// An executor may report about its own sessions, also between two of its own tasks. A
// report about others does not affect its turns.
func TestSessionsOfOtherExecutorsAreRefused(t *testing.T) {
	reported := reportedBeside(t, catalog.ExecutePromptParams{Prompt: "session", SessionID: "a", TaskID: "own"})
	assert.Equal(t, []string{"session a after own"}, reported)
}

// Agents are found by their marks, and no other process is.
func TestKillAgents(t *testing.T) {
	needsProc(t)
	start := func(environment ...string) (pid string) {
		self, err := os.Executable()
		require.NoError(t, err)
		agent := exec.Command(self)
		agent.Env = append(environment, role+"=agent")
		agent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, agent.Start())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = agent.Wait() }()
		t.Cleanup(func() { _ = agent.Process.Kill(); <-ended })
		return fmt.Sprint(agent.Process.Pid)
	}
	mark := fmt.Sprint("mark-", os.Getpid())
	one, other := start(catalog.MarkVariable+"="+mark), start(catalog.MarkVariable+"="+mark+"-other")
	others := []string{start("DUET_AGENT=" + mark), start(catalog.MarkVariable + "=")}
	pidOf := func(pid string) int {
		n, err := strconv.Atoi(pid)
		require.NoError(t, err)
		return n
	}
	KillAgents([]domain.Process{{PID: pidOf(one), Mark: mark}, {PID: pidOf(other), Mark: mark + "-other"}, {PID: 1}})
	for _, pid := range []string{one, other} {
		testkit.AwaitExit(t, pidOf(pid))
	}
	for _, pid := range others {
		assert.True(t, alive(pid))
	}
}

func TestEnvironmentIsComplete(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HUB", "x")
	s := newSupervisor(t)
	l := acquire(t, s, acp("a"))
	defer l.Release()
	var names []string
	for line := range strings.Lines(prompt(t, l, "environment")) {
		if name := strings.TrimSpace(line); !strings.HasPrefix(name, "GOCOVERDIR") {
			names = append(names, name)
		}
	}
	assert.ElementsMatch(t, []string{role + "=executor", "LISTED=yes", atOnce, "DUET_EXECUTOR_FD=3"}, names)
}

func TestAgentsOfADeadExecutorAreKilled(t *testing.T) {
	needsProc(t)
	for _, how := range []string{"crash", "kill", "close"} {
		t.Run(how, func(t *testing.T) {
			daemon := &asked{}
			s := newSupervisor(t, func(o *Options) { o.Daemon = daemon })
			l := acquire(t, s, acp("a"))
			defer l.Release()
			pid := ""
			if how == "crash" {
				_, err := l.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "agent and crash", TaskID: fmt.Sprint(os.Getpid(), how)})
				require.Error(t, err)
				daemon.mu.Lock()
				require.Len(t, daemon.reported, 1, "the hub is notified too")
				var p catalog.Process
				require.NoError(t, json.Unmarshal([]byte(daemon.reported[0]), &p))
				daemon.mu.Unlock()
				pid = fmt.Sprint(p.PID)
			} else {
				pid = prompt(t, l, "agent")
				require.True(t, alive(pid))
			}
			switch how {
			case "kill":
				l.Kill()
			case "close":
				closed(t, s)
			}
			n, err := strconv.Atoi(pid)
			require.NoError(t, err)
			testkit.AwaitExit(t, n)
			requireNone(t, s)
		})
	}
}

func TestInvalidExecutors(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		role    string
		says    string
	}{
		"not there":       {[]string{"/no/such/program"}, "", "no such file"},
		"not configured":  {nil, "", "no command"},
		"ends at once":    {nil, "gone", "ended at once"},
		"answers nothing": {nil, "deaf", "did not answer within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSupervisor(t, func(o *Options) {
				o.StartWithin = 300 * time.Millisecond
				if c.role == "" {
					o.Command = func() []string { return c.command }
				} else {
					o.Environment = []string{role + "=" + c.role, atOnce}
				}
			})
			if c.role == "gone" {
				s.opts.StartWithin = within
			}
			for range 2 {
				_, err := s.Acquire(context.Background(), acp("a"))
				require.ErrorContains(t, err, c.says)
			}
			requireNone(t, s)
		})
	}
}

func TestCloseLeavesNothingRunning(t *testing.T) {
	needsProc(t)
	s := newSupervisor(t)
	busy := acquire(t, s, acp("busy"))
	pid := prompt(t, busy, "pid")
	ended := make(chan error, 1)
	go func() {
		_, err := busy.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "hang"})
		ended <- err
	}()
	var starting sync.WaitGroup
	for i := range 4 {
		starting.Go(func() {
			if l, err := s.Acquire(context.Background(), acp(fmt.Sprint(i))); err == nil {
				l.Release()
			}
		})
	}
	closed(t, s)
	starting.Wait()
	require.Error(t, <-ended)
	assert.False(t, alive(pid))
	_, err := s.Acquire(context.Background(), acp("late"))
	assert.ErrorIs(t, err, errClosed)
	closed(t, s)
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	s := newSupervisor(t, func(o *Options) { o.Environment = []string{role + "=deaf"} })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Acquire(ctx, acp("a"))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

// A third-party executor runs one session of one agent, and is started by its own command.
func TestThirdPartyExecutor(t *testing.T) {
	s := newSupervisor(t, func(o *Options) { o.Command = func() []string { return []string{"/no/such/program"} } })
	pids := map[string]bool{}
	for _, w := range []catalog.LeaseRequest{foreign("x", "1"), foreign("x", "2"), foreign("y", "1")} {
		l := acquire(t, s, w)
		pids[prompt(t, l, "pid")] = true
		l.Release()
		again := acquire(t, s, w)
		pids[prompt(t, again, "pid")] = true
		again.Release()
	}
	assert.Len(t, pids, 3)
}
