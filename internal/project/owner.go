package project

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Owners tell whose files count. Those of the user of this process do, and
// those of root, who can do anything anyway; where root was become with sudo,
// those of who did that, too. Those of others count for nothing: whoever may
// write to /tmp could make a project of everybody's directories in there.
//
// The zero value makes no exception. It may be used by many goroutines.
type Owners struct {
	// Safe, if set, gives the directories in which everybody's files count, as
	// git's safe.directory does: a path means that directory alone, one that
	// ends in /* all below it, and * all that there are. It is asked only where
	// a file of somebody else's is found.
	Safe func() []string

	// ownerOf tells the owner of a file; nil means the system's answer. known is
	// false where there is none.
	ownerOf func(fs.FileInfo) (uid int, known bool)
}

// A ForeignError says that a file is somebody else's, and counts for nothing.
type ForeignError struct {
	Path string
	UID  int // its owner
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s belongs to user %d and is not used: take it over with chown, or name its directory in DUET_SAFE_DIRECTORIES or in safe_directories of your own configuration",
		e.Path, e.UID)
}

// Check gives a [ForeignError] where a file, of which info is known, is
// somebody else's and its directory is not among the safe ones.
func (o Owners) Check(path string, info fs.FileInfo) error {
	uid, ours := o.isOurs(info)
	if ours {
		return nil
	}
	dir := path
	if !info.IsDir() || filepath.Base(path) == gitName {
		dir = filepath.Dir(path)
	}
	if o.Safe != nil && isSafe(dir, o.Safe()) {
		return nil
	}
	return &ForeignError{Path: path, UID: uid}
}

// CheckFile is Check of a file by its name, of the directory that it is in, and
// where it is a link, of what that leads to. What does not exist is nobody's.
func (o Owners) CheckFile(path string) error {
	dir := filepath.Dir(path)
	for _, look := range []struct {
		path string
		stat func(string) (fs.FileInfo, error)
	}{{path, os.Lstat}, {path, os.Stat}, {dir, os.Stat}} {
		if info, err := look.stat(look.path); err == nil {
			if err := o.Check(look.path, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// isOurs tells whether a file counts, and whose it is.
func (o Owners) isOurs(info fs.FileInfo) (uid int, ours bool) {
	ownerOf := o.ownerOf
	if ownerOf == nil {
		ownerOf = ownershipOwnerOf
	}
	uid, known := ownerOf(info)
	if !known || uid == 0 || uid == os.Geteuid() {
		return uid, true
	}
	return uid, os.Geteuid() == 0 && strconv.Itoa(uid) == os.Getenv("SUDO_UID")
}

func isSafe(dir string, safe []string) bool {
	for _, s := range safe {
		below, all := strings.CutSuffix(s, "/*")
		switch {
		case s == "*", filepath.Clean(s) == dir, SameFile(dir, s):
			return true
		case all && (strings.HasPrefix(dir, filepath.Clean(below)+string(filepath.Separator)) || strings.HasPrefix(dir, resolve(below)+string(filepath.Separator))):
			return true
		}
	}
	return false
}

// SafeDirectories are those of the environment variable DUET_SAFE_DIRECTORIES,
// a list as PATH is, and those that more gives, which is asked once, when they
// are needed.
func SafeDirectories(getenv func(string) string, more func() []string) func() []string {
	return sync.OnceValue(func() []string {
		list := filepath.SplitList(getenv("DUET_SAFE_DIRECTORIES"))
		return append(list, more()...)
	})
}
