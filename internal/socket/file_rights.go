//go:build linux || darwin

package socket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// mostFilesAMessage is more than any system lets one message carry (Linux: 253). With a smaller
// buffer macOS would leave the rest open in this process without reporting their numbers.
const mostFilesAMessage = 512

// SendFile writes payload to conn with a copy of the open file f, which the caller keeps. The
// peer gets it no later than payload's first byte, so payload cannot be empty. It must not run
// at the same time as another write to conn: the bytes of both could mix.
func SendFile(conn *net.UnixConn, payload []byte, f *os.File) error {
	_, err := writeFile(conn, payload, f)
	return err
}

// writeFile is SendFile that also returns how much of payload was written.
func writeFile(conn *net.UnixConn, payload []byte, f *os.File) (n int, err error) {
	if len(payload) == 0 {
		return 0, errors.New("sending a file: it needs a payload to go with")
	}
	// Not f.Fd, which would put f into blocking mode.
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("sending a file: %w", err)
	}
	var failed error
	// f cannot be closed, nor its number reused, before Control returns.
	if err := raw.Control(func(fd uintptr) {
		n, _, failed = conn.WriteMsgUnix(payload, unix.UnixRights(int(fd)), nil)
		n = max(n, 0)
	}); err != nil {
		return 0, fmt.Errorf("sending a file: %w", err)
	}
	if failed == nil && n < len(payload) {
		var more int
		more, failed = conn.Write(payload[n:])
		n += more
	}
	if failed != nil {
		return n, fmt.Errorf("sending a file: %w", failed)
	}
	return n, nil
}

// passesFiles reports whether the system can pass open files.
const passesFiles = true

// readWithFiles reads bytes, and the files that were sent with them. oob is a buffer that is
// kept for reuse.
func readWithFiles(conn *net.UnixConn, p []byte, oob *[]byte) (n int, files []*os.File, err error) {
	if *oob == nil {
		*oob = make([]byte, unix.CmsgSpace(4*mostFilesAMessage))
	}
	// If the system supports it the descriptors are close-on-exec from the first moment,
	// elsewhere before a child can start.
	n, oobn, _, _, err := conn.ReadMsgUnix(p, *oob)
	n = max(n, 0) // -1 with some errors
	if oobn > 0 {
		var rightsErr error
		if files, rightsErr = filesOf((*oob)[:oobn]); err == nil {
			err = rightsErr
		}
	}
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, files, err
}

// filesOf returns the files that a control message carries; there may be some even with an
// error.
func filesOf(oob []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("receiving a file: %w", err)
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_RIGHTS {
			continue
		}
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, fmt.Errorf("receiving a file: %w", err)
		}
		for _, fd := range fds {
			files = append(files, newFile(fd))
		}
	}
	return files, nil
}

// newFile makes an os.File of a descriptor. Its mode must be right before: os.NewFile uses it to
// decide whether Go's poller can have it.
func newFile(fd int) *os.File {
	unix.CloseOnExec(fd)
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) == nil && !isType(stat, unix.S_IFREG) && !isType(stat, unix.S_IFDIR) {
		_ = unix.SetNonblock(fd, true)
	}
	return os.NewFile(uintptr(fd), "received file")
}
