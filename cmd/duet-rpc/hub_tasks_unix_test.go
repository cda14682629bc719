//go:build unix

package main_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// However a hub ends, a client that follows tasks learns once how each has ended,
// also who came to another hub then.
func TestEndOfTasksIsToldWhenTheHubEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, hub int, other *client){
		"SIGKILL": func(t *testing.T, hub int, _ *client) { require.NoError(t, syscall.Kill(hub, syscall.SIGKILL)) },
		"SIGTERM": func(t *testing.T, hub int, _ *client) { require.NoError(t, syscall.Kill(hub, syscall.SIGTERM)) },
		"daemon.stop": func(_ *testing.T, _ int, other *client) {
			other.call("daemon.stop", object{"force": true}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			hub := s.start()
			hub.subscribe()
			before := hub.launch("quiet permit:1 before", "") // before any client follows tasks
			hub.awaitQuestion(before.SessionID)
			attached := s.start()
			process := hubOf(t, attached)
			require.Equal(t, process, hubOf(t, hub))
			attached.call("task.stats", object{}, nil)
			line := s.lines()
			line.call("task.stats", object{}, nil)
			after := hub.launch("quiet permit:1 after", "")
			hub.awaitQuestion(after.SessionID)
			attached.awaitNote("event.taskStarted", after.TaskID)

			end(t, process, attached)
			s.awaitRelease(process)                                // until then it refuses what is asked
			for attached.try("task.stats", object{}, nil) != nil { // what needs a hub
			}
			for _, task := range []launched{before, after} {
				attached.awaitNote("event.taskCancelled", task.TaskID)
			}
			again := attached.launch("quiet", "")
			attached.awaitNote("event.taskCompleted", again.TaskID)
			assert.Equal(t, 1, attached.count("event.taskCancelled", before.TaskID), "once")
			assert.Equal(t, 1, attached.count("event.taskCancelled", after.TaskID), "once")
			if name == "daemon.stop" { // a signal leaves less time
				line.requireClosed()
				for _, task := range []launched{before, after} {
					assert.Equal(t, 1, line.count("event.taskCancelled", task.TaskID), "before the connection ended")
				}
			}
			attached.leave()
		})
	}
}
