//go:build unix

package usercommand_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/catalogrpc"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor"
	"github.com/duet-rpc/duet-rpc/internal/procenv"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
	"github.com/duet-rpc/duet-rpc/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a runner with an executor behind a link.
type bench struct {
	*usercommand.Runner
	endHub context.CancelFunc
	kill   func() // breaks the link

	mu    sync.Mutex
	marks map[string]int // marks in the store, with process ids
	noted []string       // every mark it had
}

// daemon is the command part of the hub.
type daemon struct {
	catalog.Daemon
	runner *usercommand.Runner
}

func (d daemon) CommandStarted(ctx context.Context, p catalog.CommandStartedParams) error {
	return d.runner.CommandStarted(ctx, p)
}

func (d daemon) CommandOutput(ctx context.Context, p catalog.CommandOutputParams) error {
	return d.runner.CommandOutput(ctx, p)
}

// tx records the marks of a transaction.
type tx struct {
	store.Tx
	*bench
}

func (t tx) PutProcess(p domain.Process) error {
	if _, known := t.marks[p.Mark]; !known {
		t.noted = append(t.noted, p.Mark)
	}
	t.marks[p.Mark] = p.PID
	return nil
}

func (t tx) DropProcess(mark string) error {
	delete(t.marks, mark)
	return nil
}

// kept returns the number of stored marks.
func (b *bench) kept() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.marks)
}

type leased struct {
	catalog.Executor
	kill func()
}

func (leased) Release() {}
func (l leased) Kill()  { l.kill() }

func newBench(t *testing.T) *bench {
	b := &bench{marks: make(map[string]int)}
	ctx, cancel := context.WithCancel(context.Background())
	b.endHub = cancel
	near, far := net.Pipe()
	var link leased
	b.Runner = usercommand.New(ctx, usercommand.Options{
		Acquire: func(context.Context) (usercommand.Executor, error) { return link, nil },
		Write: func(_ context.Context, change func(store.Tx) error) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			return change(tx{bench: b})
		},
	})
	reg := server.NewRegistry()
	catalogrpc.RegisterDaemon(reg, daemon{runner: b.Runner})
	hub := server.New(reg, executor.LinkOptions(nil)).Connect(context.Background(), near, frame.NDJSON)
	served := make(chan struct{})
	go func() {
		defer close(served)
		executor.Serve(context.Background(), far, executor.Options{Grace: executor.Grace{Interrupt: 100 * time.Millisecond, Terminate: 100 * time.Millisecond}})
	}()
	b.kill = func() { near.Close() }
	link = leased{catalogrpc.Executor(hub), b.kill}
	t.Cleanup(func() {
		cancel()
		hub.End()
		near.Close()
		<-served
		<-hub.Done()
		for _, mark := range b.noted {
			assert.Empty(t, marked(mark), "everything that a command started has to be gone")
		}
	})
	return b
}

// marked returns the processes that have a mark.
func marked(mark string) []int {
	want := catalog.MarkVariable + "=" + mark
	return procenv.Find(func(variable string) bool { return variable == want })
}

func TestACommandIsRunToItsEnd(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	for _, c := range []struct {
		name   string
		c      usercommand.Command
		out    string
		code   int
		signal string
	}{
		{"a program", usercommand.Command{Argv: []string{"printf", "%s|", "a b", "c"}}, "a b|c|", 0, ""},
		{"a line for the shell", usercommand.Command{Shell: "echo one; echo two >&2; echo three"}, "one\ntwo\nthree\n", 0, ""},
		{"its directory", usercommand.Command{Shell: "pwd -P"}, resolved(t, dir) + "\n", 0, ""},
		{"its environment", usercommand.Command{Shell: "echo $GREETING", Env: map[string]string{"GREETING": "hi"}}, "hi\n", 0, ""},
		{"nothing to read", usercommand.Command{Shell: "cat"}, "", 0, ""},
		{"a failure", usercommand.Command{Shell: "echo no; exit 3"}, "no\n", 3, ""},
		{"a signal", usercommand.Command{Shell: "kill -TERM $$"}, "", 128 + int(syscall.SIGTERM), "SIGTERM"},
		{"bytes", usercommand.Command{Shell: `printf 'a\377b'`}, "a\xffb", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var came []byte
			c.c.Directory = dir
			c.c.Output = func(_ context.Context, p []byte) { came = append(came, p...) }
			r, err := b.Run(t.Context(), c.c)
			require.NoError(t, err)
			assert.Equal(t, c.out, string(came))
			assert.Equal(t, c.out, r.Output.Text())
			assert.Equal(t, c.code, r.ExitCode)
			assert.Equal(t, c.signal, r.Signal)
			reason, err := c.c.Failure(r, err)
			require.NoError(t, err)
			assert.Equal(t, c.code == 0, reason == "", reason)
			assert.Positive(t, r.Duration)
			assert.Zero(t, b.kept(), "what has ended is not looked for any more")
		})
	}
}

func resolved(t *testing.T, path string) string {
	path, err := filepath.EvalSymlinks(path)
	require.NoError(t, err)
	return path
}

func TestACommandThatCannotBeStarted(t *testing.T) {
	b := newBench(t)
	var wrong *usercommand.StartError
	_, err := b.Run(t.Context(), usercommand.Command{Argv: []string{"no-such-program"}, Directory: t.TempDir()})
	require.ErrorAs(t, err, &wrong)
	assert.EqualError(t, err, "no-such-program could not be started: no such program, or no such directory")
	_, err = b.Run(t.Context(), usercommand.Command{Shell: "true", Directory: filepath.Join(t.TempDir(), "none")})
	require.ErrorAs(t, err, &wrong)
	_, err = b.Run(t.Context(), usercommand.Command{Directory: t.TempDir()})
	require.Error(t, err)
	assert.Zero(t, b.kept())
}

