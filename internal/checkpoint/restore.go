package checkpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// Kind says how a file differs between two checkpoints.
type Kind string

// The kinds of changes.
const (
	Added       Kind = "added"
	Modified    Kind = "modified" // and perhaps its mode
	Deleted     Kind = "deleted"
	Renamed     Kind = "renamed" // and perhaps modified
	ModeChanged Kind = "mode"    // the executable bit alone
	TypeChanged Kind = "type"    // between a file and a symbolic link
)

// The modes of files in a checkpoint.
const (
	modeFile       = 0o100644
	modeExecutable = 0o100755
	modeLink       = 0o120000 // the blob is the target
	modeDirectory  = 0o040000
)

// A Change is a file that differs between two checkpoints. The old values are empty for an
// added file, the new ones for a deleted one.
type Change struct {
	Kind             Kind
	Path             string // relative to [Store.Top], with slashes; any bytes but NUL
	OldPath          string // differs from Path for a renamed file
	OldMode, NewMode uint32 // as git has them: 0o100644, 0o100755 or 0o120000
	OldBlob, NewBlob string // for [Store.Read]
	OldSize, NewSize int64  // in bytes
	Binary           bool
	// AddedLines and DeletedLines are 0 for a binary file.
	AddedLines, DeletedLines int
}

// ChangesMode reports whether the executable bit of a file differs.
func (c Change) ChangesMode() bool {
	return c.OldMode != c.NewMode && (c.OldMode == modeFile || c.OldMode == modeExecutable) &&
		(c.NewMode == modeFile || c.NewMode == modeExecutable)
}

// Changes returns the files that differ between two checkpoints, ordered by path. It finds
// renamed files if there are at most 1000 candidates.
func (s *Store) Changes(ctx context.Context, from, to ID) ([]Change, error) {
	found, err := s.byID(ctx, from, to)
	if err != nil {
		return nil, err
	}
	list, err := s.diff(ctx, found[0].tree, found[1].tree, "--numstat", "-M", "-l1000")
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var blobs []string
	for _, c := range list {
		blobs = append(blobs, c.OldBlob, c.NewBlob)
	}
	sizes, err := s.sizes(ctx, blobs)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].OldSize, list[i].NewSize = sizes[list[i].OldBlob], sizes[list[i].NewBlob]
	}
	return list, nil
}

// diff compares two trees. git writes a record ":mode mode blob blob status" for each change, and
// its paths. With --numstat, a record "added TAB deleted TAB path" for each follows, in the same
// order; the paths of a renamed file are two more records.
func (s *Store) diff(ctx context.Context, from, to string, args ...string) (list []Change, err error) {
	var paths []*string // that the next records have
	counted := 0        // changes whose lines are known
	record := func(record []byte) error {
		text := string(record)
		switch {
		case len(paths) > 0:
			*paths[0], paths = text, paths[1:]
		case strings.HasPrefix(text, ":"):
			c, err := parseRaw(text)
			if err != nil {
				return err
			}
			list = append(list, c)
			last := &list[len(list)-1]
			paths = []*string{&last.Path}
			if c.Kind == Renamed {
				paths = []*string{&last.OldPath, &last.Path}
			}
		default:
			lines := strings.SplitN(text, "\t", 3)
			if len(lines) != 3 || counted == len(list) {
				return fmt.Errorf("git diff-tree: unexpected answer %.100q", text)
			}
			if lines[2] == "" {
				paths = []*string{new(string), new(string)}
			}
			c := &list[counted]
			c.Binary = lines[0] == "-"
			c.AddedLines, _ = strconv.Atoi(lines[0])
			c.DeletedLines, _ = strconv.Atoi(lines[1])
			counted++
		}
		return nil
	}
	_, err = s.git(ctx, git.Command{
		Args:   slices.Concat([]string{"diff-tree", "-r", "-z", "--raw", "--no-abbrev"}, args, []string{from, to}),
		Record: record,
	})
	for i := range list {
		if c := &list[i]; c.Kind != Renamed && c.Kind != Added {
			c.OldPath = c.Path
		}
	}
	return list, err
}

