package relay

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
)

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
