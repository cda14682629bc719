//go:build !linux && !darwin

package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
)

const longestPath = 104

func unsupported(what string) error {
	return fmt.Errorf("%s on %s: %w", what, runtime.GOOS, errors.ErrUnsupported)
}

func claim(context.Context, string) (*net.UnixListener, func() error, error) {
	return nil, nil, unsupported("private Unix sockets")
}

func dial(context.Context, string) (net.Conn, error) {
	return nil, unsupported("private Unix sockets")
}

func peerUID(net.Conn) (int, error) { return 0, unsupported("the user of a peer") }

func peerPID(net.Conn) (int, error) { return 0, unsupported("the process of a peer") }

func ourUID() int { return os.Getuid() }

func privateDirectory(string) bool { return false }

func readPrivate(path string, most int) ([]byte, error) {
	return nil, unsupported("private Unix sockets")
}

func checkReplaceable(string) error { return unsupported("private Unix sockets") }

// RaiseFileLimit returns an error on this system.
func RaiseFileLimit() (uint64, error) { return 0, unsupported("a limit of open files") }

// SendFile returns an error on this system.
func SendFile(*net.UnixConn, []byte, *os.File) error { return unsupported("passing open files") }

func writeFile(*net.UnixConn, []byte, *os.File) (int, error) {
	return 0, unsupported("passing open files")
}

// passesFiles reports whether the system can pass open files.
const passesFiles = false

func readWithFiles(*net.UnixConn, []byte, *[]byte) (int, []*os.File, error) {
	return 0, nil, unsupported("passing open files")
}
