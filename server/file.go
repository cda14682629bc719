package server

import (
	"context"
	"errors"
	"os"
)

// A FileSender is a Transport that passes open files to the peer, over a Unix socket (SCM_RIGHTS).
type FileSender interface {
	Transport
	// WriteFile is Write, with a copy of the open file that is sent no later than the first byte
	// of p, which is not empty. If it wrote nothing the file was not sent. The caller keeps the
	// file.
	WriteFile(p []byte, file *os.File) (n int, err error)
}

// A FileReceiver is a Transport that keeps the open files that the peer sent. A file is available no
// later than the first byte that it came with.
type FileReceiver interface {
	// NextFile returns the oldest file that was not taken, or an error if there is none. The
	// caller owns the file.
	NextFile() (*os.File, error)
}

// ErrNoFiles reports that the transport cannot pass open files.
var ErrNoFiles = errors.New("server: open files cannot be passed here")

// CanReplyFile reports whether [ReplyFile] works for the request of ctx: its reply can have an
// attachment ([CanAttach]), and the connection's transport is a [FileSender].
func CanReplyFile(ctx context.Context) bool {
	if !CanAttach(ctx) {
		return false
	}
	_, ok := ConnFrom(ctx).Transport().(FileSender)
	return ok
}

// ReplyFile sends the peer a copy of an open file with the reply to the request of ctx, as
// [Attach] does.
//
// ReplyFile takes ownership of the file: it closes it after sending it, or when it cannot be sent,
// or at once if it returns [ErrNoFiles].
func ReplyFile(ctx context.Context, file *os.File) error {
	if !CanReplyFile(ctx) {
		file.Close()
		return ErrNoFiles
	}
	return Attach(ctx, fileAttachment{file})
}

// NextFile returns the oldest file that the peer of a connection sent and that was not taken; see
// [FileReceiver]. A file that came with a response is available when Call returns. The error is
// [ErrNoFiles] if the transport is not a FileReceiver.
func NextFile(c *Conn) (*os.File, error) {
	if r, ok := c.Transport().(FileReceiver); ok {
		return r.NextFile()
	}
	return nil, ErrNoFiles
}

// A fileAttachment is an open file to send.
type fileAttachment struct{ *os.File }

func (a fileAttachment) WriteWith(t Transport, p []byte) (int, error) {
	return t.(FileSender).WriteFile(p, a.File)
}
