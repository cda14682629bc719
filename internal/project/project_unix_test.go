//go:build unix

package project_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// What is in the state is a file of its own: a pipe would be waited for, and
// what has another name is shared with somebody.
func TestCheckRefusesWhatIsNoFileOfItsOwn(t *testing.T) {
	for _, name := range []string{"duet.db", "duet.db-wal", "lock", "starting", "stopped", "reserve", "socket", "duet.sock", "logs/daemon.log"} {
		for says, make := range map[string]func(path string) error{
			"is a named pipe": func(path string) error { return unix.Mkfifo(path, 0o600) },
			"has another name elsewhere": func(path string) error {
				other := filepath.Join(t.TempDir(), "other")
				if err := os.WriteFile(other, nil, 0o600); err != nil {
					return err
				}
				return os.Link(other, path)
			},
		} {
			t.Run(name+" "+says, func(t *testing.T) {
				p := prepared(t)
				path := filepath.Join(p.StateDir, name)
				require.NoError(t, make(path))
				for _, err := range []error{p.Check(), p.Prepare()} {
					var refused *project.NotPrivateError
					require.ErrorAs(t, err, &refused)
					assert.Equal(t, path, refused.Path)
					assert.ErrorContains(t, err, says)
					assert.ErrorContains(t, err, "remove it")
				}
				require.NoError(t, os.Remove(path))
				require.NoError(t, p.Check())
			})
		}
	}
}
