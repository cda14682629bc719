package main_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stubbornOnce is a gate that runs until it is killed, and passes when it is run again. Its
// processes are those of stubborn.
var stubbornOnce = strings.NewReplacer("[[builds]]", "[[gates]]", `"""trap`, `"""test -e ran && exit 0
touch ran
trap`).Replace(stubborn)

// sendGated has a task sent whose gate is that, and waits until all processes of it are there.
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
	t.Parallel()
	t.Run("it is killed, and another takes its place", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		s.agents(stubbornOnce)
		hub, other := s.hubAndOther()
		other.subscribe()
		ended := s.sendGated(other)
		hub.crash()
		var lost *wireError
		require.ErrorAs(t, <-ended, &lost)
		assert.Equal(t, "hub_lost", lost.kind())
		s.requireNoBuild("its hub, which was killed")
		other.await("the gate passes with the next hub", gatesEnded("passed"))
		other.leave()
	})
	t.Run("its executor is killed with it", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		s.agents(stubbornOnce)
		hub := s.start()
		s.sendGated(hub)
		var executors []int // that of the agent, too
		for _, r := range s.running() {
			if strings.HasSuffix(r.command, " executor") {
				suspend(t, r.pid) // it is to end nothing itself
				executors = append(executors, r.pid)
			}
		}
		hub.crash()
		for _, pid := range executors {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		next := s.start()
		next.subscribe()
		next.await("the gate passes with the next hub", gatesEnded("passed"))
		s.requireNoBuild("the next hub's start")
		next.leave()
	})
}

func TestAGateEndsWithItsTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agents(stubbornOnce)
	hub, other := s.hubAndOther()
	hub.subscribe()
	ended := s.sendGated(other)
	hub.call("cancelTask", object{"taskId": "mine"}, nil)
	var cancelled *wireError
	require.ErrorAs(t, <-ended, &cancelled)
	assert.Equal(t, -32004, cancelled.Code)
	assert.Equal(t, "task_cancelled", cancelled.kind())
	hub.await("the check is stopped", gatesEnded("stopped"))
	s.requireNoBuild("its task")
	other.leave()
	hub.leave()
}
