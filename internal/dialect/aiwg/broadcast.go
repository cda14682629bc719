package aiwg

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// broadcasts sends AIWG's notifications about tasks (event.taskQueued and so on). A connection
// joins by calling a method of the task family.
type broadcasts struct {
	hub func(context.Context) (*hub.Hub, error)
	log *slog.Logger

	watching sync.Mutex // guards the field below; held while a watch begins
	events   *eventlog.Watch

	mu      sync.Mutex // guards the fields below
	members map[*server.Conn]*member
}

func newBroadcasts(h func(context.Context) (*hub.Hub, error), log *slog.Logger) *broadcasts {
	return &broadcasts{hub: h, log: log, members: make(map[*server.Conn]*member)}
}

// watch subscribes to the hub's events, once.
func (b *broadcasts) watch(h *hub.Hub) {
	b.watching.Lock()
	defer b.watching.Unlock()
	if b.events == nil {
		b.events = h.Events().Watch(b.see)
	}
}

// join makes the connection a member, if it is none, and holds its broadcasts back until the reply
// is sent. A new member first gets the changes of tasks after since, if that is given; see
// TaskStatsParams. It fails without a hub.
func (b *broadcasts) join(ctx context.Context, since *int64) error {
	h, err := b.hub(ctx)
	if err != nil {
		return err
	}
	b.watch(h)
	conn := server.ConnFrom(ctx)
	if conn == nil {
		return nil
	}
	b.mu.Lock()
	m := b.members[conn]
	if m == nil {
		m = newMember(func(ctx context.Context, message *protocol.Notification) error {
			return conn.Send(ctx, message)
		})
		m.replaying = since != nil
		last := h.Events().Last()
		m.expect(last)
		started := conn.Go(func(ctx context.Context) {
			if since != nil {
				if err := m.replay(ctx, h.Events(), *since, last); err != nil && ctx.Err() == nil {
					b.log.Warn("cannot repeat all notifications of tasks", "err", err)
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
	return nil
}

// flushed waits until all members have all broadcasts so far, or ctx ends. It waits for all members
// at once.
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

// see broadcasts an event.
func (b *broadcasts) see(e domain.Event, s domain.TurnInSession) {
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

const (
	// outputEvery is the time between two broadcasts of a task's output.
	outputEvery = time.Second / 20
	// outputAtMost limits the queued output of a connection, in bytes. Further output is dropped;
	// task.get returns it.
	outputAtMost = 256 << 10
	// notesAtMost limits the queued notes of a connection that are no output.
	notesAtMost = 1000
)

// A member is a connection that gets broadcasts: a bounded queue, and a goroutine (run) that sends
// as fast as the peer reads.
type member struct {
	send func(context.Context, *protocol.Notification) error

	wake chan struct{} // something has changed

	warned bool // the log says that broadcasts were dropped; guarded by broadcasts.mu

	mu     sync.Mutex // guards the fields below
	queue  []note
	output int // bytes of output in queue
	held   int // while above 0, only the first notes of queue are sent
	before int // their number

	replaying bool   // earlier events are being read
	later     []note // of the events that come meanwhile
	sending   bool   // turn is about to send, or sends
	after     int64  // new events with this number or a lower one are not sent

	idle  []chan struct{} // closed when no notification is waiting
	ended chan struct{}   // closed when sending has ended
}

// expect ignores new events with the number seq or a lower one.
func (m *member) expect(seq int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.after = seq
}

// drained returns a channel that is closed as soon as the queue is empty.
func (m *member) drained() <-chan struct{} {
	idle := make(chan struct{})
	m.mu.Lock()
	m.idle = append(m.idle, idle)
	m.mu.Unlock()
	m.changed()
	return idle
}

// replay queues the changes of tasks after since, up to upTo, before new ones. An event that cannot
// be read ends the replay.
func (m *member) replay(ctx context.Context, events *eventlog.Log, since, upTo int64) error {
	if since < 0 {
		since = events.Began()
	}
	err := events.Replay(ctx, []domain.EventKind{domain.EventTurnState}, since, upTo, func(e domain.Event, s domain.TurnInSession) bool {
		if n := noteOf(e, s); n != nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.queue = append(m.queue, *n)
			return len(m.queue) < notesAtMost
		}
		return true
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replaying = false
	for _, n := range m.later {
		m.putLocked(n)
	}
	m.later = nil
	return err
}

func newMember(send func(context.Context, *protocol.Notification) error) *member {
	return &member{send: send, wake: make(chan struct{}, 1), ended: make(chan struct{}), after: -1}
}

// hold begins (1) or ends (-1) to hold back new notes. It does not hold back queued ones: a client
// that sends requests without a pause would get nothing until its notes are dropped.
func (m *member) hold(n int) {
	m.mu.Lock()
	if m.held == 0 {
		m.before = len(m.queue)
	}
	m.held += n
	m.mu.Unlock()
	m.changed()
}

func (m *member) changed() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// put queues a note, without waiting. It appends output to queued output of the same task, and
// drops output if the queue is full. It returns false if it dropped a note that is no output.
func (m *member) put(n note) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.changed()
	if n.seq <= m.after { // it was sent already
		return true
	}
	if !m.replaying {
		return m.putLocked(n)
	}
	if len(m.later) >= notesAtMost {
		return n.message == nil
	}
	m.later = append(m.later, n)
	return true
}

func (m *member) putLocked(n note) bool {
	if n.message != nil {
		if len(m.queue) >= notesAtMost {
			return false
		}
		m.queue = append(m.queue, n)
		return true
	}
	if m.output+len(n.chunk) > outputAtMost {
		return true
	}
	m.output += len(n.chunk)
	if last := len(m.queue) - 1; last < 0 || m.queue[last].message != nil || m.queue[last].task != n.task {
		m.queue = append(m.queue, note{task: n.task})
	}
	last := &m.queue[len(m.queue)-1]
	last.output, last.seq = append(last.output, n.chunk...), n.seq
	return true
}

// run sends until ctx, the connection's context, ends.
func (m *member) run(ctx context.Context) {
	defer close(m.ended)
	sent := make(map[int64]time.Time) // time of the last output, by task
	for {
		n, wait := m.next(sent)
		if n == nil {
			var due <-chan time.Time
			if wait > 0 {
				due = time.After(wait)
			}
			select {
			case <-m.wake:
			case <-due:
			case <-ctx.Done():
				return
			}
			continue
		}
		message := n.message
		if message == nil {
			message = TaskOutput(n.task, string(n.output), n.seq)
			sent[n.task] = time.Now()
		} else if n.last {
			delete(sent, n.task)
		}
		if m.send(ctx, message) != nil {
			return
		}
	}
}

// next removes and returns the first note that may be sent now. Output waits for outputEvery, unless
// a later note of the queue is no output. If no note may be sent, n is nil, and wait is the time
// until one may, or 0 if that is unknown.
func (m *member) next(sent map[int64]time.Time) (n *note, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		if m.sending = n != nil; m.sending || len(m.queue) > 0 || m.replaying {
			return
		}
		for _, idle := range m.idle {
			close(idle)
		}
		m.idle = nil
	}()
	if len(m.queue) == 0 || m.held > 0 && m.before == 0 {
		return nil, 0
	}
	head := m.queue[0]
	if head.message == nil {
		last, before := sent[head.task]
		if wait := outputEvery - time.Since(last); before && wait > 0 && !m.urgent() {
			return nil, wait
		}
		head.output, m.queue[0].output = firstPart(head.output)
		m.output -= len(head.output)
		if len(m.queue[0].output) > 0 {
			return &head, 0
		}
	}
	m.queue = m.queue[1:]
	m.before = max(0, m.before-1)
	return &head, 0
}

func (m *member) urgent() bool {
	for _, n := range m.queue {
		if n.message != nil {
			return true
		}
	}
	return false
}

// firstPart splits output so that its first part fits into any message, however it is escaped.
func firstPart(output []byte) (part, rest []byte) {
	const most = 64 << 10
	if len(output) <= most {
		return output, nil
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(output[end]) {
		end--
	}
	return output[:end:end], output[end:]
}

// A note is a queued broadcast: a message, or output.
type note struct {
	task    int64
	seq     int64
	message *protocol.Notification // nil: output
	last    bool                   // the task has ended
	chunk   string                 // new output
	output  []byte                 // queued output
}

// noteOf converts an event to the broadcast about a task. It returns nil for other events. s is the
// current session, which may be newer than the event.
func noteOf(e domain.Event, s domain.TurnInSession) *note {
	if s.Task == 0 {
		return nil
	}
	switch p := e.Payload.(type) {
	case domain.MessageDelta:
		if !p.Thought && p.Text != "" {
			return &note{task: s.Task, seq: e.Seq, chunk: p.Text}
		}
	case domain.TurnStateChanged:
		if message := TaskChanged(p.To, s, e.Seq); message != nil {
			return &note{task: s.Task, seq: e.Seq, message: message, last: p.To.Ended()}
		}
	}
	return nil
}
