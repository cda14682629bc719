// Package agentlink starts an agent outside of any session, sends it requests, and ends it.
// The agent gets no files, no terminals and no permission.
package agentlink

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// Timeouts for an agent.
const (
	// StartTime is the default for initialize, and for a session: some agents load a lot.
	StartTime = 30 * time.Second
	exitGrace = 700 * time.Millisecond
)

const (
	defaultMost = 16 << 20 // bytes of an agent's output
	maxText     = 500      // bytes of one of its texts
	maxRequests = 100      // its open requests
)

// Options are the options of [Open]. The zero value is valid.
type Options struct {
	// Dir is the working directory; "": an empty one.
	Dir string
	// Update receives each session/update, as in [acp.Handler].
	Update func(session, update []byte, repaired bool)
	// Notice receives every other notification, in the same way.
	Notice func(method string, params []byte)
	// MaxOutput limits the agent's output, in bytes. Default 16 MiB.
	MaxOutput int64
	Logger    *slog.Logger
}

// A Link is a running agent. The caller must close it.
type Link struct {
	// Info is its result of initialize.
	Info acp.Initialized
	// Env is its environment.
	Env process.Environment
	// Dir is its working directory.
	Dir string

	name        string
	startTime   time.Duration
	tempDir     string // a temporary directory, or ""
	runner      *process.Runner
	proc        *process.Process
	conn        *acp.Conn
	open        atomic.Int64 // requests of the agent
	inputClosed atomic.Bool  // it accepts no more input
	read        sync.WaitGroup

	closing sync.Once
	release func() // ends the wait for the process and the context
}

// Open starts an agent and initializes it. When ctx ends the agent is killed.
func Open(ctx context.Context, l Launch, opts Options) (*Link, error) {
	if len(l.Command) == 0 {
		return nil, fmt.Errorf("%s has no command", l.Name)
	}
	k := &Link{name: l.Name, startTime: cmp.Or(l.StartTimeout, StartTime), Dir: opts.Dir, Env: process.NewEnvironment(l.Environment)}
	var err error
	if k.Dir == "" {
		if k.tempDir, err = os.MkdirTemp("", "duet-agent-"); err != nil {
			return nil, err
		}
		k.Dir = k.tempDir
	}
	path, err := k.Env.Find(l.Command[0], k.Dir)
	if err != nil {
		k.removeDir()
		return nil, fmt.Errorf("%s: the program %q was not found: `duet-rpc agents` says how to get it", l.Name, l.Command[0])
	}
	k.runner = process.NewRunner(ctx, cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), process.Grace{})
	k.proc, err = k.runner.Start(process.Spec{Path: path, Argv: l.Command, CWD: k.Dir, Env: maps.Clone(k.Env), Stdin: true})
	if err != nil {
		k.runner.Close()
		k.removeDir()
		return nil, fmt.Errorf("%s: the program %q could not be started: %w", l.Name, l.Command[0], err)
	}
	out, stop := k.proc.Output()
	k.conn = acp.NewConn((*input)(k), k.handler(opts))
	k.read.Go(func() { k.conn.Read(io.LimitReader(out, cmp.Or(opts.MaxOutput, defaultMost))) })
	spare := context.AfterFunc(ctx, k.proc.Kill)
	k.release = func() {
		spare()
		stop()
	}
	if err := k.greet(ctx); err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// greet calls initialize. An agent that refuses the newest version of the protocol gets the oldest
// one.
func (k *Link) greet(ctx context.Context) (err error) {
	var can acp.ClientCapabilities
	can.Auth.Terminal, can.Meta.TerminalAuth = json.RawMessage("true"), true // Duet runs programs for signing in in a terminal
	request := acp.Offer(can, 0)
	k.Info, err = Ask[acp.Initialized](ctx, k, k.startTime, acp.MethodInitialize, request)
	if errors.As(err, new(*Refusal)) {
		k.Info, err = Ask[acp.Initialized](ctx, k, k.startTime, acp.MethodInitialize, request.Fallback())
	}
	return err
}

// handler handles messages from the agent.
func (k *Link) handler(opts Options) acp.Handler {
	h := acp.Handler{
		Update: opts.Update, Notice: opts.Notice,
		Request: func(string, []byte) bool {
			if k.open.Add(1) > maxRequests {
				k.open.Add(-1)
				return false
			}
			return true
		},
		Serve:    k.serve,
		Response: func(_, _ []byte) {}, Garbage: func([]byte) {}, TooLong: func(int64) {},
	}
	if h.Update == nil {
		h.Update = func(_, _ []byte, _ bool) {}
	}
	if h.Notice == nil {
		h.Notice = func(string, []byte) {}
	}
	return h
}

func (k *Link) removeDir() {
	if k.tempDir != "" {
		os.RemoveAll(k.tempDir)
	}
}

