package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

// The test binary is also the program that TestCommand starts.
func TestMain(m *testing.M) {
	if mode := os.Getenv("CLIENT_TEST_PROCESS"); mode != "" {
		process(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// standard is a registry with the methods that most tests need.
func standard() *server.Registry {
	reg := server.NewRegistry()
	server.HandleRaw(reg, "echo", func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil })
	server.Handle(reg, "fail", func(context.Context, struct{}) (int, error) {
		return 0, server.NewError(-32000, "Task not found: x", map[string]string{"kind": "task_not_found"})
	})
	server.Handle(reg, "broken", func(context.Context, struct{}) (int, error) { return 0, errors.New("secret") })
	// ask sends a request to the client.
	server.Handle(reg, "ask", func(ctx context.Context, p struct{ Method string }) (json.RawMessage, error) {
		var answer json.RawMessage
		err := server.ConnFrom(ctx).Call(ctx, p.Method, map[string]int{"n": 1}, &answer)
		return answer, err
	}, server.LongRunning())
	// tell sends notifications n = 1, 2, … of method tick.
	server.Handle(reg, "tell", func(ctx context.Context, p struct{ Count int }) (int, error) {
		for n := range p.Count {
			if err := server.ConnFrom(ctx).Notify(ctx, "tick", map[string]int{"n": n + 1}); err != nil {
				return 0, err
			}
		}
		return p.Count, nil
	})
	return reg
}

// aServer is one of our servers on a socket, which a test can stop and start again.
type aServer struct {
	t    *testing.T
	path string
	reg  *server.Registry
	stop func()
}

func serve(t *testing.T, reg *server.Registry) *aServer {
	s := &aServer{t: t, path: filepath.Join(t.TempDir(), "s"), reg: reg}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *aServer) start() {
	l, err := net.Listen("unix", s.path)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- server.New(s.reg, server.Options{Grace: 50 * time.Millisecond}).ServeListener(ctx, l)
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(s.t, <-served)
	})
}

