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

// Owners decides whose files count: those of the user of this process, and those of root, who
// can do anything anyway. If root was reached with sudo, also those of the user who ran it.
// Files of other users do not count: otherwise any user who may write to /tmp could turn all
// directories in there into a project.
//
// The zero value makes no exception. It may be used by many goroutines.
type Owners struct {
	// Safe, if set, returns the directories in which all users' files count, as git's
	// safe.directory does. A path means that directory alone, one that ends in /* everything
	// below it, and * all directories. It is called only for another user's file.
	Safe func() []string

	// ownerOf returns the owner of a file; nil means the system's answer. known is false if
	// there is none.
	ownerOf func(fs.FileInfo) (uid int, known bool)
}

// A ForeignError reports that a file belongs to another user and does not count.
type ForeignError struct {
	Path string
	UID  int // the owner's id
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s belongs to user %d and is not used: take it over with chown, or name its directory in DUET_SAFE_DIRECTORIES or "+
		"in safe_directories of your own configuration",
		e.Path, e.UID)
}

// Check returns a [ForeignError] if a file, with its info, belongs to another user and its
// directory is not a safe one.
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

// CheckFile is Check for a file by its name, for its directory, and for the target if it is a
// link. A file that does not exist passes.
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

// isOurs reports whether a file counts, and returns its owner.
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
		case all && (strings.HasPrefix(dir, filepath.Clean(below)+string(filepath.Separator)) ||
			strings.HasPrefix(dir, resolve(below)+string(filepath.Separator))):
			return true
		}
	}
	return false
}

// SafeDirectories returns the directories of the environment variable DUET_SAFE_DIRECTORIES, a
// list like PATH, and those of more, which it calls once, on demand.
func SafeDirectories(getenv func(string) string, more func() []string) func() []string {
	return sync.OnceValue(func() []string {
		list := filepath.SplitList(getenv("DUET_SAFE_DIRECTORIES"))
		return append(list, more()...)
	})
}
