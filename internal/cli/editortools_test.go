package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// An agent learns that its editor's tools have no hub, and no path of the user's files: neither
// without a hub, nor in a project whose state cannot be read.
func TestAgentsLearnNoPathOfAMissingHub(t *testing.T) {
	for name, lay := range map[string]func(root, state string) error{
		"no hub":          func(string, string) error { return nil },
		"unsafe state":    func(_, state string) error { return os.WriteFile(state, nil, 0o600) },
		"no such project": func(root, _ string) error { return os.Remove(root) },
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			root, state := filepath.Join(home, "project"), filepath.Join(home, "state")
			t.Setenv("HOME", home)
			t.Setenv("XDG_STATE_HOME", state)
			require.NoError(t, os.Mkdir(root, 0o700))
			require.NoError(t, lay(root, state))
			s := &hubprocess.Settings{Root: root, AnswerWithin: time.Minute}
			_, err := askEditor(t.Context(), s, protocol.EditorCallParams{Tool: protocol.EditorSelection})
			require.Error(t, err)
			assert.Equal(t, "the daemon cannot be reached; `duet-rpc doctor` tells the user why", err.Error())
		})
	}
}

// Of the hub's own errors, those about a missing hub are hidden from agents.
func TestErrorsForAgents(t *testing.T) {
	path := "the database /home/me/duet.db is damaged"
	unavailable := &client.Error{Code: -32603, Message: path, Data: []byte(`{"kind":"subsystem_unavailable"}`)}
	lost := &client.Error{Code: codeHubLost, Message: path}
	denied := &client.Error{Code: codePermissionDenied, Message: "denied"}
	for _, err := range []error{unavailable, lost, errors.New(path)} {
		assert.Equal(t, errNoHub, forAgent(err))
	}
	for _, err := range []error{nil, denied, context.Canceled} {
		assert.Equal(t, err, forAgent(err))
	}
}
