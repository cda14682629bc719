package handlers

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

const (
	// outputEvery is the time between two event.taskOutput of a task.
	outputEvery = time.Second / 20
	// outputAtMost bounds the output that waits for a connection, in bytes;
	// what is beyond it is lost, and can be fetched with task.get.
	outputAtMost = 256 << 10
	// notesAtMost bounds what waits for a connection beside output.
	notesAtMost = 1000
	// resultAtMost bounds a result in event.taskCompleted, in bytes.
	resultAtMost = 64 << 10
)

// broadcasts tells connections what becomes of tasks, as AIWG
// means to: event.taskQueued and so on. A connection joins by calling a method
// of the task family.
type broadcasts struct {
	log *slog.Logger

	watching sync.Mutex // guards the two below, and is held while a watch begins
	hub      *hub.Hub   // that is being watched
	events   *eventlog.Watch

	mu      sync.Mutex // guards the fields below
	members map[*server.Conn]*member
}

func newBroadcasts(log *slog.Logger) *broadcasts {
	return &broadcasts{log: log, members: make(map[*server.Conn]*member)}
}

// watch makes sure that the events of h are seen. A process has one hub at a
// time, so the last one counts.
func (b *broadcasts) watch(h *hub.Hub) {
	b.watching.Lock()
	defer b.watching.Unlock()
	if b.hub == h {
		return
	}
	if b.events != nil {
		b.events.Stop()
		b.mu.Lock()
		for _, m := range b.members {
			m.expect(-1) // the numbers are of another log now
		}
		b.mu.Unlock()
	}
	b.hub, b.events = h, h.Events().Watch(b.see)
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
		m = newMember(func(ctx context.Context, method string, params any) error {
			return conn.Send(ctx, dialect.Notification{JSONRPC: "2.0", Method: method, Params: params})
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
// lasts.
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
	for _, m := range members {
		select {
		case <-m.drained():
		case <-m.ended:
		case <-ctx.Done():
			return
		}
	}
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
			b.log.Warn("broadcasts are dropped: the peer does not read", "method", n.method)
		}
	}
}

// A note is one broadcast that waits. Without a method it is output.
type note struct {
	task   string
	seq    int64
	method string
	params any
	chunk  string // of output that comes
	output []byte // of output that waits
}

// The seq of each is its event's: who has lost the hub goes on behind it.
type taskQueuedNote struct {
	TaskID string `json:"taskId"`
	Prompt string `json:"prompt"`
	Seq    int64  `json:"seq"`
}

type taskStartedNote struct {
	TaskID string `json:"taskId"`
	PID    *int   `json:"pid"`
	Seq    int64  `json:"seq"`
}

type taskOutputNote struct {
	TaskID string `json:"taskId"`
	Chunk  string `json:"chunk"`
	Stream string `json:"stream"`
	Seq    int64  `json:"seq"` // of its end
}

