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
	// WriteFile is Write, with a copy of the open file that is sent no later than the first byte
	// of p, which is not empty. If it wrote nothing the file was not sent. The caller keeps the
	// file.
	WriteFile(p []byte, file *os.File) (n int, err error)
}

// A Receiver is a Transport that keeps the open files that the peer sent. A file is available no
// later than the first byte that it came with.
type Receiver interface {
	// NextFile returns the oldest file that was not taken, or an error if there is none. The
	// caller owns the file.
	NextFile() (*os.File, error)
}

// ErrNoFiles reports that the transport cannot pass open files.
var ErrNoFiles = errors.New("passfd: open files cannot be passed here")

// CanReply reports whether [Reply] works for the request of ctx: its reply can have an
// attachment ([server.CanAttach]), and the connection's transport is a [Sender].
func CanReply(ctx context.Context) bool {
	if !server.CanAttach(ctx) {
		return false
	}
	_, ok := server.ConnFrom(ctx).Transport().(Sender)
	return ok
}

// Reply sends the peer a copy of an open file with the reply to the request of ctx, as
// [server.Attach] does.
//
// Reply takes ownership of the file: it closes it after sending it, or when it cannot be sent,
// or at once if it returns [ErrNoFiles].
func Reply(ctx context.Context, file *os.File) error {
	if !CanReply(ctx) {
		file.Close()
		return ErrNoFiles
	}
	return server.Attach(ctx, attachment{file})
}

// Next returns the oldest file that the peer of a connection sent and that was not taken; see
// [Receiver]. A file that came with a response is available when Call returns. The error is
// [ErrNoFiles] if the transport is not a Receiver.
func Next(c *server.Conn) (*os.File, error) {
	if r, ok := c.Transport().(Receiver); ok {
		return r.NextFile()
	}
	return nil, ErrNoFiles
}

// An attachment is an open file to send.
type attachment struct{ *os.File }

func (a attachment) WriteWith(t server.Transport, p []byte) (int, error) {
	return t.(Sender).WriteFile(p, a.File)
}
