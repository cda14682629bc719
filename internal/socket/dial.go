package socket

import (
	"context"
	"fmt"
	"net"
)

// Dial connects to the socket at path, which may be longer than the system's
// limit for socket addresses on Linux. The connection is a [*net.UnixConn].
//
// Where there is no file or nobody listens the error is a [NobodyError]; where
// the file is no socket, is a symbolic link or belongs to another user, or
// where another user's process listens, it is an [UnsafeError] and nothing has
// been said to whoever is there. Where a listener's queue is full, Dial waits for
// its turn until ctx ends.
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
