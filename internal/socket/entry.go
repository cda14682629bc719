//go:build linux || darwin

package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// An entry is the file with a name in a directory, links not followed.
type entry struct {
	id      fileID
	stat    unix.Stat_t
	address string // to connect to, while the entry is open
	close   func()
}

// foreign says why the entry is not a socket of ours; it is empty for one that is.
func (e *entry) foreign() string {
	switch {
	case isType(e.stat, unix.S_IFLNK):
		return "is a symbolic link"
	case !isType(e.stat, unix.S_IFSOCK):
		return "is no socket"
	case int(e.stat.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to user %d", e.stat.Uid)
	}
	return ""
}

// connect connects once, or a few times if a refusal could mean that the listener is busy, which
// the system does not distinguish.
func (e *entry) connect(ctx context.Context) (net.Conn, error) {
	const between = 20 * time.Millisecond
	for try := 1; ; try++ {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", e.address)
		if try == refusalsBeforeStale || !errors.Is(err, unix.ECONNREFUSED) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(between):
		}
	}
}
