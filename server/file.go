package server

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

// A FileSender is a Transport that passes open files to the peer, as a Unix
// socket does (SCM_RIGHTS). See [ReplyFile].
type FileSender interface {
	Transport
	// WriteFile is Write, with a copy of the open file that goes no later than
	// the first byte of p, which is not empty. If it wrote nothing the file
	// has not gone. The file stays the caller's.
	WriteFile(p []byte, file *os.File) (n int, err error)
}

// A FileReceiver is a Transport that keeps the open files that the peer sent.
// A file is there no later than the first byte that it came with.
type FileReceiver interface {
	// NextFile is the oldest file that has not been taken, which is then the
	// caller's, or an error if there is none.
	NextFile() (*os.File, error)
}

// ErrNoFiles says that no open file can be passed.
var ErrNoFiles = errors.New("server: open files cannot be passed here")

// CanReplyFile reports whether [ReplyFile] works for the request that ctx
// belongs to: it must have an id, be none of a batch and be served by a
// method that is [LongRunning], and the connection's transport must be a
// [FileSender].
func CanReplyFile(ctx context.Context) bool {
	a, ok := ctx.Value(afterKey{}).(*afterwards)
	if !ok || !a.carries {
		return false
	}
	_, ok = ConnFrom(ctx).t.(FileSender)
	return ok
}

// ReplyFile sends the peer a copy of an open file with the reply to the
// request that ctx belongs to: no later than the reply's first byte, and
// behind whatever was sent before it. A reply carries one file. If it is an
// error, no file goes with it.
//
// The file is no longer the caller's: it is closed when it was sent, or cannot
// be, or at once where ReplyFile returns [ErrNoFiles]. A handler calls
// ReplyFile as it calls [AfterReply].
func ReplyFile(ctx context.Context, file *os.File) error {
	if !CanReplyFile(ctx) {
		file.Close()
		return ErrNoFiles
	}
	a := ctx.Value(afterKey{}).(*afterwards)
	if a.file != nil {
		a.file.Close()
	}
	a.file = file
	return nil
}

// NextFile is the oldest file that the peer sent and nobody has taken; see
// [FileReceiver]. A file that came with a response is there when Call returns.
func (c *Conn) NextFile() (*os.File, error) {
	if r, ok := c.t.(FileReceiver); ok {
		return r.NextFile()
	}
	return nil, ErrNoFiles
}

// A fileReply is the reply to one request, with a file.
type fileReply struct {
	c    *Conn
	file *os.File
}

func (r *fileReply) result(id, result []byte) {
	if r.c.framing == frame.NDJSON {
		if result = compactLine(result); !r.c.fits(id, result) {
			r.fail(id, resultTooLarge(r.c.srv.opts.MaxLine))
			return
		}
	}
	r.c.out.resultWithFile(id, result, r.file)
}

func (r *fileReply) fail(id []byte, e *jsonrpc2.Error) {
	r.file.Close()
	r.c.fail(id, e)
}

// A passage is a file that goes with the byte of the queue at which its frame
// begins.
type passage struct {
	at   int
	file *os.File
}

// resultWithFile is result with a file, which is then the outbox's.
func (o *outbox) resultWithFile(id, result []byte, file *os.File) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waitForRoom() != nil {
		file.Close()
		return
	}
	o.traceResult(id, result)
	o.files = append(o.files, passage{len(o.queue), file})
	o.queue = frame.AppendResult(o.queue, o.framing, id, result)
	o.flushIfLong()
}

// takePart takes what stands before the first frame with a file, or that frame
// and what stands before the next one.
func (o *outbox) takePart() (out []byte, file *os.File) {
	end := o.files[0].at
	if end == 0 {
		file, end = o.files[0].file, len(o.queue)
		if o.files = o.files[1:]; len(o.files) > 0 {
			end = o.files[0].at
		}
	}
	out = o.queue[:end]
	o.queue, o.spare = append(o.spare[:0], o.queue[end:]...), nil
	for i := range o.files {
		o.files[i].at -= end
	}
	return out, file
}

// writeFile is writeAll with a file, which it closes unless it is to be tried
// again.
func (o *outbox) writeFile(p []byte, file *os.File, d time.Duration) (int, error) {
	err := o.t.SetWriteDeadline(deadlineIn(d))
	n := 0
	if err == nil {
		n, err = o.t.(FileSender).WriteFile(p, file)
	}
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		file.Close()
	}
	return n, err
}

// dropFiles closes the files that nobody will get; o.mu is held.
func (o *outbox) dropFiles() {
	for _, p := range o.files {
		p.file.Close()
	}
	o.files = nil
}
