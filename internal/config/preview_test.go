package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

func TestAPreviewOutsideOfTheProjectWaitsForTrust(t *testing.T) {
	for _, outside := range []string{"../site", "/srv/site", "~/site", "a/../../b"} {
		w := newWorld(t)
		w.write(w.user, "[preview]\ndirectory = 'mine'\n")
		w.write(w.project, "[preview]\ndirectory = '"+outside+"'\nfallback = false\n")
		c := w.load()
		assert.Equal(t, "mine", *c.Preview.Directory, outside)
		assert.False(t, *c.Preview.Fallback)
		assert.Equal(t, []string{w.project}, c.Untrusted)
		inspected, err := config.Inspect(w.project, w.getenv)
		require.NoError(t, err)
		require.Len(t, inspected.Asks, 1)
		assert.Equal(t, "preview.directory", inspected.Asks[0].Key)

		c = w.trusted().load()
		assert.NotEqual(t, "mine", *c.Preview.Directory, outside)
		assert.NotContains(t, *c.Preview.Directory, "~")
	}
}

func TestAPreviewWithinTheProjectNeedsNoTrust(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, "[preview]\ndirectory = '/mine'\nfallback = false\n")
	w.write(w.project, "[preview]\ndirectory = 'web/dist'\n")
	c := w.load()
	assert.Equal(t, "web/dist", *c.Preview.Directory)
	assert.Empty(t, c.Untrusted)
	assert.Contains(t, texts(c.Values()), `preview.directory "web/dist"`)
	assert.Contains(t, texts(c.Values()), "preview.fallback false")
}

func TestWrongPreviewsAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"[preview]\ndirectory = ''":   "directory in [preview]: expected a string",
		"[preview]\ndirectory = 1":    "directory in [preview]: expected",
		"[preview]\nfallback = 'yes'": "fallback in [preview]: expected",
		"[preview]\ndir = 'a'":        `unknown key "dir" in [preview]`,
		"[[preview]]\ndirectory = ''": "preview",
	} {
		w := newWorld(t)
		w.write(w.user, file)
		_, err := config.Load(w.sources())
		assert.ErrorContains(t, err, want, file)
	}
}
