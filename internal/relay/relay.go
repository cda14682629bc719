// Package relay connects an editor with a hub that lives in another process.
//
// An editor's process runs a [Relay] once a message needs the hub: frames in, frames out. The
// editor sees one connection that never breaks, although the hub behind it may end. Then the
// relay answers the pending requests (-32042 hub_lost) and calls Options.Connect for the next
// hub. It restores the editor's state there: its subscriptions, each from its last position, and
// AIWG's notifications about tasks. The editor notices nothing else.
//
// Messages pass byte for byte. The relay asks the next hub to give a subscription its old id.
// The ids of hubs' requests are random, so that an answer to a hub that has gone matches no
// request of the next one.
//
// While there is no hub Options.Early answers messages that need none, so that an editor's first
// requests do not wait for a hub that is starting.
//
// Nothing is queued while both sides read: the goroutine that reads a message also writes it. So
// a side that does not read stops the relay from reading the other side, and no other
// connection. Only while there is no hub do messages of the editor wait, in a queue bounded by
// count, bytes and time.
//
//   - hubs.go connects to a hub, notices its end, and keeps the messages that wait for the next one.
//   - fromeditor.go and fromhub.go pass messages on; calls.go has the requests without an answer.
//   - subscriptions.go restores an editor's state at the next hub.
//   - silence.go notices a hub that does not answer.
package relay

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/pending"
	"github.com/duet-rpc/duet-rpc/server"
)

// Limits for messages of the editor that wait while there is no hub.
const (
	maxWaiting      = 1000     // messages
	maxWaitingBytes = 16 << 20 // of all of them; a single message may be longer
)

// maxReplyBytes bounds the queued answers to refused frames, in bytes, plus or minus one answer.
// Beyond it the relay does not read the editor either. Answers to lost requests are bounded by
// the requests in flight.
const maxReplyBytes = 1 << 20

// Pauses between attempts to connect; each is twice the previous one.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// maxHubFrame is Options.HubFrame by default. The hub is our own program, which bounds its
// messages. Every message for an editor must also pass a relay.
const maxHubFrame = 1<<30 - 1

// ErrDormant is the error of Connect, wrapped or not, if there is no hub and none should start
// until the editor needs one, as after daemon.stop. The relay then waits for the editor's next
// message and calls Connect again, with a context for which [Wanted] is true, or waits for
// Options.Arrival.
var ErrDormant = errors.New("relay: no hub is wanted until the editor needs one")

// An UnavailableError is the error of Connect if no hub can run until the user fixes the cause.
// Options.Unavailable answers the waiting messages. The relay calls Connect again when the
// editor next needs a hub.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return e.Err.Error() }
func (e *UnavailableError) Unwrap() error { return e.Err }

// The states of the connection to the hub, as logged at debug level.
const (
	stateConnecting = "connecting" // Connect is called until it succeeds
	stateConnected  = "connected"
	stateSilent     = "silent"  // the hub does not answer; connected or lost follows
	stateLost       = "lost"    // the hub has gone
	stateDormant    = "dormant" // see ErrDormant
	stateEnded      = "ended"   // Run is about to return
)