// stubborn is a command whose grandchildren ignore signals, one of them in its own session. Each
// has written its process id when "ready" is printed.
const stubborn = `trap '' INT TERM
(trap '' INT TERM HUP; echo $$; while :; do sleep 60; done) &
setsid sh -c 'trap "" INT TERM HUP; echo; while :; do sleep 60; done' &
echo ready
wait; wait`

func TestNothingOfACommandIsLeftWhenItIsCancelled(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	var text strings.Builder
	r, err := b.Run(ctx, usercommand.Command{Shell: stubborn, Directory: t.TempDir(), Output: func(_ context.Context, p []byte) {
		if text.Write(p); strings.Contains(text.String(), "ready") {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, r.Output.Text(), "ready", "what it has printed is there")
	require.Len(t, b.noted, 1)
	assert.Empty(t, marked(b.noted[0]), "when Run returns, not some time later")
}

func TestACommandThatTakesTooLongIsEnded(t *testing.T) {
	b := newBench(t)
	c := usercommand.Command{Argv: []string{"sleep", "60"}, Directory: t.TempDir(), Timeout: 50 * time.Millisecond}
	r, err := b.Run(t.Context(), c)
	require.NoError(t, err)
	assert.True(t, r.TimedOut)
	assert.Equal(t, "SIGINT", r.Signal)
	reason, err := c.Failure(r, nil)
	require.NoError(t, err)
	assert.Equal(t, "it took longer than 50ms", reason)
}

func TestWhatACommandLeavesInTheBackgroundEndsWithIt(t *testing.T) {
	b := newBench(t)
	r, err := b.Run(t.Context(), usercommand.Command{Shell: "sleep 60 & setsid sleep 60 & echo here", Directory: t.TempDir()})
	require.NoError(t, err)
	assert.Equal(t, "here\n", r.Output.Text())
	require.Len(t, b.noted, 1)
	assert.Empty(t, marked(b.noted[0]))
}

// A slow Output blocks its own command and no other.
func TestACommandWaitsForWhoTakesItsOutput(t *testing.T) {
	b := newBench(t)
	first, release := make(chan struct{}), make(chan struct{})
	file := filepath.Join(t.TempDir(), "written")
	var taken int
	ended := make(chan error, 1)
	go func() {
		_, err := b.Run(t.Context(), usercommand.Command{
			Shell: "head -c 4000000 /dev/zero; echo > " + file, Directory: t.TempDir(),
			Output: func(ctx context.Context, p []byte) {
				if taken == 0 {
					close(first)
					<-release
				}
				taken += len(p)
			},
		})
		ended <- err
	}()
	<-first
	r, err := b.Run(t.Context(), usercommand.Command{Shell: "echo beside", Directory: t.TempDir()})
	require.NoError(t, err)
	assert.Equal(t, "beside\n", r.Output.Text())
	assert.NoFileExists(t, file, "more is in no buffer than a pipe holds")
	close(release)
	require.NoError(t, <-ended)
	assert.Equal(t, 4_000_000, taken)
}

func TestACommandEndsThoughNobodyTakesItsOutput(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.Run(ctx, usercommand.Command{Shell: "yes", Directory: t.TempDir(), Output: func(ctx context.Context, _ []byte) {
		cancel()
		<-ctx.Done()
	}})
	require.ErrorIs(t, err, context.Canceled)
}

func TestMuchOutputIsKeptAtBothEnds(t *testing.T) {
	b := newBench(t)
	r, err := b.Run(t.Context(), usercommand.Command{Shell: "seq 1 100000", Directory: t.TempDir(), Keep: 2000})
	require.NoError(t, err)
	assert.Positive(t, r.Output.Missing)
	assert.True(t, bytes.HasPrefix(r.Output.Head, []byte("1\n2\n3\n")))
	assert.True(t, bytes.HasSuffix(r.Output.Tail, []byte("99999\n100000\n")))
	assert.Len(t, r.Output.Head, 1000)
	assert.Len(t, r.Output.Tail, 1000)
	assert.EqualValues(t, 588895-2000, r.Output.Missing)
	assert.Contains(t, r.Output.Text(), fmt.Sprintf("\n[... %d bytes left out ...]\n", r.Output.Missing))
}

func TestACommandEndsWithTheHub(t *testing.T) {
	b := newBench(t)
	_, err := b.Run(t.Context(), usercommand.Command{Shell: "echo; sleep 60", Directory: t.TempDir(), Output: func(context.Context, []byte) { b.endHub() }})
	require.Equal(t, domain.ErrEnding, err)
}

func TestACommandEndsWithItsExecutor(t *testing.T) {
	b := newBench(t)
	_, err := b.Run(t.Context(), usercommand.Command{Shell: stubborn, Directory: t.TempDir(), Output: func(_ context.Context, p []byte) {
		if bytes.Contains(p, []byte("ready")) {
			b.kill()
		}
	}})
	var known *domain.Error
	require.ErrorAs(t, err, &known)
	assert.Equal(t, domain.KindExecutor, known.Kind)
	assert.Equal(t, 1, b.kept(), "its mark stays written down: the next hub looks for it")
}
