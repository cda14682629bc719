// Package stdio makes transports of open files: of the process's standard input and output
// ([Take]), and of pipes ([Files]).
package stdio

import (
	"os"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/server"
)

// Take makes a Transport of the process's standard input and output, and takes both away from
// everything else. Descriptors 0 and 1 then lead to the null device and to standard error, so
// that no library, panic or child can put a byte among the frames, or take one. Call it once,
// before anything is printed.
//
// Only the peer or the end of the process can end its Read. A blocking descriptor costs a third
// less than one under Go's poller, and making it non-blocking would change it for every process
// that shares it.
func Take() (server.Transport, error) { return take() }

// CloseOutput closes the process's standard output, so that its reader sees the end. Descriptor
// 1 then leads to standard error, and stays taken.
func CloseOutput() error { return closeOutput() }

// Files makes a Transport of two files that support deadlines, such as the
// pipes to a child process. Closing it closes both.
func Files(in, out *os.File) server.Transport { return files{in, out} }

type files struct{ in, out *os.File }

func (f files) Read(p []byte) (int, error)         { return f.in.Read(p) }
func (f files) Write(p []byte) (int, error)        { return f.out.Write(p) }
func (f files) SetReadDeadline(t time.Time) error  { return f.in.SetReadDeadline(t) }
func (f files) SetWriteDeadline(t time.Time) error { return f.out.SetWriteDeadline(t) }

func (f files) Close() error {
	err := f.out.Close()
	if e := f.in.Close(); err == nil {
		err = e
	}
	return err
}

// deadline is a time that one goroutine sets and another one reads.
type deadline struct{ ns atomic.Int64 } // since epoch; 0: none

var epoch = time.Now()

func (d *deadline) set(t time.Time) {
	if t.IsZero() {
		d.ns.Store(0)
		return
	}
	d.ns.Store(max(1, int64(t.Sub(epoch))))
}

// left is how long there is; it is meaningless if there is no deadline.
func (d *deadline) left() (left time.Duration, has bool) {
	ns := d.ns.Load()
	if ns == 0 {
		return 0, false
	}
	return time.Duration(ns) - time.Since(epoch), true
}