func dial(t *testing.T, target client.Target, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Dial(context.Background(), target, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// fake is a server that a test scripts, in lines.
type fake struct {
	t    *testing.T
	ends chan net.Conn // the server's ends of the opened connections

	mu       sync.Mutex // guards the fields below
	down     bool       // every attempt to open fails
	openedAt []time.Time
}

func newFake(t *testing.T) *fake { return &fake{t: t, ends: make(chan net.Conn, 100)} }

// open makes the fake a Target: in memory, so that it works in a bubble.
func (f *fake) open(context.Context) (server.Transport, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.openedAt = append(f.openedAt, time.Now())
	if f.down {
		return nil, errors.New("nobody there")
	}
	ours, theirs := net.Pipe()
	f.ends <- theirs
	return ours, nil
}

// end is the fake server's end of one connection.
type end struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

// set makes later attempts to open fail, or succeed.
func (f *fake) set(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

// attempts returns the times of the attempts to open a connection since the last call.
func (f *fake) attempts() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.openedAt = nil }()
	return f.openedAt
}

func (f *fake) accept() *end {
	conn := <-f.ends
	f.t.Cleanup(func() { conn.Close() })
	return &end{f.t, conn, bufio.NewReader(conn)}
}

// dialFake returns a fake server, a client and the server's end of their connection.
func dialFake(t *testing.T, opts ...client.Option) (*fake, *client.Client, *end) {
	t.Helper()
	f := newFake(t)
	return f, dial(t, client.Opener(f.open), opts...), f.accept()
}

// subscribe makes a subscription.
func subscribe(t *testing.T, c *client.Client, opts eventstream.Options, handle func(eventstream.Event)) *eventstream.Subscription {
	t.Helper()
	sub, err := eventstream.Subscribe(context.Background(), c, opts, handle)
	require.NoError(t, err)
	return sub
}

type request struct {
	JSONRPC string
	ID      json.RawMessage
	Method  string
	Params  json.RawMessage
}

// next returns the next message from the client.
func (e *end) next() (r request) {
	e.t.Helper()
	line, err := e.lines.ReadBytes('\n')
	require.NoError(e.t, err)
	require.NoError(e.t, json.Unmarshal(line, &r), "%s", line)
	assert.Equal(e.t, "2.0", r.JSONRPC)
	return r
}

func (e *end) say(format string, args ...any) {
	e.t.Helper()
	_, err := fmt.Fprintf(e.Conn, format+"\n", args...)
	require.NoError(e.t, err)
}

// result answers a request.
func (e *end) result(r request, result string) {
	e.t.Helper()
	e.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

// async makes a call and returns a channel for its error.
func async(c *client.Client, method string, opts ...client.CallOption) <-chan error {
	result := make(chan error, 1)
	go func() { result <- c.Call(context.Background(), method, nil, nil, opts...) }()
	return result
}

// eventLog is a server's log of events, with event.subscribe and event.unsubscribe like package handlers.
type eventLog struct {
	testkit.Witness          // guards the fields below
	events          []string // kinds; the seq is the index + 1
	subs            map[string]*follower
	lastID          int
	asked           []string // the params of each event.subscribe
	sent            int      // events, over all connections
}

type follower struct {
	id   string
	conn *server.Conn
	next int
	wake chan struct{}
	stop chan struct{}
}

type subscribeParams struct {
	Kinds   []string `json:"kinds,omitempty"`
	Session string   `json:"session,omitempty"`
	Since   *int     `json:"since,omitempty"`
}

func newEventLog() *eventLog { return &eventLog{subs: map[string]*follower{}} }

func (g *eventLog) register(reg *server.Registry) {
	server.Handle(reg, "event.subscribe", func(ctx context.Context, p subscribeParams) (map[string]any, error) {
		g.Lock()
		defer g.Unlock()
		asked, _ := json.Marshal(p)
		g.asked = append(g.asked, string(asked))
		if p.Session == "nope" {
			return nil, server.NewError(-32603, "Session not found", map[string]string{"kind": "not_found"})
		}
		g.lastID++
		f := &follower{fmt.Sprint("sub_", g.lastID), server.ConnFrom(ctx), len(g.events), make(chan struct{}, 1), make(chan struct{})}
		if p.Since != nil {
			if *p.Since > len(g.events) {
				return nil, server.InvalidParam(server.ParamError{Param: "since", Expected: "a seq of this log", Received: "one after its end"})
			}
			f.next = *p.Since
		}
		g.subs[f.id] = f
		f.wake <- struct{}{}
		server.AfterReply(ctx, func() { go g.follow(f) })
		return map[string]any{"subscription_id": f.id, "seq": f.next}, nil
	})
	server.Handle(reg, "event.unsubscribe", func(_ context.Context, p struct {
		ID string `json:"subscription_id"`
	},
	) (bool, error) {
		g.Lock()
		defer g.Unlock()
		f := g.subs[p.ID]
		if f == nil {
			return false, server.NewError(-32603, "no such subscription", nil)
		}
		delete(g.subs, p.ID)
		close(f.stop)
		return true, nil
	})
}

func (g *eventLog) add(types ...string) {
	g.Lock()
	defer g.Unlock()
	g.events = append(g.events, types...)
	for _, f := range g.subs {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

func (g *eventLog) open() int {
	g.Lock()
	defer g.Unlock()
	return len(g.subs)
}

func (g *eventLog) follow(f *follower) {
	defer g.Note(func() { delete(g.subs, f.id) })
	for {
		select {
		case <-f.wake:
		case <-f.stop:
			return
		case <-f.conn.Done():
			return
		}
		g.Lock()
		batch, from := g.events[f.next:], f.next
		f.next = len(g.events)
		g.Unlock()
		for i, kind := range batch {
			seq := from + i + 1
			m := map[string]any{"jsonrpc": "2.0", "method": "event", "params": map[string]any{
				"subscription_id": f.id, "seq": seq, "kind": kind, "time": "2026-01-02T03:04:05.000000006Z", "data": map[string]int{"n": seq},
			}}
			select {
			case <-f.stop:
				return
			default:
			}
			if f.conn.Send(context.Background(), m) != nil {
				return
			}
			g.Note(func() { g.sent++ })
		}
	}
}
