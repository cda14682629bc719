package relay

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// family is a set of methods. A call to one of them subscribes a connection to the broadcasts
// event.task…; families add up.
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

// probe returns a method of a family that changes nothing. Its since is the position from which
// broadcasts continue; a hub with another log gets no since.
func (f family) probe() string {
	if f&taskFamily != 0 {
		return "task.stats"
	}
	return "daemon.status"
}

// A form is how the events of a subscription or a terminal are written: as the method that began it
// says.
type form uint8

const (
	noForm     form = iota
	nativeForm      // event.subscribe, terminal.start and terminal.attach
	framedForm      // HumanLayer's Subscribe, and spawn_terminal
)

func formOf(method []byte) form {
	switch string(method) {
	case "event.subscribe":
		return nativeForm
	case "Subscribe":
		return framedForm
	}
	return noForm
}

// method begins a subscription whose events have the form.
func (f form) method() string {
	if f == framedForm {
		return "Subscribe"
	}
	return "event.subscribe"
}

// A notice is a kind of event that the relay sends, with HumanLayer's name for it.
type notice struct{ kind, framed string }

var (
	daemonSilent   = notice{"daemon.silent", "hub_silent"}
	daemonAnswers  = notice{"daemon.answers", "hub_answers"}
	terminalExited = notice{"terminal.exited", "terminal_exit"}
)

// message returns an event as a notification. subscription is raw JSON, or nil.
func (n notice) message(f form, subscription json.RawMessage, data any) []byte {
	type body struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      any       `json:"data"`
	}
	now := time.Now().UTC()
	var params any = struct {
		Subscription json.RawMessage `json:"subscription_id,omitempty"`
		Kind         string          `json:"kind"`
		Time         time.Time       `json:"time"`
		Data         any             `json:"data"`
	}{subscription, n.kind, now, data}
	if f == framedForm {
		params = struct {
			Subscription json.RawMessage `json:"subscription_id,omitempty"`
			Event        body            `json:"event"`
		}{subscription, body{n.framed, now, data}}
	}
	message, _ := json.Marshal(struct { // it cannot fail
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", "event", params})
	return message
}

// A subscription is one of the editor's. Each hub knows it by the same id.
type subscription struct {
	id     string // raw JSON
	form   form
	params []byte // the params object of the request, without since; or nil
	last   int64  // the last seq seen, or the position of the log; -1: unknown
	floor  int64  // a hub that replays may not repeat events up to it: 0, or last when its predecessor had gone
}

// subscriptions are those of the editor, by their raw ids.
type subscriptions struct {
	open  map[string]*subscription
	ended map[string]struct{} // subscriptions of the hub whose events the editor does not get
}

func newSubscriptions() subscriptions {
	return subscriptions{open: make(map[string]*subscription), ended: make(map[string]struct{})}
}

// hubGone records that the hub has gone.
func (s *subscriptions) hubGone() {
	for _, one := range s.open {
		one.floor = max(one.last, 0)
	}
	clear(s.ended)
}

// subscribe records the beginning of a subscription. Until an event has come, the next hub needs the position of the
// log when the subscription was made: the reply's seq.
func (r *Relay) subscribe(m *frame.Message, f form) (then func(*frame.Message)) {
	params := without(named(m.Params), "since", "subscription_id")
	return func(resp *frame.Message) {
		if id := rawjson.Member(resp.Result, "subscription_id"); text(id) != nil {
			r.expectMessage()
			r.subs.open[string(id)] = &subscription{
				id: string(id), form: f, params: params, last: integer(rawjson.Member(resp.Result, "seq")),
			}
		}
	}
}

// unsubscribe records the end of a subscription. The relay does not restore that subscription, whatever the
// hub answers.
func (r *Relay) unsubscribe(m *frame.Message) (then func(*frame.Message)) {
	id := string(rawjson.Member(named(m.Params), "subscription_id"))
	return func(*frame.Message) { delete(r.subs.open, id) }
}

// noteTrust records the workspace trust from an initialize. r.mu is held.
func (r *Relay) noteTrust(m *frame.Message) { r.restricted = Restricts(m, r.restricted) }

// Restricts returns whether an editor does not trust the workspace after an initialize; before
// is the value before it.
func Restricts(m *frame.Message, before bool) bool {
	switch string(rawjson.Member(named(m.Params), "workspaceTrusted")) {
	case "true":
		return false
	case "false":
		return true
	}
	return before
}

// restoration returns the relay's own requests that restore the editor's state at a new hub: the
// workspace trust, the tools that it offers, the broadcasts, and the subscriptions. r.mu is held.
func (r *Relay) restoration() [][]byte {
	var all [][]byte
	if r.restricted { // before any request of the editor
		all = append(all, r.request("initialize", []byte(`{"workspaceTrusted":false}`), func(*frame.Message) {}))
	}
	if r.offer != nil {
		all = append(all, r.request("editor.offer", r.offer, func(*frame.Message) {}))
	}
	if r.joined != 0 {
		all = append(all, r.restoreBroadcasts())
	}
	for _, one := range r.subs.open {
		all = append(all, r.restore(one))
	}
	return all
}

// restoreBroadcasts makes the request that restores the editor's task events.
func (r *Relay) restoreBroadcasts() []byte {
	return r.request(r.joined.probe(), with(nil, "since", strconv.FormatInt(r.lastTask, 10)), func(*frame.Message) {})
}

// restore makes the request that restores a subscription from its position.
func (r *Relay) restore(one *subscription) []byte {
	params := with(one.params, "subscription_id", one.id)
	if one.last >= 0 {
		params = with(params, "since", strconv.FormatInt(one.last, 10))
	}
	return r.request(one.form.method(), params, func(resp *frame.Message) {
		switch {
		case resp.Error == nil && r.subs.open[one.id] != one: // the editor has ended it meanwhile
			r.unsubscribeLate(resp)
		case resp.Error == nil || r.subs.open[one.id] != one:
		case one.last >= 0 && isAboutSince(resp.Error):
			// This hub has another, shorter log.
			one.last, one.floor = -1, 0
			r.sendLater(r.restore(one))
		case isUnavailable(resp.Error): // it is about to end; the next hub gets the request
		default:
			delete(r.subs.open, one.id)
			r.opts.Logger.Warn("a subscription could not be restored", "error", string(resp.Error))
		}
	})
}

// sendLater sends a request of the relay's own to the current hub, from another goroutine than
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
	return string(text(rawjson.Member(rawjson.Member(err, "data"), "kind"))) == "subsystem_unavailable"
}

