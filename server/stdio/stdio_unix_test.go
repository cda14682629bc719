//go:build unix

package stdio

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/server"
)

// pair makes an fdPair and the two descriptors at its other end.
func pair(t *testing.T, kind string) (p *fdPair, toIt, fromIt *os.File) {
	var in, out [2]int
	switch kind {
	case "pipe":
		require.NoError(t, unix.Pipe(in[:]))
		require.NoError(t, unix.Pipe(out[:]))
	case "socketpair":
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		in = [2]int{fds[0], fds[1]}
		fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		out = [2]int{fds[0], fds[1]}
	}
	p, err := newFDPair(in[0], out[1])
	require.NoError(t, err)
	toIt, fromIt = os.NewFile(uintptr(in[1]), "to"), os.NewFile(uintptr(out[0]), "from")
	t.Cleanup(func() {
		toIt.Close()
		fromIt.Close()
		unix.Close(in[0])
		unix.Close(out[1])
	})
	return p, toIt, fromIt
}

// everyWay runs a test on pipes and socketpairs, with the best way to write on this system, and
// with the portable one.
func everyWay(t *testing.T, test func(t *testing.T, p *fdPair, toIt, fromIt *os.File)) {
	for _, kind := range []string{"pipe", "socketpair"} {
		for _, mode := range []string{"best", "chunks"} {
			t.Run(kind+"/"+mode, func(t *testing.T) {
				p, toIt, fromIt := pair(t, kind)
				if mode == "chunks" {
					p.mode = writeChunks
				}
				test(t, p, toIt, fromIt)
			})
		}
	}
}

// The end of the input is noticed while bytes are unread, and while nothing reads.
func TestFDPairNoticesAHangUp(t *testing.T) {
	everyWay(t, func(t *testing.T, p *fdPair, toIt, _ *os.File) {
		_, err := toIt.WriteString("unread")
		require.NoError(t, err)
		hungUp := make(chan bool, 1)
		go func() { hungUp <- p.AwaitHangUp() }()
		toIt.Close()
		assert.True(t, <-hungUp)
	})
	everyWay(t, func(t *testing.T, p *fdPair, _, _ *os.File) {
		require.NoError(t, p.Close())
		assert.False(t, p.AwaitHangUp(), "this side has closed it")
	})
}

func TestFDPairReads(t *testing.T) {
	everyWay(t, func(t *testing.T, p *fdPair, toIt, _ *os.File) {
		buf := make([]byte, 100)
		require.NoError(t, p.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		_, err := p.Read(buf)
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = toIt.WriteString("hello")
		require.NoError(t, err)
		n, err := p.Read(buf)
		require.NoError(t, err, "available data wins over an expired deadline")
		assert.Equal(t, "hello", string(buf[:n]))
		require.NoError(t, p.SetReadDeadline(time.Time{}))
		toIt.Close()
		_, err = p.Read(buf)
		assert.Equal(t, io.EOF, err)
	})
}

func TestFDPairWritesWholly(t *testing.T) {
	everyWay(t, func(t *testing.T, p *fdPair, _, fromIt *os.File) {
		a, b := bytes.Repeat([]byte("a"), 100), bytes.Repeat([]byte("b"), 5_000_000)
		read := make(chan []byte)
		go func() {
			got := make([]byte, len(a)+len(b))
			_, err := io.ReadFull(fromIt, got)
			assert.NoError(t, err)
			read <- got
		}()
		n, err := p.WriteWithin(a, b, -1)
		require.NoError(t, err)
		assert.Equal(t, len(a)+len(b), n)
		got := <-read
		assert.True(t, bytes.Equal(append(a, b...), got))
	})
}

// A peer that does not read makes a write with a timeout give up, and the returned count is
// right.
func TestFDPairGivesUp(t *testing.T) {
	everyWay(t, func(t *testing.T, p *fdPair, _, fromIt *os.File) {
		data := make([]byte, 3_000_000)
		for i := range data {
			data[i] = byte(i / 1000)
		}
		written := 0
		for range 3 {
			n, err := p.WriteWithin(data[written:], nil, 5*time.Millisecond)
			written += n
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		}
		require.Less(t, written, len(data))
		go func() {
			_, err := p.WriteWithin(data[written:], nil, -1)
			assert.NoError(t, err)
		}()
		got := make([]byte, len(data))
		_, err := io.ReadFull(fromIt, got)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(data, got))
	})
}

