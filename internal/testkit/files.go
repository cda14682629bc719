package testkit

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// WriteFiles writes files below a directory, in the form of ReadFiles. The text "" deletes the file or
// the directory. Deletions come first, so that a file may take the place of a directory.
func WriteFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if text == "" {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		if text == "" {
			continue
		}
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		if target, isLink := strings.CutPrefix(text, "-> "); isLink {
			os.Remove(name)
			require.NoError(t, os.Symlink(target, name))
			continue
		}
		text, executable := strings.CutPrefix(text, "x ")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		info, err := os.Stat(name)
		require.NoError(t, err)
		mode := info.Mode().Perm() &^ 0o111
		if executable {
			mode |= 0o111
		}
		require.NoError(t, os.Chmod(name, mode))
	}
}
