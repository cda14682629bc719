//go:build unix

package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What keeps the hub from being opened can be mended while the editor's process
// runs.
func TestWhatIsMendedWorks(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]struct {
		says          string
		spoil, mended func(s *site) error
	}{
		"a mistake in the configuration": {
			says: ".duet.toml:1",
			spoil: func(s *site) error {
				return os.WriteFile(filepath.Join(s.root, ".duet.toml"), []byte("hub = \n"), 0o600)
			},
			mended: func(s *site) error { return os.WriteFile(filepath.Join(s.root, ".duet.toml"), nil, 0o600) },
		},
		"no place for the state": {
			says: "is no directory",
			spoil: func(s *site) error {
				return errors.Join(os.MkdirAll(filepath.Dir(s.state()), 0o700), os.WriteFile(s.state(), nil, 0o600))
			},
			mended: func(s *site) error { return os.Remove(s.state()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			require.NoError(t, wrong.spoil(s))
			c := s.start()
			require.ErrorContains(t, c.try("listSessions", object{}, nil), wrong.says)
			c.requireCore()
			var health struct{ Issues []string }
			c.call("health", object{}, &health)
			assert.Contains(t, strings.Join(health.Issues, "\n"), wrong.says)

			require.NoError(t, wrong.mended(s))
			require.Eventually(t, func() bool {
				return c.try("listSessions", object{}, nil) == nil
			}, watchdog/3, pollEvery, "it works again")
			c.subscribe()
			assert.Equal(t, "completed", c.awaitEnd(c.launch("quiet", "").SessionID).Data.State)
			health.Issues = nil
			c.call("health", object{}, &health)
			assert.Empty(t, health.Issues)

			// And it is the hub for others.
			second := s.start()
			second.subscribe()
			assert.Equal(t, hubOf(t, c), hubOf(t, second))
			second.leave()
			c.leave()
		})
	}
}
