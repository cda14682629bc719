package hub

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

	"github.com/duet-rpc/duet-rpc/internal/e2e"
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
func stubbornProcesses(s *e2e.Site) (list []string) {
	for _, r := range s.Running() {
		if strings.Contains(r.Command, "sleep 6061") {
			list = append(list, r.Command)
		}
	}
	return list
}

// startStubborn has a client build, and waits for all processes of the build. The channel receives
// the result of the request.
func startStubborn(s *e2e.Site, c *e2e.Client) (ended <-chan error) {
	s.T.Helper()
	answer := make(chan error, 1)
	go func() { answer <- c.Try("build", object{}, nil) }()
	requireStubborn(s, "the build does not run")
	return answer
}

// requireStubborn waits for all processes of a stubborn command.
func requireStubborn(s *e2e.Site, or string) {
	s.T.Helper()
	require.Eventually(s.T, func() bool { return len(stubbornProcesses(s)) >= 8 }, time.Minute, e2e.PollEvery, or)
}

func requireNoBuild(s *e2e.Site, when string) {
	s.T.Helper()
	require.Eventually(s.T, func() bool { return len(stubbornProcesses(s)) == 0 }, time.Minute, e2e.PollEvery, "the build outlives %s", when)
}

// hubAndOther returns two editors of the same hub.
func hubAndOther(s *e2e.Site) (hub, other *e2e.Client) {
	s.T.Helper()
	hub, other = s.Start(), s.Start()
	require.Equal(s.T, e2e.HubOf(s.T, hub), e2e.HubOf(s.T, other))
	return hub, other
}

func TestABuildEndsWhateverEndsItsHub(t *testing.T) {
	t.Parallel()
	t.Run("it is killed, and another takes its place", func(t *testing.T) {
		s := e2e.NewSite(e2e.Parallel(t), stubborn)
		hub, other := hubAndOther(s)
		ended := startStubborn(s, other)
		hub.Crash()
		assert.Equal(t, "hub_lost", e2e.KindOf(t, <-ended))
		requireNoBuild(s, "the kill of its hub")
		other.Leave()
	})
	t.Run("its executor is killed with it", func(t *testing.T) {
		s := e2e.NewSite(e2e.Parallel(t), stubborn)
		hub := s.Start()
		startStubborn(s, hub)
		executor := s.Find(t, " executor")
		e2e.Suspend(t, executor.PID) // a suspended executor ends no process itself
		hub.Crash()
		require.NoError(t, syscall.Kill(executor.PID, syscall.SIGKILL))
		next := s.Start()
		next.Call("daemon.status", object{}, nil)
		requireNoBuild(s, "the next hub's start")
		next.Leave()
	})
	t.Run("it ends", func(t *testing.T) {
		s := e2e.NewSite(e2e.Parallel(t), stubborn)
		hub := s.Start()
		startStubborn(s, hub)
		hub.CloseStdin()
		<-hub.Ended
		requireNoBuild(s, "the end of its hub")
	})
}

func TestABuildEndsWithItsExecutor(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t), stubborn)
	c := s.Start()
	ended := startStubborn(s, c)
	e2e.Kill(t, s.Find(t, " executor"))
	assert.Equal(t, "executor_failed", e2e.KindOf(t, <-ended))
	requireNoBuild(s, "its executor")
	c.Leave()
}

func TestABuildEndsWithWhoeverAskedForIt(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t), stubborn)
	hub, other := hubAndOther(s)
	hub.Subscribe()
	startStubborn(s, other)
	other.Leave()
	requireNoBuild(s, "its connection")
	end := hub.Await("the end of the build", func(e e2e.Event) bool {
		return e.Type == "build_progress" && strings.Contains(string(e.Raw), `"cancelled"`)
	})
	assert.Contains(t, string(end.Raw), `"name":"stubborn"`)
	hub.Leave()
}

func TestAProjectIsBuiltAsItsFilesSuggest(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(s.Root, name), []byte(text), 0o644))
	}
	write("Makefile", "all:\n\t@echo 'lib.c:3:4: warning: old'\n\t@test -e fine\n")
	c := s.Start()
	failed := c.Refused("build", object{})
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
	c.Call("build", object{}, &built)
	assert.True(t, built.Success)
	assert.Len(t, built.Warnings, 1)

	write(".duet.toml", "[[builds]]\nname = 'mine'\nshell = 'echo mine > /dev/null'\n")
	assert.Equal(t, "not_trusted", c.Refused("build", object{}).Kind(), "neither the untrusted command nor make runs")
	c.Leave()
}

// stubbornOnce is a gate with the processes of stubborn. It runs until a kill, and its next run
// passes.
var stubbornOnce = strings.NewReplacer("[[builds]]", "[[gates]]", `"""trap`, `"""test -e ran && exit 0
touch ran
trap`).Replace(stubborn)

// sendGated starts a turn with this gate, and waits for all processes of the gate. The channel
// receives the result of the request.
func sendGated(s *e2e.Site, c *e2e.Client) (ended <-chan error) {
	s.T.Helper()
	answer := make(chan error, 1)
	go func() {
		answer <- c.Try("sendTask", object{"prompt": "quiet", "agent": "demo", "taskId": "mine", "gates": []string{"stubborn"}}, nil)
	}()
	requireStubborn(s, "the gate does not run")
	return answer
}

func gatesEnded(state string) func(e2e.Event) bool {
	return func(e e2e.Event) bool {
		return e.Type == "gates_complete" && strings.Contains(string(e.Raw), `"gates_state":"`+state+`"`)
	}
}

func TestAGateEndsWithItsHubAndIsRunByTheNext(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t), stubbornOnce)
	hub, other := hubAndOther(s)
	other.Subscribe()
	ended := sendGated(s, other)
	hub.Crash()
	assert.Equal(t, "hub_lost", e2e.KindOf(t, <-ended))
	requireNoBuild(s, "the kill of its hub")
	other.Await("the gate passes with the next hub", gatesEnded("passed"))
	other.Leave()
}

func TestAGateEndsWithItsTask(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t), stubbornOnce)
	hub, other := hubAndOther(s)
	hub.Subscribe()
	ended := sendGated(s, other)
	hub.Call("cancelTask", object{"taskId": "mine"}, nil)
	var cancelled *e2e.WireError
	require.ErrorAs(t, <-ended, &cancelled)
	assert.Equal(t, -32004, cancelled.Code)
	assert.Equal(t, "task_cancelled", cancelled.Kind())
	hub.Await("the stop of the gate", gatesEnded("stopped"))
	requireNoBuild(s, "its task")
	e2e.Leave(other, hub)
}
