//go:build unix && !linux

package stdio

import "golang.org/x/sys/unix"

// hangUp is empty here: poll(2) reports a closed pipe or socket, but not one closed for writing only.
const hangUp = 0

// surelyFits is PIPE_BUF, the least that a pipe that polls as writable takes.
const surelyFits = 512

func growPipe(int) {}

func dup2(from, to int) error { return unix.Dup2(from, to) }

func writeModeOf(fd int) writeMode {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
		return writeWhole
	}
	return writeChunks
}

func writeNow(int, []byte, []byte) (int, error) { return 0, unix.EOPNOTSUPP }

// pipeRoom is empty here: these systems do not report how full a pipe is.
type pipeRoom struct{}

func pipeRoomOf(int) pipeRoom { return pipeRoom{} }

func (*pipeRoom) take(int) bool { return false }

func (*pipeRoom) forget() {}
