package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// newStore returns an empty store, in a directory whose name is free of links.
func newStore(t *testing.T) (dir string, store *config.Store) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir, config.NewTrust(filepath.Join(dir, "state", "trusted.json"))
}

func TestTrustIsForAPlace(t *testing.T) {
	dir, store := newStore(t)
	content := []byte("hub = \"daemon\"")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "project"), 0o700))
	file, elsewhere := filepath.Join(dir, "project", ".duet.toml"), filepath.Join(dir, "elsewhere.toml")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	trusts := func(path string, content []byte) bool {
		t.Helper()
		yes, err := store.Trusts(path, content)
		require.NoError(t, err)
		return yes
	}
	require.NoError(t, store.Trust(file, content))
	assert.True(t, trusts(file, content))
	assert.False(t, trusts(file, append(content, '#')), "other content in the same place")
	assert.False(t, trusts(elsewhere, content), "the same content in another place")

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(filepath.Dir(file), link))
	assert.True(t, trusts(filepath.Join(link, ".duet.toml"), content), "the same file by another name")

	require.NoError(t, os.Remove(file))
	known, err := store.Remembers(file)
	require.NoError(t, err)
	assert.True(t, known, "a file that has gone is remembered")
	require.NoError(t, store.Revoke(filepath.Join(link, ".duet.toml")), "also of a file that has gone")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	assert.False(t, trusts(file, content))
	known, err = store.Remembers(file)
	require.NoError(t, err)
	assert.False(t, known)
}

func TestAStoreIsSharedByMany(t *testing.T) {
	dir, store := newStore(t)
	const many = 20
	content := func(i int) []byte { return []byte(strings.Repeat("#", i)) }
	file := func(i int) string { return filepath.Join(dir, fmt.Sprintf("%d.toml", i)) }
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			own := config.NewTrust(store.Path()) // as another process has its own
			assert.NoError(t, own.Trust(file(i), content(i)))
			yes, err := own.Trusts(file(i), content(i))
			assert.NoError(t, err)
			assert.True(t, yes)
			if i%2 == 1 {
				assert.NoError(t, own.Revoke(file(i)))
			}
		})
	}
	group.Wait()
	for i := range many {
		yes, err := store.Trusts(file(i), content(i))
		require.NoError(t, err)
		assert.Equal(t, i%2 == 0, yes, file(i))
	}
	text, err := os.ReadFile(store.Path())
	require.NoError(t, err)
	assert.True(t, json.Valid(text))
	left, err := filepath.Glob(filepath.Join(filepath.Dir(store.Path()), ".duet-*"))
	require.NoError(t, err)
	assert.Empty(t, left, "no temporary file stays")
}
