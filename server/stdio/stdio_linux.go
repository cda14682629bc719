package stdio

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hangUp is the event of a socket whose peer has closed its writing side. A closed pipe needs none.
const hangUp = unix.POLLRDHUP

// surelyFits is how much a pipe that polls as writable takes without blocking.
const surelyFits = 4096

// growPipe makes a pipe hold a large frame, if it is a pipe and the system allows it: a large
// frame then passes with fewer switches between the two ends.
func growPipe(fd int) { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 1<<20) }

func dup2(from, to int) error { return unix.Dup3(from, to, 0) }

// writeModeOf returns how to write to fd. Terminals have no RWF_NOWAIT, and for files it means
// something else.
func writeModeOf(fd int) writeMode {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return writeChunks
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFSOCK:
		return writeNoWait
	case unix.S_IFCHR:
		return writeChunks
	}
	return writeWhole
}

// pipeRoom decides when a small write to a pipe surely fits. A pipe consists of slots of a page
// each, and a write of up to a page takes one at most. After the pipe was empty, as many small
// writes as it has slots cannot block. They can do without RWF_NOWAIT, which costs a tenth of a
// microsecond, or the poll(2) that older kernels need. That holds as long as no other process
// writes to the pipe. The zero value knows nothing.
type pipeRoom struct {
	slots int // 0: nothing is known
	left  int // small writes that surely fit; below 0: how many to let pass before looking again
}

// lookAgain is how many small writes pass after the pipe was found not empty.
const lookAgain = 32

func pipeRoomOf(fd int) pipeRoom {
	size, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		return pipeRoom{}
	}
	return pipeRoom{slots: size / surelyFits}
}

// take reports whether a small write to fd surely fits, and counts it.
func (r *pipeRoom) take(fd int) bool {
	switch {
	case r.left > 0:
	case r.slots == 0:
		return false
	case r.left < 0:
		r.left++
		return false
	default:
		if unread, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err != nil || unread > 0 {
			r.left = -lookAgain
			return false
		}
		r.left = r.slots
	}
	r.left--
	return true
}

// forget is called before a write of any size.
func (r *pipeRoom) forget() { r.left = min(r.left, 0) }

// writeNow writes as much of a and b as fits at once. EOPNOTSUPP means that
// the kernel cannot (pipes: before Linux 6.4).
func writeNow(fd int, a, b []byte) (int, error) {
	var vector [2]unix.Iovec
	parts := 0
	for _, buf := range [2][]byte{a, b} {
		if len(buf) > 0 {
			vector[parts].Base = unsafe.SliceData(buf)
			vector[parts].SetLen(len(buf))
			parts++
		}
	}
	const noOffset = ^uintptr(0) // the current position; pipes have no other
	var n uintptr
	var errno syscall.Errno
	if len(a)+len(b) <= surelyFits {
		// It cannot block and is short, so it bypasses the scheduler.
		n, _, errno = unix.RawSyscall6(unix.SYS_PWRITEV2, uintptr(fd), uintptr(unsafe.Pointer(&vector)),
			uintptr(parts), noOffset, noOffset, unix.RWF_NOWAIT)
	} else {
		n, _, errno = unix.Syscall6(unix.SYS_PWRITEV2, uintptr(fd), uintptr(unsafe.Pointer(&vector)),
			uintptr(parts), noOffset, noOffset, unix.RWF_NOWAIT)
	}
	switch errno {
	case 0:
		return int(n), nil
	case unix.ENOSYS, unix.EINVAL:
		errno = unix.EOPNOTSUPP
	}
	return 0, errno
}
