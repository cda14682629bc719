package socket

import (
	"errors"
	"fmt"
	"syscall"
)

// InUseError says that a process listens on the path already.
type InUseError struct {
	Path string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("another process listens on %s: stop it or choose another path", e.Path)
}

// OccupiedError says that something which is no socket of ours is where a file
// of ours belongs. It has been left as it is.
type OccupiedError struct {
	Path   string
	Reason string // such as "is a symbolic link"
}

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("%s %s and is not replaced: remove it or choose another path", e.Path, e.Reason)
}

// UnsafeError says that a file or directory could be another user's doing, so
// that it is not used.
type UnsafeError struct {
	Path   string
	Reason string // such as "belongs to user 1001"
	Remedy string // what to do, such as "chmod go-w /srv/run"
}

func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%s %s and is not used: %s", e.Path, e.Reason, e.Remedy)
}

// NobodyError says that there is no socket at the path, or a stale one that
// nobody listens on. It wraps the system's error.
type NobodyError struct {
	Path string
	Err  error
}

func (e *NobodyError) Error() string {
	const nobody = "no hub runs here; `duet-rpc daemon start` starts one"
	if errors.Is(e.Err, syscall.ENOENT) || errors.Is(e.Err, syscall.ECONNREFUSED) { // that is all there is to it
		return nobody
	}
	return fmt.Sprintf("%s (%s: %v)", nobody, e.Path, systemError(e.Err))
}

func (e *NobodyError) Unwrap() error { return e.Err }

// ourSocketsOnly is what to do where a client meets something else.
const ourSocketsOnly = "find out who put it there, remove it and start the hub again"

// systemError leaves out the address of a net error, which is not the one that
// the caller gave.
func systemError(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
