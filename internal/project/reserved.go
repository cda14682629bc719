package project

import (
	"io/fs"
	"os"
	"path/filepath"
)

// reserved reports whether a directory never counts as a project on the way up, whatever it
// contains, and never holds state. Those are the home directory and its parents, directories for
// temporary files, and those of the system. Shared directories are below some of them; --root
// selects one explicitly.
func (f finder) reserved(dir string) bool {
	home := f.home
	if home != "" {
		home = resolve(home)
	}
	switch {
	case dir == filepath.Dir(dir), dir == home, SameFile(dir, home), home != "" && isBelow(home, dir), SameFile(dir, f.getenv("TMPDIR")), SameFile(dir, os.TempDir()):
		return true
	case home != "" && home != filepath.Dir(home) && isBelow(dir, home):
		return false // whatever the home directory is
	}
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSticky != 0 && sharedWrite(info) {
		return true // like /tmp
	}
	return ofSystem(dir)
}
