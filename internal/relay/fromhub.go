package relay

import (
	"bytes"
	"errors"
	"slices"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// readHub relays a hub's messages until they end.
func (r *Relay) readHub(hub *link) {
	// No timeout: while the editor does not read, the relay does not either.
	reader := frame.NewReader(hubReader{hub.t, hub}, frame.LSP, frame.Limits{MaxFrame: r.opts.HubFrame, Timeout: -1})
	reader.Released = r.opts.Released
	reader.BeforeRead = func() { _ = r.editor.flush() }
	var m frame.Message
	for {
		err := reader.Next(&m)
		var refusal *frame.Refusal
		switch {
		case err == nil:
			r.fromHub(&m)
		case errors.As(err, &refusal) && refusal.Reason == frame.ReasonOversize: // what it answers would wait for ever
			r.opts.Logger.Warn("the connection is closed for a frame that is too long", "detail", refusal.Detail)
			return
		case errors.As(err, &refusal): // also if it died within a frame
			r.opts.Logger.Warn("a frame of the hub was dropped", "reason", refusal.Reason, "detail", refusal.Detail)
		default:
			r.opts.Logger.Debug("the connection to the hub has ended", "err", err)
			return
		}
	}
}

// fromHub sends a message to the editor, unless it is for the relay.
func (r *Relay) fromHub(m *frame.Message) {
	var body []byte
	r.mu.Lock()
	r.noteHubMessage()
	switch {
	case m.Kind == frame.Array:
		body = r.batchFromHub(m)
	case m.Kind == frame.Object && m.Method == nil:
		if then, ours := r.takeOwn(m.ID); ours {
			if then != nil {
				then(m)
			}
			break
		}
		if !r.answered(m) {
			body = m.Body
		}
	case m.Kind == frame.Object:
		body = r.callFromHub(m)
	default:
		body = m.Body
	}
	if r.drain {
		r.changed()
	}
	r.mu.Unlock()
	if body != nil {
		r.editor.send(body)
	}
}

// takeOwn removes the relay's own request with that id.
func (r *Relay) takeOwn(id []byte) (then func(*frame.Message), ours bool) {
	if len(id) < len(r.prefix) || string(id[:len(r.prefix)]) != r.prefix {
		return nil, false
	}
	then, _ = r.ownRequests.Take(id)
	return then, true
}

// batchFromHub records the answers in an array, and returns the array for the editor; nil to
// drop it.
func (r *Relay) batchFromHub(m *frame.Message) []byte {
	late := false
	for one := range m.Objects() {
		if isResponse(one) {
			late = r.answered(one) || late // either all of them were answered, or none
		}
	}
	if late {
		return nil
	}
	return m.Body
}

// answered removes the call that a response answers, and reports whether the relay had answered
// it already.
func (r *Relay) answered(resp *frame.Message) (late bool) {
	one := r.calls.response(resp)
	if one != nil && one.subscribes {
		r.unsubscribeLate(resp)
	}
	return one != nil
}

// callFromHub returns a request or notification for the editor; nil to drop it.
func (r *Relay) callFromHub(m *frame.Message) []byte {
	if m.ID != nil {
		return m.Body
	}
	if r.joined&taskFamily != 0 && bytes.HasPrefix(m.Method, []byte(`"event.task`)) {
		if n := integer(rawjson.Member(m.Params, "seq")); n > 0 {
			r.lastTask = n // also if another hub has another log
		}
		return m.Body
	}
	switch string(m.Method) {
	case `"event"`, `"heartbeat"`:
		if len(r.terminals) > 0 {
			r.terminals.exitReported(m.Params)
		}
		if !r.event(m.Params) {
			return nil
		}
		if r.opts.Event != nil {
			r.opts.Event(m.Params)
		}
	}
	return m.Body
}

// event records an event or heartbeat of a subscription, and reports whether the editor should
// get it: an earlier hub may have sent it.
func (r *Relay) event(params []byte) (pass bool) {
	if len(r.subs.open) == 0 && len(r.subs.ended) == 0 {
		return true
	}
	id, seq := eventHead(params)
	one := r.subs.open[string(id)]
	if one == nil {
		_, ended := r.subs.ended[string(id)]
		return !ended
	}
	if n := integer(seq); seq != nil && n > 0 {
		if n <= one.floor {
			return false
		}
		one.last = max(one.last, n)
	}
	return true
}

// eventHead finds the raw subscription_id and seq of an event; nil if it has none. Our hubs put
// them before the event itself, so that it need not be parsed.
func eventHead(params []byte) (id, seq []byte) {
	if len(params) == 0 || params[0] != '{' {
		return nil, nil
	}
	for name, value := range rawjson.Members(params) {
		switch string(name) {
		case `"subscription_id"`:
			id = value
		case `"seq"`:
			seq = value
		}
		if id != nil && seq != nil {
			break
		}
	}
	return id, seq
}

// The functions below find members of a message as spans of its raw JSON. They expect JSON that
// package frame has found valid.

// text returns the text of a raw JSON string; nil for other JSON.
func text(raw []byte) []byte {
	t, _ := rawjson.Text(raw)
	return t
}

// named returns the object with the named params of a request, which may be in an array of one;
// nil if there is none.
func named(params []byte) []byte {
	if len(params) > 0 && params[0] == '[' {
		for element := range rawjson.Elements(params) {
			params = element
			break
		}
	}
	if len(params) == 0 || params[0] != '{' {
		return nil
	}
	return params
}

// integer returns the value of a raw JSON number that is an integer from 0 on and has at most 18
// digits, or -1.
func integer(raw []byte) int64 {
	if len(raw) == 0 || len(raw) > 18 {
		return -1
	}
	var n int64
	for _, c := range raw {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// without returns a copy of an object without some members; nil if object is nil.
func without(object []byte, names ...string) []byte {
	if object == nil {
		return nil
	}
	out := []byte{'{'}
	for n, v := range rawjson.Members(object) {
		if slices.Contains(names, string(text(n))) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, n...), ':'), v...)
	}
	return append(out, '}')
}

// with returns a copy of an object, or of {} if it is nil, with a raw value added as a new
// member.
func with(object []byte, name, value string) []byte {
	out := append([]byte(`{"`+name+`":`), value...)
	if len(object) > len(`{}`) {
		return append(append(out, ','), object[1:]...)
	}
	return append(out, '}')
}

// isResponse reports whether an object is the response to a request of either side.
func isResponse(m *frame.Message) bool { return m.Method == nil && (m.Result != nil || m.Error != nil) }

// wantsAnswer reports whether an object is not a response and will be answered with its id.
func wantsAnswer(m *frame.Message) bool { return !isResponse(m) && frame.ValidID(m.ID) }

func isShutdown(m *frame.Message) bool {
	name := string(text(m.Method))
	return name == "shutdown" || name == "exit"
}
