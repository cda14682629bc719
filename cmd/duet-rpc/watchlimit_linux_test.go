//go:build clients

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A limit of the system that is reached is reported wherever a user looks.
func TestAWatchLimitIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agents("[[triggers]]\nid = \"files\"\nsource = \"watch\"\npaths = [\"src\"]\naction = { type = \"notify\", message = \"{{payload.path}}\" }\n")
	for i := range 40 {
		require.NoError(t, os.MkdirAll(filepath.Join(s.root, "src", fmt.Sprint(i)), 0o755))
	}
	s.watchAtMost(30) // the hub has some for its own files
	editor := s.start()
	const reported = "directories are not watched: the system allows no more watches (sysctl fs.inotify.max_user_watches)"
	var status struct {
		Health string
		Issues []string
	}
	require.Eventually(t, func() bool {
		editor.call("daemon.status", object{}, &status)
		return status.Health == "degraded" && strings.Contains(strings.Join(status.Issues, "; "), reported)
	}, watchdog/3, pollEvery, "no limit is reported")
	cmd := exec.Command(program, "--root", s.root, "triggers")
	cmd.Env = append(cleanEnvironment(), s.launch().env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, strings.Join(strings.Fields(string(out)), " "), reported)
	out2, _ := s.command("doctor", "--json")
	assert.Contains(t, out2, reported)

	// What is watched stays so.
	editor.subscribe()
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "src", "here"), []byte("x"), 0o600))
	editor.await("a trigger", func(e event) bool {
		return e.Type == "trigger_executed" && strings.Contains(string(e.Raw), "src/here")
	})
	editor.leave()
}

// watchAtMost runs the hub on a system that lets it watch so many directories.
func (s *site) watchAtMost(n int) {
	s.t.Helper()
	unshare := testkit.NeedTool(s.t, "unshare")
	if out, err := exec.Command(unshare, "--user", "--map-root-user", "sh", "-c", "echo 9 >/proc/sys/user/max_inotify_watches").CombinedOutput(); err != nil {
		testkit.SkipMissing(s.t, "no limit of one's own can be set here: "+string(out))
	}
	// A shell would not keep the arguments apart that the program is given.
	script := filepath.Join(s.home, "limited")
	text := fmt.Sprintf("#!/bin/sh\nexec %s --user --map-root-user sh -c 'echo %d >/proc/sys/user/max_inotify_watches; exec \"$@\"' sh %s \"$@\"\n", unshare, n, program)
	testkit.Program(s.t, script, text)
	s.binary = script
}
