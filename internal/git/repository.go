package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

const (
	leastGit = 2<<16 | 39 // 2.39
	// mostConfig is the size in bytes above which a file that configures git is not read.
	mostConfig = 1 << 20
)

// A Repository is the user's repository around a directory. The zero value is no repository.
type Repository struct {
	Top    string // of the working tree
	Dir    string // the git directory; that of a linked worktree is its own
	Common string // the git directory that has the objects and refs
	Config map[string]string
}

// Find looks for the repository of dir in dir and the directories above it, as git
// does, but without git.
func Find(dir string) (Repository, bool) {
	for top := dir; ; top = filepath.Dir(top) {
		if r, found := repositoryAt(top); found {
			return r, true
		}
		if top == filepath.Dir(top) {
			return Repository{}, false
		}
	}
}

func repositoryAt(top string) (Repository, bool) {
	r := Repository{Top: top, Dir: filepath.Join(top, ".git")}
	info, err := os.Stat(r.Dir)
	if err != nil {
		return r, false
	}
	if !info.IsDir() {
		text, _ := ReadSmall(r.Dir)
		to, found := strings.CutPrefix(text, "gitdir:")
		if !found {
			return r, false
		}
		r.Dir = absolute(top, strings.TrimSpace(to))
	}
	r.Common = r.Dir
	if text, err := ReadSmall(filepath.Join(r.Dir, "commondir")); err == nil {
		r.Common = absolute(r.Dir, strings.TrimSpace(text))
	}
	for _, path := range []string{
		filepath.Join(r.Dir, "HEAD"), filepath.Join(r.Common, "objects"), filepath.Join(r.Common, "refs"),
	} {
		if _, err := os.Stat(path); err != nil {
			return r, false
		}
	}
	return r, true
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// ReadSmall reads a regular file of at most mostConfig bytes. A missing file is an error.
func ReadSmall(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > mostConfig {
		return "", fmt.Errorf("%s is not a file of at most %d bytes", path, mostConfig)
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// ReadIfThere is ReadSmall, with an empty text for a file that is missing, too long or no file, or may
// not be read. An error means that the system cannot tell.
func ReadIfThere(path string) (string, error) {
	text, err := ReadSmall(path)
	if durable.Unknown(err) {
		return "", err
	}
	return text, nil
}

// Exists reports whether a file exists. An error means that the system cannot tell, for example because
// the disk fails.
func Exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if durable.Unknown(err) {
		return false, err
	}
	return err == nil, nil
}

// Unusable returns why no objects and refs may be written into the repository, or nil.
func (r Repository) Unusable() error {
	for _, path := range []string{
		r.Dir, r.Common, filepath.Join(r.Common, "objects"), filepath.Join(r.Common, "refs"),
	} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if project.IsForeign(info) {
			return fmt.Errorf("%s belongs to another user", path)
		}
		if !writable(path) {
			return fmt.Errorf("%s is read-only", path)
		}
	}
	for key, value := range r.Config {
		extension, found := strings.CutPrefix(key, "extensions.")
		if !found {
			continue
		}
		known := slices.Contains([]string{
			"objectformat", "partialclone", "worktreeconfig", "noop", "relativeworktrees", "preciousobjects",
		}, extension) ||
			extension == "refstorage" && value == "files"
		if !known {
			return fmt.Errorf("the repository has the unknown extension %s = %s", extension, value)
		}
	}
	return nil
}

// ReadConfig reads a repository's configuration file and no other file. git config runs no
// program.
func ReadConfig(ctx context.Context, program, path string) (map[string]string, error) {
	if _, err := ReadSmall(path); err != nil {
		return nil, err
	}
	config := make(map[string]string)
	_, err := Run(ctx, program, filepath.Dir(path), outside(), Command{Record: func(record []byte) error {
		key, value, found := strings.Cut(string(record), "\n")
		if !found {
			value = "true"
		}
		config[key] = value
		return nil
	}, Args: []string{"config", "--file", path, "--no-includes", "--null", "--list"}})
	return config, err
}

// IsWord reports whether a value of a configuration file is one short word of ASCII letters and
// digits. Such a value cannot add a setting to another file.
func IsWord(value string) bool {
	for _, c := range value {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
			return false
		}
	}
	return value != "" && len(value) < 20
}

