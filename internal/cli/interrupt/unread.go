package interrupt

import (
	"context"
	"io"
	"os"
	"syscall"
)

// WhileRead is a context that ends when nobody reads any more what a command prints,
// as in `duet-rpc events | head -1`, with [syscall.EPIPE] as its cause: a command that
// waits for something to print would know only with the next it prints. It is told of
// pipes and sockets alone, where the system can tell. stop has to be called.
func WhileRead(parent context.Context, out io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	end := func() { cancel(context.Canceled) }
	file, ok := out.(*os.File)
	if !ok {
		return ctx, end
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return ctx, end
	}
	stopWatching := watchReader(file, func() { cancel(syscall.EPIPE) })
	return ctx, func() { stopWatching(); end() }
}