// Options configure a Relay. Connect is required.
type Options struct {
	// Connect returns a connection to a hub that speaks LSP framing. The relay calls it again
	// after 10 ms, doubled up to 1 s, until it succeeds, and after each loss of a hub. Connect
	// should return when ctx ends. The relay closes the connection.
	Connect func(ctx context.Context) (server.Transport, error)
	// Restricted reports that the editor does not trust the workspace.
	Restricted bool
	// Arrival, if set, returns when another process may have started a hub, or when ctx ends.
	// The relay calls it after Connect has returned [ErrDormant] or an [UnavailableError].
	Arrival func(ctx context.Context)
	// Early, if set, answers a message that needs no hub, with a nil response for a
	// notification. answered is false for a message that needs a hub.
	//
	// The relay calls it while there is no hub and no message of the editor waits for one, from
	// one goroutine at a time, which reads nothing more until Early returns; m is valid until
	// then. A shutdown or exit that it answers without an error ends the relay, as does one
	// without an id: no hub is started for it.
	Early func(m *frame.Message) (response []byte, answered bool)
	// Take, if set, is asked about each request of the editor that comes alone. If it returns a function, that
	// answers the request, and the hub does not get it. The relay calls the function from a goroutine of its
	// own; its context ends with the relay. m is valid until Take returns.
	Take func(m *frame.Message) (answer func(ctx context.Context) (response []byte))
	// Event, if set, receives the params of each event of a subscription of the editor. They are borrowed until it
	// returns, and it must not block.
	Event func(params []byte)
	// Unavailable, if set, answers a message that waits for a hub after Connect has returned an
	// [UnavailableError]; nil if the message has no response.
	Unavailable func(body []byte) (response []byte)
	// Patience is how long a message of the editor waits for a hub. Then a request is answered
	// with hub_lost and any other message is dropped. Default 5 s.
	Patience time.Duration
	// Ending, if set, is called when the editor has closed its side, has ended the connection or
	// cannot be written to, or the context of Run has ended. It must not block.
	Ending func()
	// Grace is how long running requests may take after the editor has closed its side or the
	// context of Run has ended. Default 1.8 s: the process must end within 2 s.
	Grace time.Duration
	// Limits bound frames of the editor. The zero value means the defaults.
	Limits frame.Limits
	// HubFrame bounds frames of the hub, in bytes. Default: 1 GiB.
	HubFrame int
	// Silence is how long a hub may take to answer a ping, which it gets when it has not
	// answered for a while or its heartbeat is late. Then the editor learns that the hub does
	// not answer. 0: the relay sends no ping.
	Silence time.Duration
	// Lost, if set, is the reason in the error of a request that a lost hub has not answered.
	Lost string
	// Broken, if set, is the notice to the editor when a hub is lost: daemon.silent. Another one has the
	// reason why Connect fails, and daemon.answers follows the next hub.
	Broken string
	// GiveUp is how long a hub may be silent that owes a message before the relay closes the connection,
	// for a line that may break without a word. 0: the relay waits.
	GiveUp time.Duration
	// Silent, if set, describes a hub that does not answer, and the remedy.
	Silent func() string
	// Long, if set, reports whether requests of a method may take long: they continue to wait
	// for a hub that does not answer now.
	Long func(method []byte) bool
	// Trace, if set, receives each message to and from the editor. The message is borrowed until
	// Trace returns, and Trace must not block.
	Trace func(sent bool, message []byte)
	// Logger logs events and, at debug level, each change of the connection to the hub. Default:
	// no log.
	Logger *slog.Logger
	// Released, if set, is called when a large buffer was released: a good time to return memory
	// to the system.
	Released func()
}

func (o Options) withDefaults() Options {
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	if o.Grace <= 0 {
		o.Grace = 1800 * time.Millisecond
	}
	if o.HubFrame <= 0 {
		o.HubFrame = maxHubFrame
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Relay relays one editor. Make it with New and call Run once.
type Relay struct {
	opts   Options
	editor *link
	prefix string // of the relay's own ids: a quote and text that no peer begins an id with

	ctx    context.Context // ends with the relay
	cancel context.CancelFunc
	jobs   sync.WaitGroup // all goroutines except the one that reads the editor

	expected chan struct{} // holds one token when the hub begins to owe a message

	mu          sync.Mutex // guards the fields below
	change      chan struct{}
	hub         *link     // nil: no hub to send to
	silence     string    // why the connected hub does not answer; "": it does
	noticed     string    // the last notice to the editor that the hub does not answer; "": none is in force
	problem     string    // see NoteProblem
	opening     *link     // connected, but without the editor's state yet
	flushing    bool      // a goroutine sends the waiting messages; no message may overtake them
	waiting     []waiting // messages of the editor, in order
	bytes       int       // of waiting
	shutdown    shutdown
	drain       bool // further messages of the editor are ignored
	lastID      uint64
	ownRequests pending.Table[func(*frame.Message)] // the relay's own requests that the hub has not answered
	calls       calls
	subs        subscriptions
	joined      family
	lastTask    int64 // the seq of the last event.task… sent to the editor; -1: none
	terminals   terminals
	offer       []byte // the params of the editor's last editor.offer; nil: none
	// restricted: the editor does not trust the workspace.
	restricted bool
	result     error // of Run
	taken      int   // requests that a function of Options.Take answers

	replies    [][]byte // the relay's own answers, on their way to the editor
	replyBytes int      // of replies, including those being written
}

// shutdown is the progress of a shutdown or exit by the editor.
type shutdown uint8

const (
	noShutdown     shutdown = iota
	shutdownAsked           // the answer decides whether the hub ends the connection
	shutdownAgreed          // the hub ends the connection
)

func (r *Relay) logState(state string) {
	r.opts.Logger.Debug("the connection to the hub", "state", state)
}

// end ends the relay: it closes both connections and wakes all waiters. Any goroutine may call
// it, any number of times.
func (r *Relay) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return
	}
	r.result = err
	r.drain = true
	r.cancel()
	for _, l := range []*link{r.hub, r.opening, r.editor} {
		if l != nil {
			l.t.Close()
		}
	}
}

// changed wakes all goroutines that wait for a change of state; r.mu is held.
func (r *Relay) changed() {
	close(r.change)
	r.change = make(chan struct{})
}

