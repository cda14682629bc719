package relay

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// readEditor relays what the editor sends until it sends no more: nil, or the
// error of a transport that failed.
func (r *Relay) readEditor() error {
	var to *link // where the last message went
	reader := frame.NewReader(r.editor.t, frame.LSP, r.opts.Limits)
	reader.Released = r.opts.Released
	reader.BeforeRead = func() {
		if to != nil {
			_ = to.flush() // its reader sees what became of it
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
			if !r.early(&m) {
				to = r.fromEditor(&m)
			}
		case errors.As(err, &refusal):
			r.refuse(refusal)
		case errors.Is(err, frame.ErrTimeout):
			r.opts.Logger.Warn("a frame did not arrive whole in time; what came of it was dropped", "timeout", reader.Limits().Timeout)
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

// refuse answers a frame that cannot be relayed, as package server does. Another
// goroutine writes the answer: an editor that sends all it has before it reads
// must not be waited for here, unless it sends nothing else.
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

// answer queues an answer of our own for writeReplies; r.mu is held.
func (r *Relay) answer(body []byte) {
	r.replies = append(r.replies, body)
	r.replyBytes += len(body)
	r.changed()
}

// endAnswered ends the relay when the editor has its answers, or will not take
// them.
func (r *Relay) endAnswered() {
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.Grace)
	defer cancel()
	r.await(ctx, func() bool { return r.replyBytes == 0 })
	r.end(nil)
}

// writeReplies sends the editor the answers that are our own.
func (r *Relay) writeReplies() {
	for r.await(r.ctx, func() bool { return len(r.replies) > 0 }) {
		r.mu.Lock()
		answers := r.replies
		r.replies = nil
		r.mu.Unlock()
		for _, answer := range answers {
			r.editor.send(answer)
		}
		_ = r.editor.flush()
		r.mu.Lock()
		for _, answer := range answers {
			r.replyBytes -= len(answer)
		}
		r.changed()
		r.mu.Unlock()
	}
}

// fromEditor sends a message to the hub, or lets it wait for one. It returns
// the link that is to be flushed, or nil.
func (r *Relay) fromEditor(m *frame.Message) *link {
	for {
		r.mu.Lock()
		switch {
		case r.drain:
			r.mu.Unlock()
			return nil
		case r.hub != nil && r.silence == "" && !r.flushing && !r.mustWait(m):
			hub := r.hub
			body := r.register(m)
			r.mu.Unlock()
			if body != nil {
				hub.send(body)
			}
			return hub
		case len(r.waiting) == 0 || len(r.waiting) < maxWaiting && r.bytes+len(m.Body) <= maxWaitingBytes:
			r.waiting = append(r.waiting, waiting{bytes.Clone(m.Body), time.Now().Add(r.opts.Patience)})
			r.bytes += len(m.Body)
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

// take takes the first waiting message; r.mu is held.
func (r *Relay) take() waiting {
	w := r.waiting[0]
	r.waiting[0] = waiting{}
	r.waiting = r.waiting[1:]
	if len(r.waiting) == 0 {
		r.waiting = nil
	}
	r.bytes -= len(w.body)
	r.changed()
	return w
}

// startFlush begins to send what waits; r.mu is held.
func (r *Relay) startFlush(hub *link) {
	r.flushing = true
	r.jobs.Go(func() { r.flushWaiting(hub) })
}

// flushWaiting sends what waits, until nothing does or the hub has gone.
func (r *Relay) flushWaiting(hub *link) {
	var m frame.Message
	for {
		r.mu.Lock()
		switch {
		case r.hub != hub || r.ctx.Err() != nil:
			r.mu.Unlock()
			return
		case r.silence != "": // it goes on when the hub does
			r.flushing = false
			r.mu.Unlock()
			return
		case len(r.waiting) == 0:
			r.flushing = false
			r.changed()
			r.mu.Unlock()
			_ = hub.flush()
			return
		}
		first := r.waiting[0]
		frame.Parse(first.body, &m)
		if left := time.Until(first.until); r.mustWait(&m) && left > 0 {
			change := r.change
			r.mu.Unlock()
			_ = hub.flush()
			r.pause(change, left)
			continue
		}
		r.take()
		body := r.register(&m)
		r.mu.Unlock()
		if body != nil {
			hub.send(body)
		}
	}
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

// expire gives up messages that have waited for a hub for too long.
func (r *Relay) expire() {
	const never = time.Hour
	var m frame.Message
	for r.ctx.Err() == nil {
		left, ends, count := never, false, 0
		r.mu.Lock()
		for (r.hub == nil || r.silence != "") && len(r.waiting) > 0 {
			if left = time.Until(r.waiting[0].until); left > 0 {
				break
			}
			body := r.take().body
			if answer := unsent(body, r.unsentError()); answer != nil {
				r.answer(answer)
			}
			count++
			frame.Parse(body, &m)
			ends = ends || isShutdown(&m)
			left = never
		}
		change := r.change
		r.mu.Unlock()
		if count > 0 {
			r.opts.Logger.Warn("messages of the editor were given up: no hub answered", "count", count)
		}
		if ends {
			r.endAnswered()
		}
		r.pause(change, left)
	}
}

func isShutdown(m *frame.Message) bool {
	name := string(text(m.Method))
	return name == "shutdown" || name == "exit"
}

// A rewriting is what is noted of a message on its way to the hub.
type rewriting struct {
	edits []edit
	drop  bool
}

// register notes what of a message has to be known later. It returns the
// message as the hub is to get it, nil if it is not. r.mu is held.
func (r *Relay) register(m *frame.Message) (body []byte) {
	if m.Kind == frame.Array {
		return r.registerBatch(m)
	}
	var p rewriting
	if m.Kind == frame.Object {
		r.registerOne(m, nil, &p)
	}
	if p.drop {
		return nil
	}
	return edited(m.Body, p.edits)
}

func (r *Relay) registerBatch(m *frame.Message) (body []byte) {
	var p rewriting
	b := &batch{}
	each(m, func(one *frame.Message, _ bool) { r.registerOne(one, b, &p) })
	return edited(m.Body, sorted(m.Body, p.edits))
}

func (r *Relay) registerOne(m *frame.Message, b *batch, p *rewriting) {
	if isResponse(m) {
		r.registerAnswer(m, b, p)
		return
	}
	if r.shutdown == shutdownAgreed { // the hub answers nothing more
		return
	}
	if b == nil && wantsAnswer(m) && wantsDescriptor(m) {
		r.answer(frame.ErrorBody(m.ID, noDescriptor))
		p.drop = true
		return
	}
	then := r.effect(m, p)
	if wantsAnswer(m) {
		name := text(m.Method)
		if r.calls.none() {
			r.expectSign()
		}
		r.calls.add(m.ID, call{batch: b, then: then, long: r.opts.Long != nil && r.opts.Long(name), subscribes: string(name) == "Subscribe"})
	}
}

// registerAnswer looks for the request that the editor answers.
func (r *Relay) registerAnswer(m *frame.Message, b *batch, p *rewriting) {
	there, known := r.hubRequests.answered(m.ID)
	switch {
	case known && there != string(m.ID):
		p.edits = append(p.edits, edit{m.ID, there})
	case known:
	case b == nil:
		r.opts.Logger.Debug("response dropped: the hub that asked has gone, or nobody asked")
		p.drop = true
	case m.ID != nil: // so that it answers nothing
		p.edits = append(p.edits, edit{m.ID, "null"})
	}
}

// effect notes what a message changes by its method, and returns what is to be
// done with the response, or nil.
func (r *Relay) effect(m *frame.Message, p *rewriting) (then func(*frame.Message)) {
	name := text(m.Method)
	switch string(name) {
	case "Subscribe":
		return r.subscribe(m)
	case "Unsubscribe":
		return r.unsubscribe(m, p)
	case "spawn_terminal", "terminal.attach", "terminal.detach":
		return r.terminal(m, string(name))
	case "initialize":
		r.noteTrust(m)
	case "shutdown", "exit":
		return r.noteShutdown(m)
	}
	if r.joined != bothFamilies {
		r.joined |= familyOf(name)
	}
	return nil
}

// wantsDescriptor reports whether a request is for a terminal's descriptor,
// which comes with its reply and gets no further than this process. (In a
// batch the hub refuses it.)
func wantsDescriptor(m *frame.Message) bool {
	switch string(text(m.Method)) {
	case "spawn_terminal", "terminal.attach":
		return string(frame.Member(named(m.Params), "descriptor")) == "true"
	}
	return false
}

var noDescriptor = server.InvalidParam(server.ParamError{
	Param: "descriptor", Expected: "to be left out: only a client of the hub's own socket can get a descriptor", Received: "true",
})

// noteShutdown notes that the editor ends the connection, unless the hub
// refuses to.
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
