package relay

import (
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

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
		if reason := text(frame.Member(named(m.Params), "reason")); reason != nil {
			r.opts.Logger.Info("shutdown requested", "reason", string(reason))
		}
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