// await waits until a change makes done true, which it calls with r.mu held. It reports whether
// that happened before ctx or the relay ended.
func (r *Relay) await(ctx context.Context, done func() bool) bool {
	for {
		r.mu.Lock()
		ok, change := done(), r.change
		r.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-change:
		case <-ctx.Done():
			return false
		case <-r.ctx.Done():
			return false
		}
	}
}

// ownID returns an id that neither the editor nor a hub uses; r.mu is held.
func (r *Relay) ownID() string {
	r.lastID++
	return r.prefix + strconv.FormatUint(r.lastID, 10) + `"`
}

// request makes a request of the relay's own, and calls then with the response; r.mu is held,
// also in then.
func (r *Relay) request(method string, params []byte, then func(*frame.Message)) []byte {
	id := r.ownID()
	r.ownRequests.Add([]byte(id), then)
	body := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	body = append(append(append(body, `,"method":"`...), method...), '"')
	if params != nil {
		body = append(append(body, `,"params":`...), params...)
	}
	return append(body, '}')
}

// pause waits for a change, but no longer than d.
func (r *Relay) pause(change <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-change:
	case <-timer.C:
	case <-r.ctx.Done():
	}
}

// expectMessage notifies watch that the hub now owes a message.
func (r *Relay) expectMessage() {
	select {
	case r.expected <- struct{}{}:
	default: // already notified
	}
}

// current returns the hub that the relay reads; r.mu is held, and its reader calls it.
func (r *Relay) current() *link {
	if r.opening != nil {
		return r.opening
	}
	return r.hub
}

// New makes a relay for the editor at the other end of the transport.
func New(editor server.Transport, opts Options) *Relay {
	var random [12]byte
	_, _ = rand.Read(random[:]) // never fails
	r := &Relay{
		opts: opts.withDefaults(), editor: newLink(editor),
		prefix: `"duet-relay-` + hex.EncodeToString(random[:]) + "-",
		change: make(chan struct{}), expected: make(chan struct{}, 1), subs: newSubscriptions(),
		terminals: make(terminals), lastTask: -1, restricted: opts.Restricted,
	}
	if trace := opts.Trace; trace != nil {
		r.editor.trace = func(message []byte) { trace(true, message) }
	}
	r.editor.failed = func() { r.end(nil) } // the editor has gone
	return r
}

// Run relays until the editor closes its side, ends the connection with shutdown or exit, or ctx
// ends: nil. Running requests then have Options.Grace. Any other failure to read the editor is
// returned. Run closes both connections.
//
// If a read from the editor outlives its Close (see [server.Transport]), as one from standard
// input does, a goroutine stays blocked in it; it relays nothing more.
func (r *Relay) Run(ctx context.Context) error {
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer r.cancel()
	read := make(chan error, 1)
	go func() { read <- r.readEditor() }()
	r.jobs.Go(r.serveHubs)
	r.jobs.Go(r.expire)
	r.jobs.Go(r.writeReplies)

	var err error
	eof, reading := false, true
	select {
	case err = <-read:
		eof, reading = err == nil, false
	case <-ctx.Done():
	case <-r.ctx.Done(): // the hub has ended the connection, or the editor does not read
	}
	if r.opts.Ending != nil {
		r.opts.Ending()
	}
	if err == nil && r.ctx.Err() == nil {
		r.finish(ctx, eof)
	}
	r.end(nil)
	if o, ok := r.editor.t.(interface{ OutlivesClose() bool }); reading && !(ok && o.OutlivesClose()) {
		<-read
	}
	r.jobs.Wait()
	r.logState(stateEnded)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		err = r.result
	}
	return err
}

// finish lets the hub answer the editor's earlier requests. With eof, the editor may still read;
// it gets all messages of the hub until the hub closes its side, too. Otherwise only answers
// count.
func (r *Relay) finish(ctx context.Context, eof bool) {
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.Grace)
	defer cancel()
	if eof { // a signal does not shorten the wait: it has the same meaning as the end of input
		ctx = patient
	}
	r.mu.Lock()
	r.drain = true
	r.changed()
	r.mu.Unlock()
	if !r.await(patient, func() bool { return len(r.waiting) == 0 && !r.flushing && r.taken == 0 && r.replyBytes == 0 }) {
		return
	}
	r.mu.Lock()
	hub := r.hub
	if hub == nil || !eof && r.calls.none() {
		r.mu.Unlock()
		return
	}
	half, halves := hub.t.(interface{ CloseWrite() error })
	answered := halves // then the end of the connection decides
	var last []byte
	if !halves {
		last = r.request("ping", nil, func(*frame.Message) {
			answered = true
			r.changed()
		})
	}
	r.mu.Unlock()
	r.jobs.Go(func() { // the hub may not read
		if last != nil {
			hub.send(last)
		}
		if hub.flush() == nil && halves {
			_ = half.CloseWrite()
		}
	})
	r.await(patient, func() bool { return r.hub != hub || !halves && answered && r.calls.none() })
}
