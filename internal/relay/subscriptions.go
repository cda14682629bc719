package relay

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

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

// A subscription is one that the editor has. Each hub knows it by the same id.
type subscription struct {
	id     string // raw JSON
	params []byte // the object that Subscribe was given, without since; or nil
	last   int64  // the last seq seen, or where the log was; -1: not known
	floor  int64  // what a hub that replays may not repeat: 0, or last when its predecessor had gone
}

// subscriptions are those of the editor, by their raw ids.
type subscriptions struct {
	open  map[string]*subscription
	ended map[string]struct{} // those of the hub whose events the editor is not told
}

func newSubscriptions() subscriptions {
	return subscriptions{open: make(map[string]*subscription), ended: make(map[string]struct{})}
}

// hubGone notes that the hub has gone.
func (s *subscriptions) hubGone() {
	for _, one := range s.open {
		one.floor = max(one.last, 0)
	}
	clear(s.ended)
}

// subscribe notes a Subscribe. Until an event has come, the next hub has to know
// where the log was when the subscription was made: the reply's seq.
func (r *Relay) subscribe(m *frame.Message) (then func(*frame.Message)) {
	params := without(named(m.Params), "since", "subscription_id")
	return func(resp *frame.Message) {
		if id := frame.Member(resp.Result, "subscription_id"); text(id) != nil {
			r.expectSign()
			r.subs.open[string(id)] = &subscription{id: string(id), params: params, last: integer(frame.Member(resp.Result, "seq"))}
		}
	}
}

// unsubscribe notes an Unsubscribe. What is to be ended is not restored, whatever the hub says.
func (r *Relay) unsubscribe(m *frame.Message) (then func(*frame.Message)) {
	id := string(frame.Member(named(m.Params), "subscription_id"))
	return func(*frame.Message) { delete(r.subs.open, id) }
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
	for _, one := range r.subs.open {
		all = append(all, r.restore(one))
	}
	return all
}

// join makes the request that has the editor told of tasks again.
func (r *Relay) join() []byte {
	return r.request(r.joined.probe(), with(nil, "since", strconv.FormatInt(r.lastTask, 10)), func(*frame.Message) {})
}

// restore makes the Subscribe that restores a subscription from where it was.
func (r *Relay) restore(one *subscription) []byte {
	params := with(one.params, "subscription_id", one.id)
	if one.last >= 0 {
		params = with(params, "since", strconv.FormatInt(one.last, 10))
	}
	return r.request("Subscribe", params, func(resp *frame.Message) {
		switch {
		case resp.Error == nil && r.subs.open[one.id] != one: // it was ended meanwhile
			r.unsubscribeLate(resp)
		case resp.Error == nil || r.subs.open[one.id] != one:
		case one.last >= 0 && isAboutSince(resp.Error):
			// This hub has another log, which has not come that far.
			one.last, one.floor = -1, 0
			r.sendLater(r.restore(one))
		case isUnavailable(resp.Error): // it is about to end, and the next hub is asked
		default:
			delete(r.subs.open, one.id)
			r.opts.Logger.Warn("a subscription could not be restored", "error", string(resp.Error))
		}
	})
}

// sendLater sends a request of our own to the hub that is being read, by another goroutine than
// the one that reads it. r.mu is held.
func (r *Relay) sendLater(body []byte) {
	hub := r.current()
	r.jobs.Go(func() {
		hub.send(body)
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

// unsubscribeLate ends a subscription of the hub that the editor does not know. r.mu is held.
func (r *Relay) unsubscribeLate(resp *frame.Message) {
	id := string(frame.Member(resp.Result, "subscription_id"))
	if text([]byte(id)) == nil {
		return
	}
	r.subs.ended[id] = struct{}{}
	r.sendLater(r.request("Unsubscribe", with(nil, "subscription_id", id), func(*frame.Message) { delete(r.subs.ended, id) }))
}

// terminals are those of which the editor is told how they end, by their raw
// id: it has started them, or watches them. They end with the hub.
type terminals map[string]struct{}

// terminal notes what becomes of a terminal by a request of the editor.
func (r *Relay) terminal(m *frame.Message, method string) (then func(*frame.Message)) {
	id := bytes.Clone(frame.Member(named(m.Params), "terminal_id"))
	return func(resp *frame.Message) {
		if resp.Error != nil {
			return
		}
		switch method {
		case "spawn_terminal":
			id = frame.Member(resp.Result, "terminal_id")
		case "terminal.detach":
			delete(r.terminals, string(id))
			return
		}
		if text(id) != nil {
			r.terminals[string(id)] = struct{}{}
		}
	}
}

// sawExit notes that the editor is told of a terminal's end.
func (t terminals) sawExit(params []byte) {
	if !bytes.Contains(params, []byte(`"terminal_exit"`)) {
		return
	}
	if event := frame.Member(params, "event"); string(text(frame.Member(event, "type"))) == "terminal_exit" {
		delete(t, string(frame.Member(frame.Member(event, "data"), "terminal_id")))
	}
}

// hubGone forgets the terminals and returns what tells the editor that they have
// ended: with the hub went their executor.
func (t terminals) hubGone() (ends [][]byte) {
	now, _ := json.Marshal(time.Now().UTC())
	for id := range t {
		body := append([]byte(`{"jsonrpc":"2.0","method":"event","params":{"event":{"type":"terminal_exit","timestamp":`), now...)
		body = append(append(body, `,"data":{"terminal_id":`...), id...)
		ends = append(ends, append(body, `,"exit_code":-1,"signal":"hub gone"}}}}`...))
	}
	clear(t)
	return ends
}