// input is the agent's input, which records when it is closed.
type input Link

func (in *input) Write(b []byte) (int, error) {
	n, err := in.proc.Write(b)
	if err != nil {
		in.inputClosed.Store(true)
	}
	return n, err
}

// Close ends the agent, and returns after the last of its output was handled. It may be called
// more than once.
func (k *Link) Close() { k.closing.Do(k.end) }

func (k *Link) end() {
	k.proc.CloseInput()
	if !k.proc.Wait(exitGrace) {
		k.proc.Terminate()
	}
	<-k.conn.Done()
	k.release()
	k.read.Wait()
	k.runner.Close()
	k.removeDir()
}

// serve refuses requests of the agent.
func (k *Link) serve(_ context.Context, method string, _ json.RawMessage) (any, error) {
	k.open.Add(-1)
	return nil, acp.MethodNotFound(method)
}

// A Refusal is an error response of the agent.
type Refusal struct {
	Agent string
	Wire  *acp.Error
	Text  string // the reason, in its words
}

func (e *Refusal) Error() string { return e.Agent + ": " + e.Text }

// Ask calls a method of the agent, with the timeout d.
func Ask[R any](ctx context.Context, k *Link, d time.Duration, method string, params any) (R, error) {
	within, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	result, err := acp.Call[R](within, k.conn, method, params)
	var wire *acp.Error
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return result, ctx.Err()
	case within.Err() != nil:
		return result, k.withStderr(fmt.Sprintf("did not answer %s within %v", method, d))
	case k.inputClosed.Load(), k.proc.Ended(), isDone(k.conn.Done()):
		if k.proc.Wait(exitGrace) {
			return result, fmt.Errorf("%s %s", k.name, Text(k.proc.ExitText()))
		}
		return result, k.withStderr("has closed its output; does its command speak the Agent Client Protocol?")
	case errors.As(err, &wire):
		return result, &Refusal{k.name, wire, Text(detail(wire))}
	}
	return result, fmt.Errorf("%s: %w", k.name, err)
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// withStderr returns an error with the last stderr output of the agent.
func (k *Link) withStderr(what string) error {
	if words := k.proc.LastWords(); words != "" {
		what += ". Its last words: " + Text(words)
	}
	return fmt.Errorf("%s %s", k.name, what)
}

// detail returns an error's message with the detail that some agents put into data.
func detail(e *acp.Error) string {
	if d, ok := e.Data.(map[string]any); ok {
		for _, name := range []string{"details", "error", "message"} {
			if s, ok := d[name].(string); ok && s != "" && s != e.Message {
				return cmp.Or(e.Message, "error") + ": " + s
			}
		}
	}
	return cmp.Or(e.Message, "it answered with an error")
}

// Text returns a text of an agent, shortened.
func Text(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// A Launch is the data to start an agent with.
type Launch struct {
	Name        string // for display
	Command     []string
	Environment map[string]string // in addition to the variables of each child; contains keys
	Keys        []string          // the values that are keys

	// StartTimeout is how long it may take for initialize, and to open or list sessions; 0: [StartTime].
	StartTimeout time.Duration
}

// Askable returns an error if an agent cannot report about itself: it is not installed, or
// speaks another protocol.
func Askable(a config.Agent) error {
	there, host := a.OnHost()
	switch {
	case host != "":
		return fmt.Errorf("%s works on the host %s: ask there with duet-rpc --host %s agents check %s", a.Name, host, host, there)
	case a.Driver != config.DriverACP:
		return fmt.Errorf("%s has the driver %q; only agents that speak the Agent Client Protocol can be asked", a.Name, a.Driver)
	case a.CLI != "":
		return fmt.Errorf("%s is installed and its adapter is not: %s", a.Name, cmp.Or(a.HowToInstall(), a.Install()))
	case !a.Available:
		return fmt.Errorf("%s is not installed: %s", a.Name, cmp.Or(a.HowToInstall(), a.Install()))
	}
	return nil
}

// LaunchOf returns how to start an agent, and descriptions of the missing keys: the agent starts
// without them. It does not prompt for a key. If ctx has the environment of a client (package
// clientenv), that is used; else that of this process, by getenv.
func LaunchOf(ctx context.Context, c *config.Config, a config.Agent, getenv func(string) string) (l Launch, missing []string) {
	client := clientenv.From(ctx)
	env := a.Variables(client, getenv)
	keys, missing := c.FetchKeys(ctx, a, client.Lookup(getenv))
	maps.Copy(env, keys)
	return Launch{
		Name: a.Name, Command: a.StartCommand(), Environment: env, Keys: slices.Collect(maps.Values(keys)), StartTimeout: a.StartTimeout,
	}, missing
}