type taskEndedNote struct {
	TaskID   string  `json:"taskId"`
	Result   *string `json:"result,omitempty"`
	Duration *int64  `json:"duration,omitempty"` // milliseconds
	Error    string  `json:"error,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	Seq      int64   `json:"seq"`
}

// noteOf is what an event means for who watches tasks, or nil. s is the session
// as it is now: it may have gone on since.
func noteOf(e domain.Event, s domain.Session) *note {
	if s.Task == 0 {
		return nil
	}
	id := domain.TaskName(s.Task)
	if d, ok := e.Payload.(domain.MessageDelta); ok && !d.Thought && d.Text != "" {
		return &note{task: id, seq: e.Seq, chunk: d.Text}
	}
	change, ok := e.Payload.(domain.RunStateChanged)
	if !ok {
		return nil
	}
	switch change.To {
	case domain.Queued:
		return &note{task: id, seq: e.Seq, method: "event.taskQueued", params: taskQueuedNote{id, cut(s.Prompt, 1000), e.Seq}}
	case domain.Starting:
		return &note{task: id, seq: e.Seq, method: "event.taskStarted", params: taskStartedNote{TaskID: id, Seq: e.Seq}}
	case domain.Completed:
		result, took := cut(s.Result, resultAtMost), duration(s.Run)
		return &note{task: id, seq: e.Seq, method: "event.taskCompleted", params: taskEndedNote{TaskID: id, Seq: e.Seq, Result: &result, Duration: took}}
	case domain.Failed:
		return &note{task: id, seq: e.Seq, method: "event.taskFailed", params: taskEndedNote{TaskID: id, Seq: e.Seq, Error: cut(errorText(s.Run), resultAtMost), Duration: duration(s.Run)}}
	case domain.Cancelled, domain.Interrupted:
		return &note{task: id, seq: e.Seq, method: "event.taskCancelled", params: taskEndedNote{TaskID: id, Seq: e.Seq, Reason: cut(reasonText(s.Run), resultAtMost)}}
	case domain.TimedOut:
		return &note{task: id, seq: e.Seq, method: "event.taskTimeout", params: taskEndedNote{TaskID: id, Seq: e.Seq, Error: cut(errorText(s.Run), resultAtMost)}}
	}
	return nil
}

func reasonText(r domain.Run) string {
	if r.Error == "" {
		return string(r.State)
	}
	return r.Error
}

// duration is how long a run ran, in milliseconds; nil if it did not.
func duration(r domain.Run) *int64 {
	if r.Started.IsZero() || r.Ended.IsZero() {
		return nil
	}
	ms := r.Ended.Sub(r.Started).Milliseconds()
	return &ms
}

// A member is a connection that gets broadcasts: a bounded queue, and a
// goroutine (run) that sends from it at the pace of the peer.
type member struct {
	send func(ctx context.Context, method string, params any) error

	wake chan struct{} // something has changed

	warned bool // that broadcasts are dropped; guarded by the lock of broadcasts

	mu     sync.Mutex // guards the fields below
	queue  []note
	output int // bytes of output in queue
	held   int // while above 0, only what came before is sent
	before int // how many of queue that are

	replaying bool   // what happened before is being read
	later     []note // what happens meanwhile
	sending   bool   // run is about to send, or does
	after     int64  // of what happens now, only what has a higher number is sent

	idle  []chan struct{} // closed when nothing waits any more
	ended chan struct{}   // closed when nothing is sent any more
}

// expect says that what is sent from now on has higher numbers than seq.
func (m *member) expect(seq int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.after = seq
}

// drained is closed as soon as nothing waits for the member.
func (m *member) drained() <-chan struct{} {
	idle := make(chan struct{})
	m.mu.Lock()
	m.idle = append(m.idle, idle)
	m.mu.Unlock()
	m.changed()
	return idle
}

// replay queues what became of tasks after since, up to upTo, before all that
// happens now. What is behind what cannot be read is left out.
func (m *member) replay(ctx context.Context, events *eventlog.Log, since, upTo int64) error {
	if since < 0 {
		since = events.Began()
	}
	err := events.Replay(ctx, []domain.EventKind{domain.EventRunState}, since, upTo, func(e domain.Event, s domain.Session) bool {
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

func newMember(send func(context.Context, string, any) error) *member {
	return &member{send: send, wake: make(chan struct{}, 1), ended: make(chan struct{}), after: -1}
}

// hold begins or ends to hold back what comes from now on. What waits already
// does not wait longer: a client that sends requests without a pause would get
// nothing, until what waits for it is dropped.
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

// put queues a note, without waiting. Output that follows output of the same
// task is joined to it, and lost if too much waits already; it reports whether
// a note was lost that is no output.
func (m *member) put(n note) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.changed()
	if n.seq <= m.after { // it was sent, or happened before
		return true
	}
	if !m.replaying {
		return m.putLocked(n)
	}
	if len(m.later) >= notesAtMost {
		return n.method == ""
	}
	m.later = append(m.later, n)
	return true
}

func (m *member) putLocked(n note) bool {
	if n.method != "" {
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
	if last := len(m.queue) - 1; last < 0 || m.queue[last].method != "" || m.queue[last].task != n.task {
		m.queue = append(m.queue, note{task: n.task})
	}
	last := &m.queue[len(m.queue)-1]
	last.output, last.seq = append(last.output, n.chunk...), n.seq
	return true
}

// run sends until ctx, which is the connection's, ends.
func (m *member) run(ctx context.Context) {
	defer close(m.ended)
	sent := make(map[string]time.Time) // when output of a task was sent last
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
		method, params := n.method, n.params
		if method == "" {
			method, params = "event.taskOutput", taskOutputNote{n.task, string(n.output), "stdout", n.seq}
			sent[n.task] = time.Now()
		} else if _, ended := n.params.(taskEndedNote); ended {
			delete(sent, n.task)
		}
		if m.send(ctx, method, params) != nil {
			return
		}
	}
}

// next takes the first note off the queue. Output that is not due yet waits,
// unless something behind it is no output; then it is nil, and wait says for
// how long, if that is known.
func (m *member) next(sent map[string]time.Time) (n *note, wait time.Duration) {
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
	if head.method == "" {
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
		if n.method != "" {
			return true
		}
	}
	return false
}

// firstPart splits output so that a part of it fits into any message, however
// it is escaped.
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
