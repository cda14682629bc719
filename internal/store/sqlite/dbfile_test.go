package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// header returns the beginning of a file with pages of 4096 bytes, like SQLite's.
func header(pages, version byte) []byte {
	head := make([]byte, 100)
	copy(head, "SQLite format 3\x00")
	head[16], head[31], head[63] = 0x10, pages, version
	return head
}

func TestFileVersion(t *testing.T) {
	for name, test := range map[string]struct {
		content []byte
		log     string
		version int
		problem string
	}{
		"nothing committed yet": {content: []byte{}},
		"whole":                 {content: append(header(1, 7), make([]byte, 4096-100)...), version: 7},
		"too short":             {content: []byte("SQLite format 3"), problem: "it is too short"},
		"something else":        {content: make([]byte, 100), problem: "it is not an SQLite database"},
		"cut off":               {content: header(2, 7), problem: "it is cut off: 100 of 8192 bytes"},
		"the rest is in a log":  {content: header(2, 7), log: "frames", version: 7},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			require.NoError(t, os.WriteFile(path, test.content, 0o600))
			if test.log != "" {
				require.NoError(t, os.WriteFile(path+"-wal", []byte(test.log), 0o600))
			}
			version, err := fileVersion(path)
			if test.problem != "" {
				var damaged *damagedError
				require.ErrorAs(t, err, &damaged)
				assert.Equal(t, test.problem, err.Error())
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.version, version)
		})
	}
	version, err := fileVersion(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, err)
	assert.Zero(t, version)
	_, err = fileVersion(t.TempDir())
	assert.Error(t, err, "a directory")
}

func TestFileIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	_, err := identifyFile(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		require.NoError(t, os.WriteFile(path+suffix, []byte("old"), 0o600))
	}
	i, err := identifyFile(path)
	require.NoError(t, err)
	require.NoError(t, i.CheckDatabase())
	require.NoError(t, i.CheckLog())

	require.NoError(t, os.Remove(path+"-shm"))
	assert.NoError(t, i.CheckDatabase())
	assert.ErrorContains(t, i.CheckLog(), "a.db-shm is not the file that was opened")
	require.NoError(t, os.WriteFile(path+".new", []byte("another"), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
	assert.ErrorContains(t, i.CheckDatabase(), "a.db is not the file that was opened")
}
