package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// This file places a hub where the command line of AIWG looks for its daemon. The socket is
// .aiwg/daemon/daemon.sock below the project's root, and .aiwg/daemon.pid holds the id of the
// process that listens there. A hub never replaces a running daemon of AIWG.

const (
	dirName  = ".aiwg"
	pidName  = "daemon.pid"
	newName  = "daemon.pid.duet~" // the temporary name of the file
	noteName = "aiwg.pid"         // in the state directory: the content of the file written last
)

// mostPID is how much of a PID file is read, in bytes.
const mostPID = 64

// AIWGSocket returns the path where AIWG's command line looks for the socket of its daemon.
func AIWGSocket(root string) string { return filepath.Join(root, dirName, "daemon", "daemon.sock") }

// UsesAIWG reports whether a project uses AIWG: it has a directory .aiwg. The error says why
// that directory is unsafe for a socket: it may have come with a repository and lead elsewhere,
// or others can write into it.
func UsesAIWG(root string) (bool, error) {
	for _, dir := range []string{filepath.Join(root, dirName), filepath.Dir(AIWGSocket(root))} {
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return dir != filepath.Join(root, dirName), nil
		case err != nil:
			return false, err
		case !info.IsDir():
			return false, fmt.Errorf("%s is no directory", dir)
		case project.IsForeign(info):
			return false, fmt.Errorf("%s belongs to another user", dir)
		case project.WritableByOthers(info):
			return false, fmt.Errorf("other users can write into %s (chmod go-w)", dir)
		}
	}
	return true, nil
}

// A RunningError is the refusal to replace a daemon that runs.
type RunningError struct{ PID int }

func (e *RunningError) Error() string {
	return fmt.Sprintf("%s names process %d, which runs; if that is no daemon of AIWG, remove the file",
		filepath.Join(dirName, pidName), e.PID)
}

// CheckAIWGFree returns a [*RunningError] if a daemon of AIWG may be running. It ignores a file
// left by a killed hub of this project, which stateDir records. The caller is the project's only
// hub.
func CheckAIWGFree(root, stateDir string) error {
	pid, err := readPID(filepath.Join(root, dirName, pidName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoPID) {
		return nil
	}
	if err != nil {
		return err
	}
	if left, err := readPID(filepath.Join(stateDir, noteName)); err == nil && left == pid {
		return nil
	}
	if pid != os.Getpid() && isAlive(pid) {
		return &RunningError{PID: pid}
	}
	return nil
}

// A AIWGPIDFile is the file with the id of the process that listens.
type AIWGPIDFile struct{ path string }

// WriteAIWGPID writes the id of this process. The directory .aiwg must exist; see
// [CheckAIWGFree].
func WriteAIWGPID(root, stateDir string) (*AIWGPIDFile, error) {
	dir, err := os.OpenRoot(filepath.Join(root, dirName))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if info, err := dir.Lstat(pidName); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", filepath.Join(root, dirName, pidName))
	}
	text := []byte(strconv.Itoa(os.Getpid()))
	// First: if this process dies, the next hub knows whose file it was.
	if err := replace(stateDir, noteName, text); err != nil {
		return nil, err
	}
	if err := replaceIn(dir, pidName, text); err != nil {
		return nil, err
	}
	return &AIWGPIDFile{path: filepath.Join(root, dirName, pidName)}, nil
}

// Remove removes the file, unless it belongs to another process by now.
func (f *AIWGPIDFile) Remove() error {
	pid, err := readPID(f.path)
	if err != nil || pid != os.Getpid() {
		return nil //nolint:nilerr // it is not there, or not ours
	}
	return os.Remove(f.path)
}

func replace(dir, name string, text []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return replaceIn(root, name, text)
}

// replaceIn replaces a file atomically. It follows no link.
func replaceIn(dir *os.Root, name string, text []byte) error {
	if err := dir.Remove(newName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := dir.OpenFile(newName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err == nil {
		err = dir.Rename(newName, name)
	}
	if err != nil {
		_ = dir.Remove(newName)
	}
	return err
}

var errNoPID = errors.New("no number of a process")

// readPID reads a process id from a file.
func readPID(path string) (int, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostPID {
		return 0, fmt.Errorf("%s: %w", path, errNoPID)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("%s: %w", path, errNoPID)
	}
	return pid, nil
}

func isAlive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, fs.ErrPermission)
}
