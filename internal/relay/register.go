package relay

import (
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// register notes what of a message has to be known later, and reports whether the hub is to get
// it. r.mu is held.
func (r *Relay) register(m *frame.Message) (pass bool) {
	switch m.Kind {
	case frame.Object:
		return r.registerOne(m, nil)
	case frame.Array:
		b := &batch{}
		each(m, func(one *frame.Message, _ bool) { r.registerOne(one, b) })
	}
	return true
}

func (r *Relay) registerOne(m *frame.Message, b *batch) (pass bool) {
	if isResponse(m) || r.shutdown == shutdownAgreed { // after which the hub answers nothing more
		return true
	}
	if b == nil && wantsAnswer(m) && wantsDescriptor(m) {
		r.answer(frame.ErrorBody(m.ID, noDescriptor))
		return false
	}
	then := r.effect(m)
	if wantsAnswer(m) {
		name := text(m.Method)
		if r.calls.none() {
			r.expectSign()
		}
		r.calls.add(m.ID, call{batch: b, then: then, long: r.opts.Long != nil && r.opts.Long(name), subscribes: string(name) == "Subscribe"})
	}
	return true
}

// effect notes what a message changes by its method, and returns what is to be
// done with the response, or nil.
func (r *Relay) effect(m *frame.Message) (then func(*frame.Message)) {
	name := text(m.Method)
	switch string(name) {
	case "Subscribe":
		return r.subscribe(m)
	case "Unsubscribe":
		return r.unsubscribe(m)
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
