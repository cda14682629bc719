//go:build !unix

package stdio

import (
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/server"
)

// pumped is a Transport on files without deadlines: a goroutine reads ahead, and writes with a
// deadline are left to a goroutine that can wait.
type pumped struct {
	in, out *os.File
	chunks  chan chunk
	rest    chunk // the unused rest of the last chunk
	read    deadline
	write   deadline
}

type chunk struct {
	b   []byte
	err error
}

func take() (server.Transport, error) {
	p := &pumped{in: os.Stdin, out: os.Stdout, chunks: make(chan chunk)}
	os.Stdout = os.Stderr
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	os.Stdin = null
	go p.pump()
	return p, nil
}

func closeOutput() error {
	err := os.Stdout.Close()
	os.Stdout = os.Stderr
	return err
}

// pump reads until the input ends. It lives as long as the process.
func (p *pumped) pump() {
	for {
		b := make([]byte, 64<<10)
		n, err := p.in.Read(b)
		p.chunks <- chunk{b[:n], err}
		if err != nil {
			return
		}
	}
}

func (p *pumped) Read(b []byte) (int, error) {
	if len(p.rest.b) == 0 && p.rest.err == nil {
		var expired <-chan time.Time
		if left, has := p.read.left(); has {
			timer := time.NewTimer(left)
			defer timer.Stop()
			expired = timer.C
		}
		select {
		case p.rest = <-p.chunks:
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		}
	}
	n := copy(b, p.rest.b)
	p.rest.b = p.rest.b[n:]
	if len(p.rest.b) == 0 && p.rest.err != nil {
		return n, p.rest.err
	}
	return n, nil
}

func (p *pumped) Write(b []byte) (int, error) {
	if _, has := p.write.left(); has {
		return 0, os.ErrDeadlineExceeded
	}
	return p.out.Write(b)
}

func (p *pumped) SetReadDeadline(t time.Time) error { p.read.set(t); return nil }

func (p *pumped) SetWriteDeadline(t time.Time) error { p.write.set(t); return nil }

// Close leaves both files to the end of the process.
func (p *pumped) Close() error { return nil }

// OutlivesClose reports that only the peer can end a Read.
func (p *pumped) OutlivesClose() bool { return true }
