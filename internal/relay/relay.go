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

// Bounds on what of the editor waits while there is no hub.
const (
	maxWaiting      = 1000     // messages
	maxWaitingBytes = 16 << 20 // of all of them; one message may always wait
)

// maxReplyBytes bounds answers to refused frames that wait for the editor to read,
// in bytes, give or take one; then it is not read either. Those to requests that
// were lost are bounded by what was in flight.
const maxReplyBytes = 1 << 20

// Pauses between attempts to connect; each is twice the one before.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// maxHubFrame bounds frames of the hub, in bytes. The hub is a program of
// ours, which knows what it sends; what it would send an editor of its own
// must also reach one behind a relay.
const maxHubFrame = 1<<30 - 1

// ErrDormant is what Connect returns, wrapped or not, where there is no hub
// and there should be none until the editor needs one, as after daemon.stop.
// The relay then waits for the editor's next message and calls Connect again,
// with a context for which [Wanted] is true, or for Options.Arrival.
var ErrDormant = errors.New("relay: no hub is wanted until the editor needs one")

// An UnavailableError is what Connect returns where no hub can be had until something is mended.
// What waits is answered by Options.Unavailable. Connect is called again when the editor needs a
// hub next.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return e.Err.Error() }
func (e *UnavailableError) Unwrap() error { return e.Err }

// What the log says, at debug, of the connection to the hub.
const (
	stateConnecting = "connecting" // Connect is called until it succeeds
	stateConnected  = "connected"
	stateSilent     = "silent"  // the hub is there, and does not answer; then connected or lost
	stateLost       = "lost"    // the hub has gone
	stateDormant    = "dormant" // see ErrDormant
	stateEnded      = "ended"   // Run is about to return
)

// Options configure a Relay. Connect is required.
type Options struct {
	// Connect returns a connection to a hub that speaks LSP framing. It is called
	// again after 10 ms, doubled up to 1 s, until it succeeds, and after each
	// loss of a hub. It should return when ctx ends. The relay closes what it
	// returned.
	Connect func(ctx context.Context) (server.Transport, error)
	// Restricted says that the editor has said that it does not trust the workspace.
	Restricted bool
	// Arrival, if set, returns when another process may have started a hub, or when ctx ends. It
	// is called after Connect has returned [ErrDormant] or an [UnavailableError].
	Arrival func(ctx context.Context)
	// Early, if set, answers a message for which no hub is needed, with a nil
	// response if there is none; answered is false for one that needs a hub. It is
	// called while there is no hub and nothing of the editor waits for one, by
	// one goroutine at a time, which reads nothing more until it returns; m is
	// valid until then. A shutdown or exit that it answers without an error ends
	// the relay, as does one without an id: no hub is started to be told of the end.
	Early func(m *frame.Message) (response []byte, answered bool)
	// Unavailable, if set, answers a message that waits for a hub when Connect has
	// returned an [UnavailableError]; nil if the message has no response.
	Unavailable func(body []byte) (response []byte)
	// Patience is how long a message of the editor waits for a hub; then a
	// request is answered with hub_lost and anything else is dropped. Default
	// 5 s.
	Patience time.Duration
	// Ending, if set, is called when the editor has closed its side, has ended the
	// connection or cannot be written to, or the context of Run has ended. It must
	// not block.
	Ending func()
	// Grace is how long requests that are under way may take when the editor
	// has closed its side or the context of Run has ended. Default 1.8 s: the
	// process is to be gone within 2 s.
	Grace time.Duration
	// Limits bound frames of the editor. The zero value means the defaults.
	Limits frame.Limits
	// Silence is how long a hub may take to give a sign of life when it is asked
	// for one, since it has not answered for a while or its heartbeat is late.
	// Then the editor is told that it does not answer. 0: it is never asked.
	Silence time.Duration
	// Silent, if set, says of a hub that does not answer who it is and what to do.
	Silent func() string
	// Long, if set, reports whether requests of a method may take long to be
	// answered: then they go on waiting for a hub that does not answer now.
	Long func(method []byte) bool
	// Trace, if set, sees each message that goes to the editor, and each that
	// comes from it, which is borrowed until it returns; it must not block.
	Trace func(sent bool, message []byte)
	// Logger gets what happens, and at debug each change of the connection to
	// the hub. Default: nothing is logged.
	Logger *slog.Logger
	// Released, if set, is called when a large buffer was given back: a good
	// time to return memory to the system.
	Released func()
}

