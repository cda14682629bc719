package relay

import (
	"bytes"
	"errors"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/server"
)

// readEditor relays the editor's messages until they end: nil, or the error of a transport that
// failed.
func (r *Relay) readEditor() error {
	var to *link // the destination of the last message
	reader := frame.NewReader(r.editor.t, frame.LSP, r.opts.Limits)
	reader.Released = r.opts.Released
	reader.BeforeRead = func() {
		if to != nil {
			_ = to.flush() // the goroutine that reads the hub sees the error
		}
	}
	var m frame.Message
	for {
		err := reader.Next(&m)
		var refusal *frame.Refusal
		switch {
		case err == nil:
			if r.opts.Trace != nil {
				r.opts.Trace(false, m.Body)
			}
			if !r.takeOver(&m) && !r.early(&m) {
				to = r.fromEditor(&m)
			}
		case errors.As(err, &refusal):
			r.refuse(refusal)
		case errors.Is(err, frame.ErrTimeout):
			r.opts.Logger.Warn("a frame did not arrive whole in time; what came of it was dropped",
				"timeout", reader.Limits().Timeout)
		default:
			if to != nil {
				_ = to.flush()
			}
			if server.IsGone(err) || r.ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// takeOver has a request answered by Options.Take, and reports whether it does.
func (r *Relay) takeOver(m *frame.Message) bool {
	if r.opts.Take == nil || m.Kind != frame.Object || !wantsAnswer(m) {
		return false
	}
	answer := r.opts.Take(m)
	if answer == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drain || r.shutdown != noShutdown {
		return true
	}
	r.taken++
	r.jobs.Go(func() {
		body := answer(r.ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.taken--
		r.answer(body)
	})
	return true
}

// refuse answers a frame that cannot be relayed, as package server does. Another goroutine
// writes the answer, because an editor that sends everything before it reads must not block
// here, unless it sends only such frames.
func (r *Relay) refuse(refusal *frame.Refusal) {
	r.opts.Logger.Warn("frame refused", "reason", refusal.Reason, "detail", refusal.Detail)
	answer := frame.ErrorBody(refusal.ID, refusal.Wire())
	if !r.await(r.ctx, func() bool { return r.replyBytes < maxReplyBytes }) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shutdown != noShutdown || r.drain {
		return
	}
	r.answer(answer)
}

// fromEditor sends a message to the hub, or queues it until there is one. It returns the link to
// flush, or nil.
func (r *Relay) fromEditor(m *frame.Message) *link {
	for {
		r.mu.Lock()
		switch {
		case r.drain:
			r.mu.Unlock()
			return nil
		case r.hub != nil && r.silence == "" && !r.flushing:
			hub := r.hub
			pass := r.register(m)
			r.mu.Unlock()
			if pass {
				hub.send(m.Body)
			}
			return hub
		case len(r.waiting) == 0 || len(r.waiting) < maxWaiting && r.bytes+len(m.Body) <= maxWaitingBytes:
			r.waiting = append(r.waiting, waiting{bytes.Clone(m.Body), time.Now().Add(r.opts.Patience)})
			r.bytes += len(m.Body)
			if m.Kind == frame.Object && isShutdown(m) { // queued messages have the same limit as at any other end
				r.shortenWaits(time.Now().Add(r.opts.Grace))
			}
			if r.hub != nil && r.silence == "" && !r.flushing {
				r.startFlush(r.hub)
			}
			r.changed()
			r.mu.Unlock()
			return nil
		}
		change := r.change
		r.mu.Unlock()
		select {
		case <-change:
		case <-r.ctx.Done():
			return nil
		}
	}
}

// early answers a message that needs no hub, while there is none, and reports whether it did.
// The goroutine that reads the editor calls it.
func (r *Relay) early(m *frame.Message) (done bool) {
	if r.opts.Early == nil {
		return false
	}
	shutdown := m.Kind == frame.Object && m.Method != nil && isShutdown(m)
	for one := range m.Objects() {
		if string(text(one.Method)) != "initialize" {
			continue
		}
		r.mu.Lock()
		r.noteTrust(one) // before the next hub, which must receive it
		there := r.hub != nil || r.opening != nil
		r.mu.Unlock()
		if there { // a hub that does not answer now must receive it, too
			return false
		}
	}
	if !r.noHub() {
		return false
	}
	answer, answered := r.opts.Early(m)
	if !answered {
		return false
	}
	if answer != nil && shutdown {
		var resp frame.Message
		frame.Parse(answer, &resp)
		shutdown = resp.Error == nil
	}
	if !r.await(r.ctx, func() bool { return r.replyBytes < maxReplyBytes }) {
		return true
	}
	r.mu.Lock()
	if answer != nil && !r.drain {
		r.answer(answer)
	}
	if shutdown {
		r.shutdown, r.drain = shutdownAgreed, true
	}
	r.mu.Unlock()
	if shutdown {
		r.endAnswered()
	}
	return true
}

// noHub reports whether no hub answers, and no message of the editor waits for one. A queued
// message must be answered first.
func (r *Relay) noHub() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return (r.hub == nil && r.opening == nil || r.silence != "") && len(r.waiting) == 0 && !r.drain
}

// register records the state changes of a message, and reports whether to send it to the hub.
// r.mu is held.
func (r *Relay) register(m *frame.Message) (pass bool) {
	switch m.Kind {
	case frame.Object:
		return r.registerOne(m, nil)
	case frame.Array:
		b := &batch{}
		for one := range m.Objects() {
			r.registerOne(one, b)
		}
	}
	return true
}

func (r *Relay) registerOne(m *frame.Message, b *batch) (pass bool) {
	if isResponse(m) || r.shutdown == shutdownAgreed { // after which the hub answers nothing more
		return true
	}
	if b == nil && wantsAnswer(m) && wantsDescriptor(m) {
		r.answer(frame.ErrorBody(m.ID, noDescriptor()))
		return false
	}
	then := r.effect(m)
	if wantsAnswer(m) {
		name := text(m.Method)
		if r.calls.none() {
			r.expectMessage()
		}
		r.calls.add(m.ID, call{
			batch: b, then: then, long: r.opts.Long != nil && r.opts.Long(name),
			subscribes: formOf(name) != noForm,
		})
	}
	return true
}

// effect records the state change of a message by its method. It returns the function to call
// with the response, or nil.
func (r *Relay) effect(m *frame.Message) (then func(*frame.Message)) {
	name := text(m.Method)
	switch string(name) {
	case "event.subscribe", "Subscribe":
		return r.subscribe(m, formOf(name))
	case "event.unsubscribe", "Unsubscribe":
		return r.unsubscribe(m)
	case "terminal.start", "spawn_terminal", "terminal.attach", "terminal.detach":
		return r.terminal(m, string(name))
	case "editor.offer":
		params := bytes.Clone(named(m.Params))
		return func(resp *frame.Message) {
			if resp.Error == nil {
				r.offer = params
			}
		}
	case "initialize":
		r.noteTrust(m)
	case "shutdown", "exit":
		if reason := text(rawjson.Member(named(m.Params), "reason")); reason != nil {
			r.opts.Logger.Info("shutdown requested", "reason", string(reason))
		}
		return r.noteShutdown(m)
	}
	if r.joined != bothFamilies {
		r.joined |= familyOf(name)
	}
	return nil
}

// wantsDescriptor reports whether a request is for a terminal's descriptor, which comes with its
// reply and cannot pass this process. (In a batch the hub refuses it.)
func wantsDescriptor(m *frame.Message) bool {
	switch string(text(m.Method)) {
	case "terminal.start", "spawn_terminal", "terminal.attach":
		return string(rawjson.Member(named(m.Params), "descriptor")) == "true"
	}
	return false
}

func noDescriptor() *jsonrpc2.Error {
	return server.InvalidParam(server.ParamError{
		Param: "descriptor", Expected: "to be left out: only a client of the daemon's own socket can get a descriptor",
		Received: "true",
	})
}

// noteShutdown records that the editor ends the connection, unless the hub refuses.
func (r *Relay) noteShutdown(m *frame.Message) (then func(*frame.Message)) {
	if m.ID == nil {
		r.shutdown = shutdownAgreed
		return nil
	}
	r.shutdown = shutdownAsked
	return func(resp *frame.Message) {
		r.shutdown = shutdownAgreed
		if resp.Error != nil {
			r.shutdown = noShutdown
		}
	}
}