// isAboutSince reports whether an error says that the since of a subscription is wrong.
func isAboutSince(err []byte) bool {
	return string(text(rawjson.Member(rawjson.Member(err, "data"), "param"))) == "since"
}

// unsubscribeLate ends a subscription of the hub that the editor does not know. r.mu is held.
func (r *Relay) unsubscribeLate(resp *frame.Message) {
	id := string(rawjson.Member(resp.Result, "subscription_id"))
	if text([]byte(id)) == nil {
		return
	}
	r.subs.ended[id] = struct{}{}
	r.sendLater(r.request("event.unsubscribe", with(nil, "subscription_id", id),
		func(*frame.Message) { delete(r.subs.ended, id) }))
}

// terminals are the terminals whose end the editor must learn, by their raw id, with the form of their
// events: it has started them, or watches them. They end with the hub.
type terminals map[string]form

// terminal records the effect of an editor's request on a terminal.
func (r *Relay) terminal(m *frame.Message, method string) (then func(*frame.Message)) {
	id := bytes.Clone(rawjson.Member(named(m.Params), "terminal_id"))
	return func(resp *frame.Message) {
		if resp.Error != nil {
			return
		}
		f := nativeForm
		switch method {
		case "spawn_terminal":
			f = framedForm
			id = rawjson.Member(resp.Result, "terminal_id")
		case "terminal.start":
			id = rawjson.Member(resp.Result, "terminal_id")
		case "terminal.detach":
			delete(r.terminals, string(id))
			return
		}
		if text(id) != nil {
			r.terminals[string(id)] = f
		}
	}
}

// exitReported records that the editor has been notified of a terminal's end.
func (t terminals) exitReported(params []byte) {
	if string(text(rawjson.Member(params, "kind"))) == terminalExited.kind {
		delete(t, string(rawjson.Member(rawjson.Member(params, "data"), "terminal_id")))
		return
	}
	if !bytes.Contains(params, []byte(`"`+terminalExited.framed+`"`)) {
		return
	}
	if event := rawjson.Member(params, "event"); string(text(rawjson.Member(event, "type"))) == terminalExited.framed {
		delete(t, string(rawjson.Member(rawjson.Member(event, "data"), "terminal_id")))
	}
}

// hubGone forgets the terminals and returns the notifications of their end: their executor has
// ended with the hub.
func (t terminals) hubGone() (ends [][]byte) {
	for id, f := range t {
		ends = append(ends, terminalExited.message(f, nil, struct {
			Terminal json.RawMessage `json:"terminal_id"`
			ExitCode int             `json:"exit_code"`
			Signal   string          `json:"signal"`
		}{json.RawMessage(id), -1, "hub gone"}))
	}
	clear(t)
	return ends
}