// parseRaw reads the first record of a change.
func parseRaw(text string) (c Change, err error) {
	fields := strings.Fields(strings.TrimPrefix(text, ":"))
	if len(fields) != 5 {
		return c, fmt.Errorf("git diff-tree: unexpected answer %.100q", text)
	}
	oldMode, err1 := strconv.ParseUint(fields[0], 8, 32)
	newMode, err2 := strconv.ParseUint(fields[1], 8, 32)
	c = Change{OldMode: uint32(oldMode), NewMode: uint32(newMode), OldBlob: fields[2], NewBlob: fields[3]}
	switch fields[4][0] {
	case 'A':
		c.Kind, c.OldBlob = Added, ""
	case 'D':
		c.Kind, c.NewBlob = Deleted, ""
	case 'R':
		c.Kind = Renamed
	case 'T':
		c.Kind = TypeChanged
	default:
		c.Kind = Modified
		if c.OldBlob == c.NewBlob {
			c.Kind = ModeChanged
		}
	}
	return c, errors.Join(err1, err2)
}

// sizes returns the sizes of blobs. "" is left out.
func (s *Store) sizes(ctx context.Context, blobs []string) (map[string]int64, error) {
	sizes := make(map[string]int64)
	var input bytes.Buffer
	for _, blob := range blobs {
		if _, known := sizes[blob]; !known && blob != "" {
			sizes[blob] = 0
			input.WriteString(blob + "\n")
		}
	}
	out, err := s.git(ctx, git.Command{
		Args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)"}, Stdin: &input,
	})
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[1] != "blob" {
			return nil, fmt.Errorf("%w: blob %.100q", ErrUnknown, line)
		}
		sizes[fields[0]], err = strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

// Read returns the content of a blob that [Store.Changes] has named: a file's bytes or the
// target of a symbolic link. An unknown blob is ErrUnknown.
func (s *Store) Read(ctx context.Context, blob string) ([]byte, error) {
	if !isName(blob) {
		return nil, fmt.Errorf("%w: blob %.100q", ErrUnknown, blob)
	}
	if _, err := s.sizes(ctx, []string{blob}); err != nil {
		return nil, err
	}
	return s.git(ctx, git.Command{Args: []string{"cat-file", "blob", blob}})
}

// isName reports whether a text is the full name of an object.
func isName(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && (len(text) == 2*sha1.Size || len(text) == 2*sha256.Size)
}

// RestoreOptions says what [Store.Restore] restores.
type RestoreOptions struct {
	// Paths limits it to these files; nil is all.
	Paths []string
	// Partial restores the files without a conflict even if others have one.
	Partial bool
}

// Restored is the result of [Store.Restore].
type Restored struct {
	Written, Removed []string
	Conflicts        []Conflict
}

// A Conflict is a file that was not restored, because it is not as in the checkpoint from.
type Conflict struct{ Path, Reason string }

// A ConflictError reports that nothing was restored because of conflicts.
type ConflictError struct{ Conflicts []Conflict }

func (e *ConflictError) Error() string {
	c := e.Conflicts[0]
	return fmt.Sprintf("nothing is restored: %q %s (%d conflicts)", c.Path, c.Reason, len(e.Conflicts))
}

