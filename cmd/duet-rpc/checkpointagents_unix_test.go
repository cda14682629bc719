//go:build unix && clients

package main_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a real agent's shell command writes is a change of its session, which can be undone.
func TestFilesThatCommandsOfRealAgentsWrite(t *testing.T) {
	t.Parallel()
	for name, site := range agentsWithServers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site(t)
			s.rules = "[checkpoints]\nenabled = true\n"
			s.configure()
			c := s.open()
			defer s.close(c)
			var l launched
			c.call("launchSession", object{"query": "run: echo two > made", "agent": s.agent, "permission_mode": "bypassPermissions"}, &l)
			c.completes(l)
			var changed struct {
				Snapshots []struct {
					Path string `json:"file_path"`
					Diff string
				}
			}
			c.call("getSessionSnapshots", object{"session_id": l.SessionID}, &changed)
			require.Len(t, changed.Snapshots, 1)
			assert.Equal(t, "made", filepath.Base(changed.Snapshots[0].Path))
			assert.Contains(t, changed.Snapshots[0].Diff, "\n+two\n")
			c.call("session.decideChange", object{"session_id": l.SessionID, "path": changed.Snapshots[0].Path, "decision": "revert"}, nil)
			assert.NoFileExists(t, changed.Snapshots[0].Path)
		})
	}
}
