//go:build soak

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Many files that change at once are one event, and take little memory.
func TestManyFilesThatChangeAreOneEvent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	fast, err := fastProgram() // what the race detector needs is not looked at
	require.NoError(t, err)
	s.binary = fast
	s.agents("[[triggers]]\nid = \"files\"\nsource = \"watch\"\npaths = [\"src\"]\ndebounce = \"5s\"\naction = { type = \"notify\", message = \"{{payload.count}} files\" }\n")
	const dirs, files = 20, 1000
	for i := range dirs {
		require.NoError(t, os.MkdirAll(filepath.Join(s.root, "src", fmt.Sprint(i)), 0o755))
	}
	editor := s.start()
	editor.subscribe()
	var watched struct {
		Subsystems struct {
			Watcher struct{ Directories int } `json:"file_watcher"`
		}
	}
	require.Eventually(t, func() bool {
		editor.call("daemon.status", object{}, &watched)
		return watched.Subsystems.Watcher.Directories == dirs+2
	}, watchdog/3, pollEvery)
	hub := hubOf(t, editor)
	before := memoryOf(t, hub, "VmHWM")
	began := time.Now()
	for i := range dirs {
		for j := range files {
			require.NoError(t, os.WriteFile(filepath.Join(s.root, "src", fmt.Sprint(i), fmt.Sprint(j)), nil, 0o600))
		}
	}
	writing := time.Since(began)
	events, reported := 0, 0
	for reported < dirs*files {
		done := editor.await("a trigger", func(e event) bool { return e.Type == "trigger_executed" })
		var data struct{ Message string }
		require.NoError(t, json.Unmarshal(done.Raw, &data))
		n, err := strconv.Atoi(strings.TrimSuffix(data.Message, " files"))
		require.NoError(t, err)
		events, reported = events+1, reported+n
	}
	if events == 1 {
		assert.Equal(t, dirs*files, reported)
	} // else the system may have left changes out, and reports those of the last minute once more
	// An event takes a silence of 5 s, or half a minute of changes.
	assert.LessOrEqual(t, events, 1+int(writing/(5*time.Second)), "writing took %s", writing)
	after := memoryOf(t, hub, "VmHWM")
	t.Logf("%d MiB at most, %d before", after>>20, before>>20)
	assert.Less(t, after-before, 48<<20)
	editor.leave()
}