// Restore makes the files that differ between the checkpoints from and to as they are in to.
// The caller believes that the disk is as in from. A file that is neither as in from nor as in
// to is a conflict, and Restore does not overwrite it. With conflicts Restore does nothing and
// returns a [ConflictError], unless opts.Partial is set. Restore touches no other files and
// follows no symbolic links.
//
// Restore replaces each file as a whole. If it fails half-way, Restored lists the finished
// files, and the same call does the rest. Restore cannot lock out other programs: it loses an
// edit in the milliseconds between the last check of a file and its replacement.
func (s *Store) Restore(ctx context.Context, from, to ID, opts RestoreOptions) (done Restored, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return done, err
	}
	defer unlock()
	s.removeTemporaries()
	found, err := s.byID(ctx, from, to)
	if err != nil {
		return done, err
	}
	changes, err := s.diff(ctx, found[0].tree, found[1].tree, "--no-renames")
	if err != nil {
		return done, err
	}
	if opts.Paths != nil {
		wanted := make(map[string]bool, len(opts.Paths))
		for _, path := range opts.Paths {
			wanted[path] = true
		}
		changes = slices.DeleteFunc(changes, func(c Change) bool { return !wanted[c.Path] })
	}
	root, err := os.OpenRoot(s.top)
	if err != nil {
		return done, err
	}
	defer root.Close()

	r := &restore{
		root: root, temporary: temporaryPrefix + strings.ToLower(rand.Text()), removed: make(map[string]bool),
		newHash: sha1.New,
	}
	if len(found[0].tree) == 2*sha256.Size {
		r.newHash = sha256.New
	}
	var todo []Change
	for again := true; again; { // a file that stays may be in the way of another one
		again = false
		clear(r.removed)
		for _, c := range changes {
			r.removed[c.Path] = c.Kind == Deleted
		}
		todo = nil
		for _, c := range changes {
			switch needed, why := r.check(c); {
			case why != "":
				done.Conflicts = append(done.Conflicts, Conflict{Path: c.Path, Reason: why})
			case needed:
				todo = append(todo, c)
			}
		}
		if opts.Partial {
			found := done.Conflicts
			changes = slices.DeleteFunc(changes, func(c Change) bool {
				conflicts := slices.ContainsFunc(found, func(has Conflict) bool { return has.Path == c.Path })
				if !conflicts && c.Kind == Deleted { // a directory that stays in the place of a file stays whole
					conflicts = slices.ContainsFunc(found, func(has Conflict) bool {
						return strings.HasPrefix(c.Path, has.Path+"/")
					})
					if conflicts {
						done.Conflicts = append(done.Conflicts, Conflict{Path: c.Path, Reason: isInTheWay})
					}
				}
				again = again || conflicts
				return conflicts
			})
		}
	}
	if len(done.Conflicts) > 0 && !opts.Partial {
		return done, &ConflictError{Conflicts: done.Conflicts}
	}
	return done, s.apply(ctx, r, todo, &done)
}

// apply removes files first, since a file may be where a directory has to be.
func (s *Store) apply(ctx context.Context, r *restore, todo []Change, done *Restored) (err error) {
	var journal strings.Builder
	var writes []Change
	var blobs []string
	for _, c := range todo {
		if c.Kind != Deleted {
			writes, blobs = append(writes, c), append(blobs, c.NewBlob)
			journal.WriteString(path.Join(path.Dir(c.Path), r.temporary) + "\x00")
		}
	}
	sizes, err := s.sizes(ctx, blobs)
	if err != nil {
		return err
	}
	for _, c := range todo {
		if c.Kind != Deleted {
			continue
		}
		if needed, why := r.check(c); why != "" {
			return fmt.Errorf("cannot remove %q: it %s", c.Path, why)
		} else if !needed {
			continue
		}
		if err := r.remove(c.Path); err != nil {
			return err
		}
		done.Removed = append(done.Removed, c.Path)
	}
	if err := durable.Replace(s.journal(), []byte(journal.String()), 0o600); err != nil {
		return err
	}
	defer s.removeTemporaries()
	defer func() { err = errors.Join(err, r.sync(*done)) }()
	const together = 64 << 20 // bytes that are read at once
	for len(writes) > 0 {
		n, sum := 0, int64(0)
		for n < len(writes) && (n == 0 || sum+sizes[writes[n].NewBlob] <= together) {
			sum += sizes[writes[n].NewBlob]
			n++
		}
		if err := s.writeFiles(ctx, r, writes[:n], done); err != nil {
			return err
		}
		writes = writes[n:]
	}
	return nil
}

func (s *Store) writeFiles(ctx context.Context, r *restore, writes []Change, done *Restored) error {
	var input bytes.Buffer
	for _, c := range writes {
		input.WriteString(c.NewBlob + "\n")
	}
	out, err := s.git(ctx, git.Command{Args: []string{"cat-file", "--batch=%(objectsize)"}, Stdin: &input})
	if err != nil {
		return err
	}
	for _, c := range writes {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		size, err := strconv.Atoi(string(head))
		if err != nil || size >= len(rest) {
			return fmt.Errorf("git cat-file: unexpected answer %.100q", head)
		}
		content := rest[:size]
		out = rest[size+1:]
		if needed, why := r.check(c); why != "" {
			return fmt.Errorf("cannot write %q: it %s", c.Path, why)
		} else if !needed {
			continue
		}
		if err := r.write(c, content); err != nil {
			return err
		}
		done.Written = append(done.Written, c.Path)
	}
	return ctx.Err()
}