// awaitPoll waits until a goroutine polls descriptors.
func awaitPoll(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool {
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("unix.Poll("))
	}, time.Minute, time.Millisecond)
}

func TestFDPairCloseEndsAWrite(t *testing.T) {
	everyWay(t, func(t *testing.T, p *fdPair, _, _ *os.File) {
		ended := make(chan error)
		go func() {
			_, err := p.WriteWithin(make([]byte, 3_000_000), nil, -1)
			ended <- err
		}()
		awaitPoll(t)
		require.NoError(t, p.Close())
		assert.ErrorIs(t, <-ended, os.ErrClosed)
	})
}

// Close also ends a Read with a deadline, which polls.
func TestFDPairCloseEndsAReadThatPolls(t *testing.T) {
	everyWay(t, func(t *testing.T, p *fdPair, _, _ *os.File) {
		require.NoError(t, p.SetReadDeadline(time.Now().Add(time.Hour)))
		ended := make(chan error)
		go func() {
			_, err := p.Read(make([]byte, 10))
			ended <- err
		}()
		awaitPoll(t)
		require.NoError(t, p.Close())
		<-ended
	})
}

func TestFDPairPeerGone(t *testing.T) {
	everyWay(t, func(t *testing.T, p *fdPair, _, fromIt *os.File) {
		fromIt.Close()
		_, err := p.Write([]byte("x"))
		assert.True(t, server.IsGone(err), "%v", err)
	})
}

// An editor may pass non-blocking descriptors.
func TestFDPairOnNonBlockingDescriptors(t *testing.T) {
	everyWay(t, func(t *testing.T, p *fdPair, toIt, fromIt *os.File) {
		require.NoError(t, unix.SetNonblock(p.in, true))
		require.NoError(t, unix.SetNonblock(p.out, true))
		got := make(chan string)
		go func() {
			buf := make([]byte, 10)
			n, err := p.Read(buf)
			assert.NoError(t, err)
			got <- string(buf[:n])
		}()
		_, err := toIt.WriteString("late")
		require.NoError(t, err)
		assert.Equal(t, "late", <-got)
		go func() {
			_, err := p.WriteWithin(make([]byte, 3_000_000), nil, -1)
			assert.NoError(t, err)
		}()
		n, err := io.CopyN(io.Discard, fromIt, 3_000_000)
		require.NoError(t, err)
		assert.EqualValues(t, 3_000_000, n)
	})
}

func TestFDPairOnFiles(t *testing.T) {
	path := t.TempDir() + "/out"
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	p, err := newFDPair(int(null.Fd()), int(f.Fd()))
	require.NoError(t, err)
	_, err = p.WriteWithin([]byte("one "), []byte("two"), time.Millisecond)
	require.NoError(t, err)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "one two", string(got))
	_, err = p.Read(make([]byte, 1))
	assert.Equal(t, io.EOF, err)
}

// Closing two files closes both, and returns the first error.
func TestFilesAreClosedTogether(t *testing.T) {
	for _, closed := range [][2]bool{{false, false}, {true, false}, {false, true}} {
		in, out, err := os.Pipe()
		require.NoError(t, err)
		for i, f := range []*os.File{in, out} {
			if closed[i] {
				require.NoError(t, f.Close())
			}
		}
		err = Files(in, out).Close()
		assert.Equal(t, closed != [2]bool{}, err != nil, closed)
		assert.ErrorIs(t, in.Close(), os.ErrClosed)
		assert.ErrorIs(t, out.Close(), os.ErrClosed)
	}
}

func TestADeadlineIsThereUntilItIsTakenBack(t *testing.T) {
	var d deadline
	for _, in := range []time.Duration{time.Hour, -time.Hour} {
		_, has := d.left()
		assert.False(t, has)
		d.set(time.Now().Add(in))
		left, has := d.left()
		assert.True(t, has)
		assert.Equal(t, in > 0, left > 0)
		d.set(time.Time{})
	}
}