func (o Options) withDefaults() Options {
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	if o.Grace <= 0 {
		o.Grace = 1800 * time.Millisecond
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
	prefix string // of ids of our own: a quote and text that nobody else begins an id with

	ctx    context.Context // ends with the relay
	cancel context.CancelFunc
	jobs   sync.WaitGroup // goroutines, but that which reads the editor

	expected chan struct{} // holds one token when something is expected of the hub and nothing was before

	mu          sync.Mutex // guards the fields below
	change      chan struct{}
	hub         *link     // nil: there is none to send to
	silence     string    // why the hub that is there does not answer; "": it does
	problem     string    // see NoteProblem
	opening     *link     // connected, but not told yet what it has to know
	flushing    bool      // a goroutine sends what waits; nothing may overtake it
	waiting     []waiting // messages of the editor, in their order
	bytes       int       // of waiting
	shutdown    shutdown
	drain       bool // nothing more of the editor is looked at
	lastID      uint64
	ownRequests pending.Table[func(*frame.Message)] // requests of our own that the hub has not answered
	calls       calls
	subs        subscriptions
	joined      family
	lastTask    int64 // the seq of the last event.task… that the editor was told; -1: of none
	terminals   terminals
	// restricted: the editor has said that it does not trust the workspace.
	restricted bool
	result     error // of Run

	replies    [][]byte // answers of our own, on their way to the editor
	replyBytes int      // of those and of those that are being written
}

// shutdown is how far the editor is in ending the connection by shutdown or
// exit.
type shutdown uint8

const (
	noShutdown     shutdown = iota
	shutdownAsked           // the answer will tell whether the hub ends it
	shutdownAgreed          // the hub ends the connection
)

func (r *Relay) logState(state string) {
	r.opts.Logger.Debug("the connection to the hub", "state", state)
}

// end ends the relay: both connections are closed and nothing waits any more.
// It may be called by anybody, any number of times.
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

// changed wakes whoever waits for a change of state; r.mu is held.
func (r *Relay) changed() {
	close(r.change)
	r.change = make(chan struct{})
}

// await waits until a change makes done true, which is called with r.mu held,
// and reports whether that came to pass before ctx or the relay ended.
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

// ownID is an id that neither the editor nor a hub uses; r.mu is held.
func (r *Relay) ownID() string {
	r.lastID++
	return r.prefix + strconv.FormatUint(r.lastID, 10) + `"`
}

// request makes a request of our own, to which then is called with the
// response; r.mu is held, also then.
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

// expectSign tells watch that from now on something is expected of the hub.
func (r *Relay) expectSign() {
	select {
	case r.expected <- struct{}{}:
	default: // it knows
	}
}

// current is the hub that is being read; r.mu is held, and its reader asks.
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
		opts: opts.withDefaults(), editor: &link{t: editor}, prefix: `"duet-relay-` + hex.EncodeToString(random[:]) + "-",
		change: make(chan struct{}), expected: make(chan struct{}, 1), subs: newSubscriptions(), terminals: make(terminals), lastTask: -1,
		restricted: opts.Restricted,
	}
	if trace := opts.Trace; trace != nil {
		r.editor.trace = func(message []byte) { trace(true, message) }
	}
	r.editor.failed = func() { r.end(nil) } // nobody is there to read
	return r
}

// Run relays until the editor closes its side, ends the connection with
// shutdown or exit, or ctx ends: nil. Requests that are under way then have
// Options.Grace. Any other failure to read the editor is returned. Run closes
// both connections.
//
// Where a read from the editor outlives its Close (see [server.Transport]), as
// one from standard input does, a goroutine stays behind in it; it relays
// nothing any more.
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
	case <-r.ctx.Done(): // the hub has ended the connection, or the editor takes nothing more
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

// finish lets the hub answer what the editor asked before it went. With eof,
// the editor may still read; it gets whatever the hub says before it closes
// its side, too. Else only answers are waited for.
func (r *Relay) finish(ctx context.Context, eof bool) {
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.Grace)
	defer cancel()
	if eof { // a signal ends the wait no earlier: it means what the end of input means
		ctx = patient
	}
	r.mu.Lock()
	r.drain = true
	r.changed()
	r.mu.Unlock()
	if !r.await(patient, func() bool { return len(r.waiting) == 0 && !r.flushing && r.replyBytes == 0 }) {
		return
	}
	r.mu.Lock()
	hub := r.hub
	if hub == nil || !eof && r.calls.none() {
		r.mu.Unlock()
		return
	}
	half, halves := hub.t.(interface{ CloseWrite() error })
	answered := halves // then its end says all
	var last []byte
	if !halves {
		last = r.request("ping", nil, func(*frame.Message) {
			answered = true
			r.changed()
		})
	}
	r.mu.Unlock()
	r.jobs.Go(func() { // it may not read
		if last != nil {
			hub.send(last)
		}
		if hub.flush() == nil && halves {
			_ = half.CloseWrite()
		}
	})
	r.await(patient, func() bool { return r.hub != hub || !halves && answered && r.calls.none() })
}
