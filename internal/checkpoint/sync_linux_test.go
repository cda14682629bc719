package checkpoint_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// Take syncs the names of a checkpoint's objects before it writes the ref: after a power cut, a ref
// without its objects would make git gc fail. So a sync that fails leaves no ref.
func TestTakeSyncsObjectsBeforeTheRef(t *testing.T) {
	t.Parallel()
	for name, objects := range map[string]string{"the user's repository": "project/.git/objects", "a store of its own": "state/own-*/objects"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			refs := "state/own-*/refs"
			if name == "the user's repository" {
				w.git("init", "-q")
				refs = "project/.git/refs"
			}
			w.write(map[string]string{"a": "1\n"})
			w.open()
			found := func(pattern string) string {
				list, err := filepath.Glob(filepath.Join(w.home, pattern))
				require.NoError(t, err)
				require.Len(t, list, 1)
				return list[0]
			}
			// A directory of objects that cannot be opened to sync it: it is a socket without a listener.
			fails := filepath.Join(found(objects), "no")
			require.NoError(t, syscall.Mknod(fails, syscall.S_IFSOCK|0o600, 0))
			later := time.Now().Add(time.Hour)
			require.NoError(t, os.Chtimes(fails, later, later))

			_, err := w.Take(t.Context(), "one")
			require.ErrorIs(t, err, syscall.ENXIO)
			assert.Empty(t, testkit.ReadFiles(t, found(refs)), "the ref is written before the objects are synced")

			require.NoError(t, os.Remove(fails))
			_, err = w.Take(t.Context(), "one")
			require.NoError(t, err)
			assert.Len(t, testkit.ReadFiles(t, found(refs)), 1)
		})
	}
}
