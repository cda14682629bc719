package relay_test

import (
	"fmt"
	"sort"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/assert"
)

// Terminals end with their hub, and their clients are notified.
func TestTerminalsThatEndWithTheHub(t *testing.T) {
	s := start(t)
	hub := s.hub()
	asks := func(id int, method, params, result string) {
		t.Helper()
		s.send(request(id, method, params))
		hub.next()
		hub.send(response(fmt.Sprint(id), result))
		s.next()
	}
	exit := func(id string) string {
		return `{"jsonrpc":"2.0","method":"event","params":{"event":{"type":"terminal_exit","timestamp":"2025-01-01T00:00:00Z","data":{"terminal_id":"` + id + `","exit_code":0}}}}`
	}
	asks(1, "spawn_terminal", `{}`, `{"terminal_id":"spawned","pty_pid":1}`)
	asks(2, "spawn_terminal", `{}`, `{"terminal_id":"over","pty_pid":2}`)
	asks(3, "terminal.attach", `[{"terminal_id":"watched"}]`, `{"terminal_id":"watched"}`)
	asks(4, "terminal.attach", `{"terminal_id":"left"}`, `{"terminal_id":"left"}`)
	asks(5, "terminal.detach", `{"terminal_id":"left"}`, `{"detached":true}`)
	s.send(request(6, "terminal.attach", `{"terminal_id":"nobody"}`))
	hub.next()
	hub.send(`{"jsonrpc":"2.0","id":6,"error":{"code":-32603,"message":"no"}}`)
	s.next()
	hub.send(exit("over"))
	assert.JSONEq(t, exit("over"), s.next())
	s.send(request(7, "spawn_terminal", `{}`)) // unknown to all other handlers
	hub.next()

	hub.end.Close()
	assertLost(t, "7", s.next())
	var ends []string
	for range 2 {
		m := s.next()
		assert.JSONEq(t, `"event"`, string(testkit.JSONMember(t, m, "method")))
		assert.JSONEq(t, `"terminal_exit"`, string(testkit.JSONMember(t, m, "params.event.type")))
		assert.Regexp(t, `^"20.*Z"$`, string(testkit.JSONMember(t, m, "params.event.timestamp")))
		ends = append(ends, string(testkit.JSONMember(t, m, "params.event.data")))
	}
	sort.Strings(ends)
	assert.Equal(t, []string{
		`{"terminal_id":"spawned","exit_code":-1,"signal":"hub gone"}`, `{"terminal_id":"watched","exit_code":-1,"signal":"hub gone"}`,
	}, ends)
	hub = s.hub()
	assert.JSONEq(t, response("8", `1`), func() string {
		s.send(request(8, "ping", `{}`))
		hub.next()
		hub.send(response("8", `1`))
		return s.next()
	}(), "and once is enough")
}
