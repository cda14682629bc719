package host

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/server"
)

// builds records which clients are of another build than this daemon. A daemon whose clients are
// all of another build ends as soon as it is idle, and the next one is of the clients' build. It
// may be used by any goroutine.
type builds struct {
	own         string     // the build id of this daemon; "" if unknown
	connections func() int // returns the number of connections
	met         chan bool  // buffer of 1; gets a value when a client of another build has come

	mu     sync.Mutex
	others map[*server.Conn]string // their versions
	// observers only follow what happens. They do not count as clients, of whichever build they are.
	observers map[*server.Conn]struct{}
}

func newBuilds(own string, connections func() int) *builds {
	return &builds{own: own, connections: connections, met: make(chan bool, 1), others: make(map[*server.Conn]string), observers: make(map[*server.Conn]struct{})}
}

// add records the build of a client until its connection ends, with ctx, and reports whether it
// differs.
func (b *builds) add(ctx context.Context, conn *server.Conn, build, version string) (other bool) {
	if conn == nil || b.own == "" || build == "" || build == b.own {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.others[conn]; !known {
		context.AfterFunc(ctx, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.others, conn)
		})
	}
	b.others[conn] = version
	return true
}

// observe records until the end of ctx that a connection is an observer's.
func (b *builds) observe(ctx context.Context, conn *server.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.observers[conn]; known || conn == nil {
		return
	}
	b.observers[conn] = struct{}{}
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.observers, conn)
	})
}

// clients returns the number of clients that are no observers.
func (b *builds) clients() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clientsLocked()
}

func (b *builds) clientsLocked() int { return b.connections() - len(b.observers) }

// superseded reports whether there are clients, and all of them are of another build.
func (b *builds) superseded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.others) > 0 && len(b.others) >= b.clientsLocked()
}

// wake reports a client of another build to the lifecycle. With ends, the client was told that the
// daemon ends.
func (b *builds) wake(ends bool) {
	for {
		select {
		case b.met <- ends:
			return
		default:
		}
		select {
		case earlier := <-b.met:
			ends = ends || earlier
		default:
		}
	}
}

// issue reports clients of another build; "" if there are none.
func (b *builds) issue(version string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.others) == 0 {
		return ""
	}
	clients := slices.Compact(slices.Sorted(maps.Values(b.others)))
	return fmt.Sprintf("this daemon (%s) and a client (%s) are of different builds: the daemon is replaced when its work is done and no "+
		"client of its own build is connected; `duet-rpc daemon stop` ends it before that",
		version, clients[0])
}

// TryDemoAgent runs a prompt with the demo agent in its own directory, to test database,
// executor and agent.
func TryDemoAgent(ctx context.Context, s hubprocess.Settings, log *logging.Log) error {
	dir, err := os.MkdirTemp("", "duet-rpc-doctor")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.Root = dir
	p, lock, err := claim(ctx, &s)
	if err != nil {
		return unavailable(p, err)
	}
	defer os.RemoveAll(p.StateDir)
	defer lock.Close()
	h, err := openProject(ctx, hubOptions{settings: &s, log: log, project: p, lock: lock, idle: RestMemory})
	if err != nil {
		return unavailable(p, err)
	}
	defer h.close(ctx)
	turn, err := h.hub.Launch(ctx, hub.LaunchSpec{Prompt: "quiet", Agent: "demo", Source: "prompt"})
	if err != nil {
		return err
	}
	if turn, err = h.hub.Await(ctx, turn.UUID); err != nil {
		return err
	}
	if turn.State != domain.Completed {
		return fmt.Errorf("the demo agent's run is %s: %s", turn.State, turn.Error)
	}
	return nil
}
