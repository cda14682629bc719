package demoagent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/coder/acp-go-sdk"
)

// DefaultDelay is a pace of streamed text that a human can watch.
const DefaultDelay = 15 * time.Millisecond

// leaveWithin is how long Serve waits for turns once its input has ended.
// Only a turn that writes to an output nobody reads needs it.
const leaveWithin = 200 * time.Millisecond

// registerWithin is how long the input waits for a prompt to be registered or refused. Only a
// prompt whose parameters the SDK refuses takes that long.
const registerWithin = 5 * time.Second

// ErrCrash is returned by Serve when a prompt asked for a crash. The process
// is meant to exit with [CrashStatus] at once.
var ErrCrash = errors.New("the demo agent was asked to crash")

// CrashStatus is the exit status of a process that was asked to crash.
const CrashStatus = 3

// Options say how an agent behaves. The zero value works: no pauses between
// chunks, sessions in memory only, nothing said on standard error.
type Options struct {
	StateDir string        // where sessions are kept, made with mode 0700; "" keeps them in memory only
	Delay    time.Duration // between chunks of text and of thoughts; 0 is as fast as possible
	Version  string        // told to the client; "" is told as "dev"
	Stderr   io.Writer     // diagnostics and the last line before a crash; nil drops them
	Protocol int           // the newest version of the protocol to speak, where the client asks for it; 0 is [NewestProtocol]
	OnHang   func()        // called when a prompt asked it to hang, so that the process can ignore signals; may be nil
}

// DefaultStateDir is where sessions are kept if nothing else is said:
// $DUET_STATE_HOME/demo, else $XDG_STATE_HOME/duet/demo, else ~/.local/state/duet/demo.
// It fails where there is no home directory.
func DefaultStateDir() (string, error) {
	if dir := os.Getenv("DUET_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "demo"), nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "duet", "demo"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding a place for the demo agent's sessions: %w", err)
	}
	return filepath.Join(home, ".local", "state", "duet", "demo"), nil
}

// Serve is an agent for one client: it reads from in and writes whole lines to
// out until in ends (nil), reading fails, ctx is done (its error) or a prompt
// asks for a crash ([ErrCrash]). It is gone within 200 ms of that, also with a
// turn under way or hanging, and writes nothing to out afterwards. A goroutine
// that reads in stays until that read returns. A line of more than 10 MiB ends
// the connection.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts Options) error {
	if opts.Stderr == nil {
		opts.Stderr = io.Discard
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	lines := &lineWriter{w: out}
	defer lines.close()

	a := newAgent(ctx, lines, opts)
	peer, feed := io.Pipe()
	a.conn = acp.NewAgentSideConnection(a, a.v2, peer)
	a.conn.SetLogger(slog.New(slog.NewTextHandler(opts.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))

	// Only now may the connection read: it uses the logger and we use a.conn.
	ended := make(chan error, 1)
	go func() { ended <- a.forward(in, feed) }()
	var err error
	select {
	case err = <-ended:
	case <-a.conn.Done(): // a line that is too long
		err = errors.New("the connection broke")
	case <-a.crashed:
		fmt.Fprintf(opts.Stderr, "duet-rpc demo-agent: %v\n", ErrCrash)
		err = ErrCrash
	case <-ctx.Done():
		err = ctx.Err()
	}
	lines.close()
	end()
	feed.Close()
	peer.Close()
	a.v2.terminals.kill()
	left := make(chan struct{})
	go func() { a.endTurns(); a.v2.terminals.close(); close(left) }()
	select {
	case <-left:
	case <-time.After(leaveWithin):
	}
	return err
}

// forward copies lines from in to the connection. The connection handles
// requests beside each other, so that a cancel right behind its prompt could
// come before it: nothing follows a prompt until its turn is registered.
func (a *agent) forward(in io.Reader, feed io.Writer) error {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			var err error
			if line, err = a.v2.fromClient(line); err != nil {
				return err
			}
		}
		if len(line) > 0 {
			prompt := bytes.Contains(line, []byte(`"`+acp.AgentMethodSessionPrompt+`"`))
			if prompt {
				select {
				case <-a.registered: // one that came late
				default:
				}
			}
			if _, err := feed.Write(line); err != nil {
				return fmt.Errorf("reading the client's messages: %w", err)
			}
			if prompt {
				select {
				case <-a.registered:
				case <-time.After(registerWithin):
				case <-a.ctx.Done():
				}
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("reading the client's messages: %w", err)
		}
	}
}
