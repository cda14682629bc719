package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stubborn is a build whose processes ignore SIGINT and SIGTERM. Two of them have left the process
// group and the session. One of these two keeps only HOME of its environment.
const stubborn = `
[[builds]]
name = "stubborn"
shell = """trap '' INT TERM
(trap '' INT TERM HUP; while :; do sleep 6061; done) &
setsid sh -c 'trap "" INT TERM HUP; while :; do sleep 6061; done' &
env -i HOME="$HOME" setsid sh -c 'trap "" INT TERM HUP; while :; do sleep 6061; done' &
echo begun
wait; wait"""
`

// stubbornProcesses returns the living processes of a stubborn command.
func (s *site) stubbornProcesses() (list []string) {
	for _, r := range s.running() {
		if strings.Contains(r.command, "sleep 6061") {
			list = append(list, r.command)
		}
	}
	return list
}

// startStubborn has a client build, and waits for all processes of the build. The channel receives
// the result of the request.
func (s *site) startStubborn(c *client) (ended <-chan error) {
	s.t.Helper()
	answer := make(chan error, 1)
	go func() { answer <- c.try("build", object{}, nil) }()
	s.requireStubborn("the build does not run")
	return answer
}

// requireStubborn waits for all processes of a stubborn command.
func (s *site) requireStubborn(or string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return len(s.stubbornProcesses()) >= 8 }, time.Minute, pollEvery, or)
}

func (s *site) requireNoBuild(when string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return len(s.stubbornProcesses()) == 0 }, time.Minute, pollEvery, "the build outlives %s", when)
}

// hubAndOther returns two editors of the same hub.
func (s *site) hubAndOther() (hub, other *client) {
	s.t.Helper()
	hub, other = s.start(), s.start()
	require.Equal(s.t, hubOf(s.t, hub), hubOf(s.t, other))
	return hub, other
}

func TestABuildEndsWhateverEndsItsHub(t *testing.T) {
	t.Parallel()
	t.Run("it is killed, and another takes its place", func(t *testing.T) {
		s := newSite(parallel(t), stubborn)
		hub, other := s.hubAndOther()
		ended := s.startStubborn(other)
		hub.crash()
		assert.Equal(t, "hub_lost", kindOf(t, <-ended))
		s.requireNoBuild("the kill of its hub")
		other.leave()
	})
	t.Run("its executor is killed with it", func(t *testing.T) {
		s := newSite(parallel(t), stubborn)
		hub := s.start()
		s.startStubborn(hub)
		executor := s.find(t, " executor")
		suspend(t, executor.pid) // a suspended executor ends no process itself
		hub.crash()
		require.NoError(t, syscall.Kill(executor.pid, syscall.SIGKILL))
		next := s.start()
		next.call("daemon.status", object{}, nil)
		s.requireNoBuild("the next hub's start")
		next.leave()
	})
	t.Run("it ends", func(t *testing.T) {
		s := newSite(parallel(t), stubborn)
		hub := s.start()
		s.startStubborn(hub)
		hub.closeStdin()
		<-hub.ended
		s.requireNoBuild("the end of its hub")
	})
}

func TestABuildEndsWithItsExecutor(t *testing.T) {
	s := newSite(parallel(t), stubborn)
	c := s.start()
	ended := s.startStubborn(c)
	kill(t, s.find(t, " executor"))
	assert.Equal(t, "executor_failed", kindOf(t, <-ended))
	s.requireNoBuild("its executor")
	c.leave()
}

func TestABuildEndsWithWhoeverAskedForIt(t *testing.T) {
	s := newSite(parallel(t), stubborn)
	hub, other := s.hubAndOther()
	hub.subscribe()
	s.startStubborn(other)
	other.leave()
	s.requireNoBuild("its connection")
	end := hub.await("the end of the build", func(e event) bool {
		return e.Type == "build_progress" && strings.Contains(string(e.Raw), `"cancelled"`)
	})
	assert.Contains(t, string(end.Raw), `"name":"stubborn"`)
	hub.leave()
}

func TestAProjectIsBuiltAsItsFilesSuggest(t *testing.T) {
	s := newSite(parallel(t))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(s.root, name), []byte(text), 0o644))
	}
	write("Makefile", "all:\n\t@echo 'lib.c:3:4: warning: old'\n\t@test -e fine\n")
	c := s.start()
	failed := c.refused("build", object{})
	assert.Equal(t, -32001, failed.Code)
	var data struct {
		Kind, Name  string
		Diagnostics []struct {
			File, Severity, Message string
			Line                    int
		}
	}
	require.NoError(t, json.Unmarshal(failed.Data, &data))
	assert.Equal(t, "build_failed make", data.Kind+" "+data.Name)
	require.Len(t, data.Diagnostics, 2, "%s", failed.Data)
	assert.Equal(t, "lib.c", data.Diagnostics[0].File)
	assert.Equal(t, "Makefile", data.Diagnostics[1].File)
	write("fine", "")
	var built struct {
		Success  bool
		Warnings []json.RawMessage
	}
	c.call("build", object{}, &built)
	assert.True(t, built.Success)
	assert.Len(t, built.Warnings, 1)

	write(".duet.toml", "[[builds]]\nname = 'mine'\nshell = 'echo mine > /dev/null'\n")
	assert.Equal(t, "not_trusted", c.refused("build", object{}).kind(), "neither the untrusted command nor make runs")
	c.leave()
}

// stubbornOnce is a gate with the processes of stubborn. It runs until a kill, and its next run
// passes.
var stubbornOnce = strings.NewReplacer("[[builds]]", "[[gates]]", `"""trap`, `"""test -e ran && exit 0
touch ran
trap`).Replace(stubborn)

// sendGated sends a task with this gate, and waits for all processes of the gate. The channel
// receives the result of the request.
func (s *site) sendGated(c *client) (ended <-chan error) {
	s.t.Helper()
	answer := make(chan error, 1)
	go func() {
		answer <- c.try("sendTask", object{"prompt": "quiet", "agent": "demo", "taskId": "mine", "gates": []string{"stubborn"}}, nil)
	}()
	s.requireStubborn("the gate does not run")
	return answer
}

func gatesEnded(state string) func(event) bool {
	return func(e event) bool {
		return e.Type == "gates_complete" && strings.Contains(string(e.Raw), `"gates_state":"`+state+`"`)
	}
}

func TestAGateEndsWithItsHubAndIsRunByTheNext(t *testing.T) {
	s := newSite(parallel(t), stubbornOnce)
	hub, other := s.hubAndOther()
	other.subscribe()
	ended := s.sendGated(other)
	hub.crash()
	assert.Equal(t, "hub_lost", kindOf(t, <-ended))
	s.requireNoBuild("the kill of its hub")
	other.await("the gate passes with the next hub", gatesEnded("passed"))
	other.leave()
}

func TestAGateEndsWithItsTask(t *testing.T) {
	s := newSite(parallel(t), stubbornOnce)
	hub, other := s.hubAndOther()
	hub.subscribe()
	ended := s.sendGated(other)
	hub.call("cancelTask", object{"taskId": "mine"}, nil)
	var cancelled *wireError
	require.ErrorAs(t, <-ended, &cancelled)
	assert.Equal(t, -32004, cancelled.Code)
	assert.Equal(t, "task_cancelled", cancelled.kind())
	hub.await("the stop of the gate", gatesEnded("stopped"))
	s.requireNoBuild("its task")
	leave(other, hub)
}
