package relay

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

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
