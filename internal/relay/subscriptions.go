package relay

import (
	"bytes"

	"github.com/duet-rpc/duet-rpc/frame"
)

// family are sets of methods of which a call makes a connection one that gets
// the broadcasts event.task…; they add up.
type family uint8

const (
	taskFamily   family = 1 << iota // task.* and chat.*
	daemonFamily                    // daemon.* and automation.*
	bothFamilies = taskFamily | daemonFamily
)

func familyOf(method []byte) family {
	switch {
	case bytes.HasPrefix(method, []byte("task.")), bytes.HasPrefix(method, []byte("chat.")):
		return taskFamily
	case bytes.HasPrefix(method, []byte("daemon.")), bytes.HasPrefix(method, []byte("automation.")):
		return daemonFamily
	}
	return 0
}

// probe is a method of a family that changes nothing. Its since is where what
// the editor is told goes on; a hub with another log is asked for none of it.
func (f family) probe() string {
	if f&taskFamily != 0 {
		return "task.stats"
	}
	return "daemon.status"
}

// A subscription is one that the editor has. Its ids are raw JSON.
type subscription struct {
	editor string // its id as the editor knows it
	hub    string // as the hub that is there knows it; empty: not restored yet
	params []byte // the object that Subscribe was given, without since; or nil
	last   int64  // the last seq seen, or where the log was; -1: not known
	floor  int64  // what a hub that replays may not repeat: 0, or last at the takeover
}

// subscriptions are those of the editor.
type subscriptions struct {
	byEditor map[string]*subscription
	byHub    map[string]*subscription
	ended    map[string]struct{} // ids of the hub whose events the editor is not told
	restored int                 // how many of byEditor have an id of the hub
}

func newSubscriptions() subscriptions {
	return subscriptions{byEditor: make(map[string]*subscription), byHub: make(map[string]*subscription), ended: make(map[string]struct{})}
}

func (s *subscriptions) add(one *subscription) {
	s.byEditor[one.editor] = one
	s.byHub[one.hub] = one
	s.restored++
}

func (s *subscriptions) remove(one *subscription) {
	if s.byEditor[one.editor] != one {
		return
	}
	delete(s.byEditor, one.editor)
	if one.hub != "" {
		delete(s.byHub, one.hub)
		s.restored--
	}
}

// hubGone notes that the hub has gone.
func (s *subscriptions) hubGone() {
	for _, one := range s.byEditor {
		one.hub = ""
		one.floor = max(one.last, 0)
	}
	clear(s.byHub)
	clear(s.ended)
	s.restored = 0
}

// subscribe notes a Subscribe. Until an event has come, a takeover has to know
// where the log was when the subscription was made: the reply's seq.
func (r *Relay) subscribe(m *frame.Message) (then func(*frame.Message)) {
	params := without(named(m.Params), "since")
	return func(resp *frame.Message) {
		if id := frame.Member(resp.Result, "subscription_id"); text(id) != nil {
			r.expectSign()
			r.subs.add(&subscription{editor: string(id), hub: string(id), params: params, last: integer(frame.Member(resp.Result, "seq"))})
		}
	}
}

// unsubscribe gives an Unsubscribe the id that the hub knows.
func (r *Relay) unsubscribe(m *frame.Message, p *rewriting) (then func(*frame.Message)) {
	id := frame.Member(named(m.Params), "subscription_id")
	one := r.subs.byEditor[string(id)]
	if one == nil {
		return nil
	}
	if one.hub != one.editor && one.hub != "" {
		p.edits = append(p.edits, edit{id, one.hub})
	}
	return func(resp *frame.Message) {
		if resp.Error == nil || one.hub == "" {
			r.subs.remove(one)
		}
	}
}

