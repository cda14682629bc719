package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/needs"
)

// watchAtMost runs the hub on a system that lets it watch so many directories.
func (s *site) watchAtMost(n int) {
	s.t.Helper()
	unshare := needs.Tool(s.t, "unshare")
	if out, err := exec.Command(unshare, "--user", "--map-root-user", "sh", "-c", "echo 9 >/proc/sys/user/max_inotify_watches").CombinedOutput(); err != nil {
		needs.Missing(s.t, "no limit of one's own can be set here: "+string(out))
	}
	// A shell would not keep the arguments apart that the program is given.
	script := filepath.Join(s.home, "limited")
	text := fmt.Sprintf("#!/bin/sh\nexec %s --user --map-root-user sh -c 'echo %d >/proc/sys/user/max_inotify_watches; exec \"$@\"' sh %s \"$@\"\n", unshare, n, program)
	require.NoError(s.t, os.WriteFile(script, []byte(text), 0o755))
	s.binary = script
}

// A limit of the system that is reached is told wherever somebody looks.
func TestAWatchLimitIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agents("[[triggers]]\nid = \"files\"\nsource = \"watch\"\npaths = [\"src\"]\naction = { type = \"notify\", message = \"{{payload.path}}\" }\n")
	for i := range 40 {
		require.NoError(t, os.MkdirAll(filepath.Join(s.root, "src", fmt.Sprint(i)), 0o755))
	}
	s.watchAtMost(30) // the hub has some for its own files
	editor := s.start()
	const told = "directories are not watched: the system allows no more watches (sysctl fs.inotify.max_user_watches)"
	var status struct {
		Health string
		Issues []string
	}
	require.Eventually(t, func() bool {
		editor.call("daemon.status", object{}, &status)
		return status.Health == "degraded" && strings.Contains(strings.Join(status.Issues, "; "), told)
	}, watchdog/3, pollEvery, "no limit is told")
	cmd := exec.Command(program, "--root", s.root, "triggers")
	cmd.Env = append(cleanEnvironment(), s.launch().env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, strings.Join(strings.Fields(string(out)), " "), told)
	out2, _ := s.command("doctor", "--json")
	assert.Contains(t, out2, told)

	// What is watched stays so.
	editor.subscribe()
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "src", "here"), []byte("x"), 0o600))
	editor.await("a trigger", func(e event) bool {
		return e.Type == "trigger_executed" && strings.Contains(string(e.Raw), "src/here")
	})
	editor.leave()
}

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
	before := editor.memory(t, "VmHWM")
	began := time.Now()
	for i := range dirs {
		for j := range files {
			require.NoError(t, os.WriteFile(filepath.Join(s.root, "src", fmt.Sprint(i), fmt.Sprint(j)), nil, 0o600))
		}
	}
	writing := time.Since(began)
	events, told := 0, 0
	for told < dirs*files {
		done := editor.await("a trigger", func(e event) bool { return e.Type == "trigger_executed" })
		var data struct{ Message string }
		require.NoError(t, json.Unmarshal(done.Raw, &data))
		n, err := strconv.Atoi(strings.TrimSuffix(data.Message, " files"))
		require.NoError(t, err)
		events, told = events+1, told+n
	}
	if events == 1 {
		assert.Equal(t, dirs*files, told)
	} // else the system may have left changes out, and those of the last minute are told once more
	// An event takes a silence of 5 s, or half a minute of changes.
	assert.LessOrEqual(t, events, 1+int(writing/(5*time.Second)), "writing took %s", writing)
	after := editor.memory(t, "VmHWM")
	t.Logf("%d MiB at most, %d before", after>>20, before>>20)
	assert.Less(t, after-before, 48<<20)
	editor.leave()
}
