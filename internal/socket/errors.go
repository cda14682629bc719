package socket

import (
	"errors"
	"fmt"
	"syscall"
)

// InUseError reports that a process already listens on the path.
type InUseError struct {
	Path string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("another process listens on %s: stop it or choose another path", e.Path)
}

// OccupiedError reports that the path of one of our files holds something else, which was left
// unchanged.
type OccupiedError struct {
	Path   string
	Reason string // such as "is a symbolic link"
}

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("%s %s and is not replaced: remove it or choose another path", e.Path, e.Reason)
}

// UnsafeError reports that a file or directory could come from another user, so it is not used.
type UnsafeError struct {
	Path   string
	Reason string // such as "belongs to user 1001"
	Remedy string // the remedy, such as "chmod go-w /srv/run"
}

func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%s %s and is not used: %s", e.Path, e.Reason, e.Remedy)
}

// NoListenerError reports that there is no socket at the path, or a stale one without a listener. It
// wraps the system's error.
type NoListenerError struct {
	Path string
	Err  error
}

func (e *NoListenerError) Error() string {
	const noDaemon = "no daemon runs here; `duet-rpc daemon start` starts one"
	if errors.Is(e.Err, syscall.ENOENT) || errors.Is(e.Err, syscall.ECONNREFUSED) { // the usual errors, whose text adds nothing
		return noDaemon
	}
	return fmt.Sprintf("%s (%s: %v)", noDaemon, e.Path, systemError(e.Err))
}

func (e *NoListenerError) Unwrap() error { return e.Err }

// ourSocketsOnly is the remedy for a client that finds something else.
const ourSocketsOnly = "find out who put it there, remove it and start the daemon again"

// systemError removes the address from a net error, because it differs from the one that the
// caller gave.
func systemError(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}
