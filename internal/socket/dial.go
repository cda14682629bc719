package socket

import (
	"context"
	"fmt"
	"net"
)

// Dial connects to the socket at path, which may be longer than the system's limit for socket
// addresses on Linux. The connection is a [*net.UnixConn].
//
// The error is a [NoListenerError] if there is no file or no listener. It is an [UnsafeError] if the
// file is not a socket, is a symbolic link or belongs to another user. It is also an
// [UnsafeError] if another user's process listens; nothing was sent to that process. If a
// listener's queue is full, Dial waits for its turn until ctx ends.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", path, err)
	}
	abs, err := absolute(path)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", path, err)
	}
	conn, err := dial(ctx, abs)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", path, err)
	}
	return conn, nil
}
