package socket

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

const (
	socketName   = "duet.sock"
	announceName = "socket"
)

// Path returns the socket of a state directory's hub: duet.sock in it. If that is longer than a
// socket address can safely be on every system (104 bytes with its terminating zero on macOS),
// it is indirect. It is then a file named by a hash of the directory in $XDG_RUNTIME_DIR/duet,
// or in duet-UID below the directory of temporary files if the former is not private to us. The
// listener then publishes the path with [Announce], because clients may have another
// environment. Links in stateDir are resolved as far as it exists. Nothing is created.
func Path(stateDir string) (path string, indirect bool, err error) {
	dir, err := filepath.Abs(stateDir)
	if err != nil {
		return "", false, fmt.Errorf("finding the socket of %s: %w", stateDir, err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if path = filepath.Join(dir, socketName); len(path) <= longestPath {
		return path, false, nil
	}
	sum := sha256.Sum256([]byte(dir))
	name := hex.EncodeToString(sum[:8]) + ".sock"
	for _, dir := range indirectDirs() {
		if path = filepath.Join(dir, name); len(path) <= longestPath {
			return path, true, nil
		}
	}
	return "", false, fmt.Errorf("finding the socket of %s: its path is too long, and so is that in every directory of temporary files: set "+
		"XDG_RUNTIME_DIR to a short one", stateDir)
}

// indirectDirs returns the directories for sockets whose own path is too long, best first.
func indirectDirs() []string {
	var dirs []string
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(runtime) && privateDirectory(runtime) {
		dirs = append(dirs, filepath.Join(runtime, "duet"))
	}
	own := "duet-" + strconv.Itoa(ourUID())
	return append(dirs, filepath.Join(os.TempDir(), own), filepath.Join("/tmp", own))
}

// isIndirectDir reports whether [indirectDirs] could return a directory in some environment.
func isIndirectDir(dir string) bool {
	name := filepath.Base(dir)
	return dir == filepath.Clean(dir) && (name == "duet" || name == "duet-"+strconv.Itoa(ourUID()))
}

// maxAnnounced is the maximum length of an announcement, in bytes.
const maxAnnounced = 4096

// Announce writes the path of an indirect socket to the file "socket" in stateDir (mode 0600,
// one line). It replaces an older file atomically, so that a reader never sees a part. A file
// there that is not ours is left alone, and the error is an [OccupiedError]. The file may stay
// when the listener ends: clients then find no listener.
func Announce(stateDir, path string) (err error) {
	to := filepath.Join(stateDir, announceName)
	if err := checkReplaceable(to); err != nil {
		return fmt.Errorf("announcing the socket: %w", err)
	}
	if text, err := readPrivate(to, maxAnnounced); err == nil && string(text) == path+"\n" {
		return nil // no need to write it again, for which a full disk may have no room
	}
	f, err := os.CreateTemp(stateDir, "."+announceName+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("announcing the socket: %w", err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("announcing the socket: %w", err)
		}
	}()
	_, err = f.WriteString(path + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), to)
}

// Find returns the path that a client of a state directory's hub must [Dial]: the result of
// [Path], or the hub's announcement if that is indirect. A path does not mean that a process
// listens. Find ignores an announcement for another directory, as after a move or in a copy, and
// one outside every directory that Path could name. A file that another user could have written,
// or a symbolic link in its place, is an [UnsafeError].
func Find(stateDir string) (string, error) {
	path, indirect, err := Path(stateDir)
	if err != nil || !indirect {
		return path, err
	}
	text, err := readPrivate(filepath.Join(stateDir, announceName), maxAnnounced)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("finding the socket of %s: %w", stateDir, err)
	}
	line, rest, whole := bytes.Cut(text, []byte("\n"))
	announced := string(line)
	if !whole || len(rest) > 0 || !filepath.IsAbs(announced) || len(announced) > longestPath {
		return "", fmt.Errorf("finding the socket of %s: its file %q does not hold one path: remove it and start the daemon again", stateDir,
			announceName)
	}
	if filepath.Base(announced) != filepath.Base(path) || !isIndirectDir(filepath.Dir(announced)) {
		return path, nil
	}
	return announced, nil
}
