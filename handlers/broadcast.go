package handlers

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// broadcasts tells connections what becomes of tasks, as AIWG
// means to: event.taskQueued and so on. A connection joins by calling a method
// of the task family.
type broadcasts struct {
	log *slog.Logger

	watching sync.Mutex // guards the field below, and is held while a watch begins
	events   *eventlog.Watch

	mu      sync.Mutex // guards the fields below
	members map[*server.Conn]*member
}

func newBroadcasts(log *slog.Logger) *broadcasts {
	return &broadcasts{log: log, members: make(map[*server.Conn]*member)}
}

// watch makes sure that the events of the hub are seen.
func (b *broadcasts) watch(h *hub.Hub) {
	b.watching.Lock()
	defer b.watching.Unlock()
	if b.events == nil {
		b.events = h.Events().Watch(b.see)
	}
}

// join makes the connection a member, if it is none, and holds its broadcasts
// back until the reply has gone out. A new one is first told what became of
// tasks after since, if that is given; see statsParams.
func (b *broadcasts) join(ctx context.Context, h *hub.Hub, since *int64) {
	conn := server.ConnFrom(ctx)
	if conn == nil {
		return
	}
	b.mu.Lock()
	m := b.members[conn]
	if m == nil {
		m = newMember(func(ctx context.Context, message *dialect.Notification) error {
			return conn.Send(ctx, message)
		})
		m.replaying = since != nil
		last := h.Events().Last()
		m.expect(last)
		started := conn.Go(func(ctx context.Context) {
			if since != nil {
				if err := m.replay(ctx, h.Events(), *since, last); err != nil && ctx.Err() == nil {
					b.log.Warn("not all that became of tasks can be told again", "err", err)
				}
			}
			m.run(ctx)
			b.mu.Lock()
			delete(b.members, conn)
			b.mu.Unlock()
		})
		if started {
			b.members[conn] = m
		}
	}
	b.mu.Unlock()
	m.hold(1)
	server.AfterReply(ctx, func() { m.hold(-1) })
}

// flushed waits until all members were sent what has happened, as long as ctx
// lasts: for all at once, as [subscriptions] do.
func (b *broadcasts) flushed(ctx context.Context) {
	b.watching.Lock()
	events := b.events
	b.watching.Unlock()
	if events == nil || events.CatchUp(ctx) != nil {
		return
	}
	b.mu.Lock()
	members := slices.Collect(maps.Values(b.members))
	b.mu.Unlock()
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			select {
			case <-m.drained():
			case <-m.ended:
			case <-ctx.Done():
			}
		})
	}
	all.Wait()
}

// see is called with each event.
func (b *broadcasts) see(e domain.Event, s domain.Session) {
	n := noteOf(e, s)
	if n == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.members {
		if !m.put(*n) && !m.warned { // once: in a busy project there are very many
			m.warned = true
			b.log.Warn("broadcasts are dropped: the peer does not read", "method", n.message.Method)
		}
	}
}