// mustWait reports whether a message is an Unsubscribe of what is being
// restored just now: the hub does not know it yet.
func (r *Relay) mustWait(m *frame.Message) (must bool) {
	if r.subs.restored == len(r.subs.byEditor) {
		return false
	}
	each(m, func(one *frame.Message, _ bool) {
		if string(text(one.Method)) == "Unsubscribe" {
			s := r.subs.byEditor[string(frame.Member(named(one.Params), "subscription_id"))]
			must = must || s != nil && s.hub == ""
		}
	})
	return must
}

// noteTrust notes what an initialize says of the workspace. r.mu is held.
func (r *Relay) noteTrust(m *frame.Message) { r.restricted = Restricts(m, r.restricted) }

// Restricts returns whether an editor does not trust the workspace after an initialize, of which
// before is what it has said before.
func Restricts(m *frame.Message, before bool) bool {
	switch string(frame.Member(named(m.Params), "workspaceTrusted")) {
	case "true":
		return false
	case "false":
		return true
	}
	return before
}

// restoration is what a new hub is told, each a request of our own: that the
// editor does not trust the workspace, that it gets broadcasts, and its
// subscriptions. r.mu is held.
func (r *Relay) restoration() [][]byte {
	var all [][]byte
	if r.restricted { // before anything that the editor wants
		all = append(all, r.request("initialize", []byte(`{"workspaceTrusted":false}`), func(*frame.Message) {}))
	}
	if r.joined != 0 {
		all = append(all, r.join())
	}
	for _, one := range r.subs.byEditor {
		all = append(all, r.restore(one))
	}
	return all
}

// join makes the request that has the editor told of tasks again.
func (r *Relay) join() []byte {
	return r.request(r.joined.probe(), with(nil, "since", r.lastTask), func(*frame.Message) {})
}

// restore makes the Subscribe that restores a subscription from where it was.
func (r *Relay) restore(one *subscription) []byte {
	params := one.params
	if one.last >= 0 {
		params = with(params, "since", one.last)
	}
	return r.request("Subscribe", params, func(resp *frame.Message) {
		id := frame.Member(resp.Result, "subscription_id")
		switch {
		case r.subs.byEditor[one.editor] != one:
		case text(id) != nil:
			one.hub = string(id)
			r.subs.byHub[one.hub] = one
			r.subs.restored++
		case one.last >= 0 && isAboutSince(resp.Error):
			// This hub has another log, which has not come that far.
			one.last, one.floor = -1, 0
			r.restoreAnew(one)
		case isUnavailable(resp.Error): // it is about to end, and the next hub is asked
		default:
			r.subs.remove(one)
			r.opts.Logger.Warn("a subscription could not be restored", "error", string(resp.Error))
		}
		r.changed()
	})
}

// restoreAnew asks the hub that is there again to restore a subscription. r.mu is held, by the
// goroutine that reads the hub.
func (r *Relay) restoreAnew(one *subscription) {
	hub, again := r.current(), r.restore(one)
	r.jobs.Go(func() {
		hub.send(again)
		_ = hub.flush()
	})
}

// isUnavailable reports whether an error says that a hub has no sessions.
func isUnavailable(err []byte) bool {
	return string(text(frame.Member(frame.Member(err, "data"), "kind"))) == "subsystem_unavailable"
}

// isAboutSince reports whether an error says that a Subscribe's since is wrong.
func isAboutSince(err []byte) bool {
	return string(text(frame.Member(frame.Member(err, "data"), "param"))) == "since"
}

// unsubscribeLate ends a subscription of which the editor was told that there is
// none. r.mu is held.
func (r *Relay) unsubscribeLate(resp *frame.Message) {
	hub, id := r.current(), bytes.Clone(frame.Member(resp.Result, "subscription_id"))
	if hub == nil || text(id) == nil {
		return
	}
	r.subs.ended[string(id)] = struct{}{}
	params := append(append([]byte(`{"subscription_id":`), id...), '}')
	body := r.request("Unsubscribe", params, func(*frame.Message) { delete(r.subs.ended, string(id)) })
	r.jobs.Go(func() { // not the goroutine that reads the hub
		hub.send(body)
		_ = hub.flush()
	})
}
