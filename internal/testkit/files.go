package testkit

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// ReadFiles returns the files below a directory, without .git: links with "-> ", executable files
// with "x " before their text.
func ReadFiles(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, name)
		require.NoError(t, err)
		switch info, err := d.Info(); {
		case err != nil:
			return err
		case d.Name() == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(name)
			require.NoError(t, err)
			found[below] = "-> " + target
		case d.Type().IsRegular():
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			if info.Mode()&0o100 != 0 {
				text = append([]byte("x "), text...)
			}
			found[below] = string(text)
		}
		return nil
	}))
	return found
}
