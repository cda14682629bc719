package project

import (
	"io/fs"
	"os"
	"path/filepath"
)

// reserved reports whether a directory is one that no project is found in on
// the way up, whatever is in it, and that no state is put into: the home
// directory and what is above it, where temporary files are, and where the
// system is. Everybody's directories are below some of them, and --root can
// say that one is meant.
func (f finder) reserved(dir string) bool {
	home := f.home
	if home != "" {
		home = resolve(home)
	}
	switch {
	case dir == filepath.Dir(dir), dir == home, SameFile(dir, home), home != "" && isBelow(home, dir), SameFile(dir, f.getenv("TMPDIR")), SameFile(dir, os.TempDir()):
		return true
	case home != "" && home != filepath.Dir(home) && isBelow(dir, home):
		return false // wherever a home is
	}
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSticky != 0 && sharedWrite(info) {
		return true // as /tmp is
	}
	return ofSystem(dir)
}