// temporaryPrefix begins the name of a file that Restore writes before it replaces another one.
const temporaryPrefix = ".duet-restore-"

// journal is the file that lists the temporary files of a Restore.
func (s *Store) journal() string { return filepath.Join(s.dir, "temporaries") }

// removeTemporaries removes the temporary files of a killed Restore. The caller holds the lock.
func (s *Store) removeTemporaries() {
	list, err := os.ReadFile(s.journal())
	if err != nil {
		return
	}
	root, err := os.OpenRoot(s.top)
	if err != nil {
		return
	}
	defer root.Close()
	for name := range strings.SplitSeq(string(list), "\x00") {
		if strings.HasPrefix(path.Base(name), temporaryPrefix) {
			_ = root.Remove(filepath.FromSlash(name))
		}
	}
	_ = os.Remove(s.journal())
}

// A restore changes the files of a tree.
type restore struct {
	root      *os.Root
	temporary string          // name of temporary files
	removed   map[string]bool // files that are removed
	newHash   func() hash.Hash
}

// The reasons of conflicts.
const (
	isChanged   = "has changed since the checkpoint"
	isInTheWay  = "is where another file has to be"
	isBehind    = "is behind a symbolic link"
	isForbidden = "has a name that is not restored"
)

// check compares a file with both sides of a change. needed is false if it is as in the new
// side already. conflict says why it is as in neither.
func (r *restore) check(c Change) (needed bool, conflict string) {
	local := filepath.FromSlash(c.Path)
	if !filepath.IsLocal(local) || git.IsReserved(c.Path) {
		return false, isForbidden
	}
	mode, blob, conflict := r.look(c.Path)
	switch {
	case conflict != "":
		return false, conflict
	case same(mode, c.NewMode) && blob == c.NewBlob:
		return false, ""
	case same(mode, c.OldMode) && blob == c.OldBlob:
		return true, ""
	case mode == modeDirectory && c.OldMode == 0 && r.isEmptied(c.Path):
		return true, ""
	}
	return false, isChanged
}

// same compares modes. A system without executable bits has files of one mode.
func same(a, b uint32) bool {
	if runtime.GOOS == "windows" && a != 0 && b != 0 {
		return a|0o111 == b|0o111
	}
	return a == b
}

// look returns what is at a path: 0 for nothing, modeDirectory, or a mode and the name of the
// blob.
func (r *restore) look(file string) (mode uint32, blob, conflict string) {
	parent, conflict, err := r.parent(file, false)
	if conflict != "" || parent == nil && err == nil {
		return 0, "", conflict
	}
	if err != nil {
		return 0, "", "cannot be read: " + err.Error()
	}
	defer parent.Close()
	name := path.Base(file)
	info, err := parent.Lstat(name)
	switch {
	case isMissing(err):
		return 0, "", ""
	case err != nil:
		return 0, "", "cannot be read: " + err.Error()
	case info.IsDir():
		return modeDirectory, "", ""
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := parent.Readlink(name)
		if err != nil {
			return 0, "", isChanged
		}
		return modeLink, r.name(int64(len(target)), strings.NewReader(target)), ""
	case !info.Mode().IsRegular():
		return 0, "", isChanged
	}
	f, err := parent.OpenFile(name, os.O_RDONLY|project.NonBlocking, 0)
	if err != nil {
		return 0, "", "cannot be read: " + err.Error()
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(now, info) {
		return 0, "", isChanged
	}
	mode = modeFile
	if info.Mode()&0o100 != 0 {
		mode = modeExecutable
	}
	return mode, r.name(info.Size(), f), ""
}

// name returns the name of a blob, "changed" if the size is wrong.
func (r *restore) name(size int64, content io.Reader) string {
	h := r.newHash()
	fmt.Fprintf(h, "blob %d\x00", size)
	if n, err := io.Copy(h, content); err != nil || n != size {
		return "changed"
	}
	return hex.EncodeToString(h.Sum(nil))
}

// parent opens the directory of a file without following links. It returns nil if there is no
// such directory, unless create is set. A file in place of a directory is a
// conflict unless it is removed by this Restore.
func (r *restore) parent(file string, create bool) (dir *os.Root, conflict string, err error) {
	dir, err = r.root.OpenRoot(".")
	at := ""
	for name := range strings.SplitSeq(path.Dir(file), "/") {
		if err != nil || name == "." {
			break
		}
		at = path.Join(at, name)
		var next *os.Root
		next, conflict, err = r.child(dir, name, at, create)
		dir.Close()
		if next == nil {
			return nil, conflict, err
		}
		dir = next
	}
	return dir, "", err
}

func (r *restore) child(dir *os.Root, name, at string, create bool) (child *os.Root, conflict string, err error) {
	info, err := dir.Lstat(name)
	if isMissing(err) && create {
		if err := dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, "", err
		}
		info, err = dir.Lstat(name)
	}
	switch {
	case isMissing(err):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case !info.IsDir() && r.removed[at]:
		return nil, "", nil
	case info.Mode().Type() == fs.ModeSymlink:
		return nil, isBehind, nil
	case !info.IsDir():
		return nil, "is below a file", nil
	}
	child, err = dir.OpenRoot(name)
	if err != nil {
		return nil, "", err
	}
	if now, err := child.Stat("."); err != nil || !os.SameFile(now, info) {
		child.Close()
		return nil, isBehind, err
	}
	return child, "", nil
}