// Synced is the value of core.fsync with which objects, refs and the index survive a power cut once
// git has ended. Their names do with [Repository.SyncNames].
const Synced = "objects,derived-metadata,reference,index"

// syncedAlso is for clocks of files that are behind the one of this process.
const syncedAlso = time.Second

// writtenAfter is the time after which the system has written a file to the disk by itself, amply: Linux
// does after half a minute (vm.dirty_expire_centisecs).
const writtenAfter = 2 * time.Minute

// Sync writes all objects and refs to the disk, also those of the user's or an agent's git, which
// leaves that to the system.
func (r Repository) Sync() error {
	since := time.Now().Add(-writtenAfter)
	dirs, err := r.objectDirectories()
	for _, dir := range dirs {
		if info, statErr := os.Stat(dir); durable.Unknown(statErr) {
			return statErr
		} else if statErr != nil || info.ModTime().Before(since) {
			continue
		}
		root, openErr := os.OpenRoot(dir)
		if openErr != nil {
			return openErr
		}
		var names []string
		entries, listErr := os.ReadDir(dir)
		if durable.Unknown(listErr) {
			return errors.Join(listErr, root.Close())
		}
		for _, e := range entries {
			if info, statErr := e.Info(); statErr == nil && !info.ModTime().Before(since) {
				names = append(names, e.Name())
			}
		}
		err = errors.Join(err, durable.SyncFiles(root, names), root.Close())
	}
	return errors.Join(err, r.SyncNames(since))
}

// objectDirectories returns the directories with packs and loose objects.
func (r Repository) objectDirectories() (dirs []string, err error) {
	objects := filepath.Join(r.Common, "objects")
	entries, err := os.ReadDir(objects)
	for _, e := range entries {
		if len(e.Name()) == 2 || e.Name() == "pack" {
			dirs = append(dirs, filepath.Join(objects, e.Name()))
		}
	}
	return dirs, err
}

// SyncNames writes the names of objects and refs to the disk that were written since a time. With
// [Synced], git writes the rest.
func (r Repository) SyncNames(since time.Time) error {
	since = since.Add(-syncedAlso)
	dirs, err := r.objectDirectories()
	dirs = append(dirs, r.Common, filepath.Join(r.Common, "objects"))
	if r.Dir != r.Common {
		dirs = append(dirs, r.Dir)
	}
	var unread error
	for _, tree := range []string{"refs", "worktrees"} {
		_ = filepath.WalkDir(filepath.Join(r.Common, tree), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			if durable.Unknown(err) {
				unread = errors.Join(unread, err)
			}
			return nil
		})
	}
	err = errors.Join(err, unread)
	for _, dir := range dirs {
		info, statErr := os.Stat(dir)
		if durable.Unknown(statErr) {
			err = errors.Join(err, statErr)
		}
		if statErr == nil && !info.ModTime().Before(since) {
			err = errors.Join(err, durable.SyncDirectory(dir))
		}
	}
	return err
}

// ReplaceFile writes a file as a whole, unless it has the text already. After a power cut it may be
// empty: use it for a file that is written again before it is used, and package durable for others.
func ReplaceFile(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	next := path + ".new"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// IsReserved reports whether a path, with slashes, has an element that git takes for a repository: what
// is written there, as a hook, may run. Some file systems make no difference between .git and .GIT.
func IsReserved(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(name, ".git") {
			return true
		}
	}
	return false
}

// RealPath returns the absolute path of a file, without symbolic links.
func RealPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// CopyIndex copies an index file with its modification time. git reads the files that are not
// older than the index again, because a change within the same clock tick leaves no trace. git
// replaces an index and never writes into it, so a hard link is enough.
func CopyIndex(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(to, text, 0o600), os.Chtimes(to, info.ModTime(), info.ModTime()))
}
