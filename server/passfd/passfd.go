// Package passfd passes open files with replies, over transports that can carry
// them: Unix sockets (SCM_RIGHTS).
package passfd

import (
	"context"
	"errors"
	"os"

	"github.com/duet-rpc/duet-rpc/server"
)

// A Sender is a Transport that passes open files to the peer.
type Sender interface {
	server.Transport
	// WriteFile is Write, with a copy of the open file that goes no later than
	// the first byte of p, which is not empty. If it wrote nothing the file
	// has not gone. The file stays the caller's.
	WriteFile(p []byte, file *os.File) (n int, err error)
}

// A Receiver is a Transport that keeps the open files that the peer sent. A
// file is there no later than the first byte that it came with.
type Receiver interface {
	// NextFile is the oldest file that has not been taken, which is then the
	// caller's, or an error if there is none.
	NextFile() (*os.File, error)
}

// ErrNoFiles says that no open file can be passed.
var ErrNoFiles = errors.New("passfd: open files cannot be passed here")

// CanReply reports whether [Reply] works for the request that ctx belongs to:
// its reply can have an attachment ([server.CanAttach]), and the connection's
// transport is a [Sender].
func CanReply(ctx context.Context) bool {
	if !server.CanAttach(ctx) {
		return false
	}
	_, ok := server.ConnFrom(ctx).Transport().(Sender)
	return ok
}

// Reply sends the peer a copy of an open file with the reply to the request
// that ctx belongs to, as [server.Attach] says.
//
// The file is no longer the caller's: it is closed when it was sent, or cannot
// be, or at once where Reply returns [ErrNoFiles].
func Reply(ctx context.Context, file *os.File) error {
	if !CanReply(ctx) {
		file.Close()
		return ErrNoFiles
	}
	return server.Attach(ctx, attachment{file})
}

// Next is the oldest file that the peer of a connection sent and nobody has
// taken; see [Receiver]. A file that came with a response is there when Call
// returns. The error is [ErrNoFiles] where the transport is no Receiver.
func Next(c *server.Conn) (*os.File, error) {
	if r, ok := c.Transport().(Receiver); ok {
		return r.NextFile()
	}
	return nil, ErrNoFiles
}

// An attachment is an open file on its way.
type attachment struct{ *os.File }

// WriteWith implements server.Attachment.
func (a attachment) WriteWith(t server.Transport, p []byte) (int, error) {
	return t.(Sender).WriteFile(p, a.File)
}