// isEmptied reports whether this Restore removes all files of a directory.
func (r *restore) isEmptied(dir string) bool {
	f, err := r.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return false
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		at := path.Join(dir, e.Name())
		return !r.removed[at] && !(e.IsDir() && r.isEmptied(at))
	})
}

// sync writes the names of the files that were written or removed to the disk.
func (r *restore) sync(done Restored) error {
	var names []string
	for _, file := range done.Removed {
		names = append(names, filepath.FromSlash(file))
	}
	for _, file := range done.Written {
		names = append(names, filepath.FromSlash(file))
	}
	return durable.SyncFiles(r.root, names)
}

// remove removes a file, and the directories that are empty then.
func (r *restore) remove(file string) error {
	parent, conflict, err := r.parent(file, false)
	if err != nil {
		return err
	}
	if parent == nil {
		return fmt.Errorf("cannot remove %q: it %s", file, conflict)
	}
	defer parent.Close()
	if err := parent.Remove(path.Base(file)); err != nil {
		return err
	}
	for dir := path.Dir(file); dir != "." && r.root.Remove(filepath.FromSlash(dir)) == nil; dir = path.Dir(dir) {
	}
	return nil
}

// write replaces a file.
func (r *restore) write(c Change, content []byte) (err error) {
	parent, conflict, err := r.parent(c.Path, true)
	if err != nil {
		return err
	}
	if parent == nil {
		return fmt.Errorf("cannot write %q: it %s", c.Path, conflict)
	}
	defer parent.Close()
	name := path.Base(c.Path)
	defer func() {
		if err != nil {
			_ = parent.Remove(r.temporary)
		}
	}()
	if c.NewMode == modeLink {
		err = parent.Symlink(string(content), r.temporary)
	} else {
		err = writeFile(parent, r.temporary, name, c.NewMode == modeExecutable, content)
	}
	if err != nil {
		return err
	}
	if info, err := parent.Lstat(name); err == nil && info.IsDir() {
		if err := removeEmpty(parent, name); err != nil {
			return fmt.Errorf("cannot write %q: a directory %s: %w", c.Path, isInTheWay, err)
		}
	}
	return parent.Rename(r.temporary, name)
}

// removeEmpty removes a directory that has no files.
func removeEmpty(parent *os.Root, name string) error {
	f, err := parent.Open(name)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeEmpty(parent, filepath.Join(name, e.Name())))
		}
	}
	return errors.Join(err, parent.Remove(name))
}

// writeFile writes a new file. It keeps the permissions of the file that it is to replace, but
// for the executable bits: those who may read an executable file may execute it.
func writeFile(dir *os.Root, name, replaces string, executable bool, content []byte) error {
	mode := fs.FileMode(0o666)
	if executable {
		mode = 0o777
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if old, missing := dir.Lstat(replaces); missing == nil && old.Mode().IsRegular() {
		kept := old.Mode().Perm() &^ 0o111
		if executable {
			kept |= kept & 0o444 >> 2
		}
		err = errors.Join(err, f.Chmod(kept))
	}
	// Without it a power cut may leave an empty file under the new name.
	return errors.Join(err, f.Sync(), f.Close())
}
