package relay_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// Every message passes unchanged, in order, both ways.
func TestMessagesPassByteForByte(t *testing.T) {
	s := start(t)
	hub := s.hub()
	var messages []string
	for _, id := range []string{`1`, `-1.50`, `1e3`, `18446744073709551616`, `"a"`, `"\u0061\"ü"`, `null`, `""`, `{"no":"id"}`, `[1]`, `true`} {
		messages = append(messages, request(id, "echo", ` {"a" : [1, 2 ] }`))
	}
	messages = append(messages,
		"\r\n {\"jsonrpc\":\"2.0\" , \"method\":\"note\"}\n ", `5`, `"text"`, `[]`, `{}`, `{"id":3}`, `[5,{"id":4},`+request(7, "x", "[]")+`]`,
		`{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"sub_x","seq":1,"event":{}}}`,
		`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`, `{"jsonrpc":"2.0","method":7,"id":8}`,
		request(9, "big", `"`+strings.Repeat("ü", 5<<20-100)+`"`),
	)
	go func() {
		for _, m := range messages {
			_, _ = s.end.Write(framed(m))
		}
	}()
	for _, m := range messages {
		require.Equal(t, m, hub.next())
	}
	messages = append(messages, `{"jsonrpc":"2.0","id":1,"result":null,"extra":1}`, `{"jsonrpc":"2.0","result":{"event":{}}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}`)
	go func() {
		for _, m := range messages {
			_, _ = hub.end.Write(framed(m))
		}
	}()
	for _, m := range messages {
		require.Equal(t, m, s.next())
	}
}

func TestPipelinedRequestsOverSockets(t *testing.T) {
	s := start(t)
	ours, theirs := sockets(t)
	s.hubs <- ours
	serveOn(t, standard(nil), theirs)
	const n = 20_000
	var all []string
	for i := range n {
		all = append(all, request(i, "echo", `["some text to make it longer"]`))
	}
	s.send(all...) // before the editor reads an answer
	for i := range n {
		require.Equal(t, response(i, `["some text to make it longer"]`), s.next())
	}
	assert.Equal(t, `[`+response(1, `1`)+`,`+response(`"b"`, `{"x":2}`)+`]`,
		s.ask(`[`+request(1, "echo", `1`)+`,{"jsonrpc":"2.0","method":"echo"},`+request(`"b"`, "echo", `{"x":2}`)+`]`))
	big := `"` + strings.Repeat("x", 10<<20-100) + `"`
	go func() { _, _ = s.end.Write(framed(request(2, "echo", big))) }()
	assert.Equal(t, response(2, big), s.next())
}

// A descriptor cannot pass the relay, so the relay refuses a request for one; all others pass.
func TestRequestsForDescriptorsAreRefused(t *testing.T) {
	s := start(t)
	hub := s.hub()
	for i, method := range []string{"spawn_terminal", "terminal.attach"} {
		for _, params := range []string{`{"descriptor":true}`, `[{"terminal_id":"t","descriptor" : true,"cols":1}]`} {
			answer := s.ask(request(i, method, params))
			assert.Equal(t, "-32602", string(testkit.JSONMember(t, answer, "error.code")))
			assert.Equal(t, `"descriptor"`, string(testkit.JSONMember(t, answer, "error.data.param")))
			assert.Equal(t, fmt.Sprint(i), string(testkit.JSONMember(t, answer, "id")))
		}
	}
	for i, passes := range []string{
		request(10, "terminal.attach", `{"descriptor":false}`), request(11, "spawn_terminal", `{"args":["descriptor","true"]}`),
		request(12, "echo", `{"descriptor":true}`), request(13, "spawn_terminal", `{}`),
	} {
		s.send(passes)
		assert.Equal(t, passes, hub.next())
		hub.send(response(10+i, `1`))
		assert.Equal(t, response(10+i, `1`), s.next())
	}
}

func TestRelayAnswersBadFrames(t *testing.T) {
	s := start(t, func(o *relay.Options) { o.Limits = frame.Limits{MaxFrame: 100} })
	hub := s.hub()
	for _, c := range []struct{ sent, reason, id string }{
		{"Content-Length: 101\r\n\r\n" + strings.Repeat("x", 101), "oversize", "null"},
		{"Content-Length: 120\r\n\r\n" + `{"id":"y","method":"m","x":"` + strings.Repeat("x", 90) + `"}`, "oversize", "null"},
		{"Content-Length: x\r\n\r\n", "bad-content-length", "null"},
		{"Content-Length: 1\r\n\r\n{", "invalid-json", "null"},
		{"Content-Length: 1\r\n\r\n\xff", "invalid-utf8", "null"},
		{"Content-Type: text/plain\r\nContent-Length: 23\r\n\r\n" + `{"id":"x","method":"m"}`, "unsupported-content-type", `"x"`},
	} {
		_, err := s.end.Write([]byte(c.sent))
		require.NoError(t, err)
		m := s.next()
		assert.Equal(t, `"`+c.reason+`"`, string(testkit.JSONMember(t, m, "error.data.reason")))
		assert.Equal(t, c.id, string(testkit.JSONMember(t, m, "id")))
		good := request(1, "m", `[]`) // is the hub's next message
		s.send(good)
		assert.Equal(t, good, hub.next())
	}
	fits := `"` + strings.Repeat("x", 98) + `"`
	s.send(fits)
	assert.Equal(t, fits, hub.next(), "a message of the greatest length")
}

// When the hub dies the relay answers pending requests. It does not relay late answers to the
// next hub, and drops the rest of a frame.
func TestHubDiesWithPendingRequests(t *testing.T) {
	s := start(t)
	open := make(chan struct{})
	defer close(open)
	kill := s.serve(standard(open))
	assert.Equal(t, response(0, `1`), s.ask(request(0, "echo", `1`)))
	for i := range 100 {
		s.send(request(i, "gate", `[]`))
	}
	s.send(`[` + request(`"x"`, "gate", `1`) + `,` + request(`"y"`, "echo", `2`) + `,{"jsonrpc":"2.0","method":"echo"}]`)
	assert.Equal(t, response(`"z"`, `1`), s.ask(request(`"z"`, "echo", `1`)), "the hub has all requests")
	kill()
	for i := range 100 {
		assertLost(t, fmt.Sprint(i), s.next())
	}
	batch := s.next()
	assertLost(t, `"x"`, batch[1:strings.Index(batch, `,{"jsonrpc"`)])
	assertLost(t, `"y"`, batch[strings.Index(batch, `,{"jsonrpc"`)+1:len(batch)-1])
	s.serve(standard(nil))
	assert.Equal(t, response(5, `1`), s.askUntilServed(request(5, "echo", `1`)))
	require.NoError(t, s.end.Close())
	require.NoError(t, s.returned())
}

// An editor that sends all requests before it reads gets one answer to each, also if its hubs die
// meanwhile.
func TestHubsDieUnderPipelinedRequests(t *testing.T) {
	const n = 20_000
	s := start(t)
	kill := s.serve(standard(nil))
	var all []string
	for i := range n {
		all = append(all, request(i, "echo", `1`))
	}
	for part := range 5 {
		s.send(all[part*n/5 : (part+1)*n/5]...)
		kill()
		kill = s.serve(standard(nil))
	}
	answered, lost := make([]int, n), 0
	for range n {
		m := s.next()
		var id int
		require.NoError(t, json.Unmarshal(testkit.JSONMember(t, m, "id"), &id))
		answered[id]++
		if strings.Contains(m, "hub_lost") {
			lost++
		}
	}
	for id, times := range answered {
		require.Equal(t, 1, times, "answers to %d", id)
	}
	assert.Positive(t, lost)
	assert.Equal(t, response(`"end"`, `1`), s.askUntilServed(request(`"end"`, "echo", `1`)))
}

func TestAnsweredRequestsAreNotLost(t *testing.T) {
	s := start(t)
	hub := s.hub()
	s.send(request(1, "a", `[]`), request(1, "b", `[]`), request(2, "c", `[]`), request("null", "d", `[]`), request(`{}`, "e", `[]`),
		`{"id":3}`, `[`+request(4, "a", `[]`)+`,`+request(5, "a", `[]`)+`]`, `[`+strings.Repeat(request(6, "a", `[]`)+`,`, 1000)+request(6, "a", `[]`)+`]`)
	for range 8 {
		hub.next()
	}
	answers := []string{
		response(1, `1`), response("null", `1`), `[` + response(4, `1`) + `,` + response(5, `1`) + `]`, response(77, `1`),
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m","data":{"reason":"batch-too-large"}}}`,
	}
	go hub.send(answers...)
	for _, a := range answers {
		assert.Equal(t, a, s.next())
	}
	_, err := hub.end.Write(framed(response(1, `"`+strings.Repeat("x", 100_000)+`"`))[:70_000]) // it dies within a frame
	require.NoError(t, err)
	hub.end.Close()
	for _, id := range []string{"1", "2", "3"} {
		assertLost(t, id, s.next())
	}
	hub = s.hub()
	s.send(request(7, "x", `[]`))
	assert.Equal(t, request(7, "x", `[]`), hub.next(), "the hub gets no other message")
	hub.send(response(7, `1`))
	assert.Equal(t, response(7, `1`), s.next(), "the editor gets no other message")
}

func TestRequestsOfTheHub(t *testing.T) {
	s := start(t)
	hub := s.hub()
	question, answer := request(1, "ask", `[]`), response(1, `"mine"`)
	hub.send(question, `[`+question+`]`)
	assert.Equal(t, question, s.next())
	assert.Equal(t, `[`+question+`]`, s.next())
	s.send(answer, `[`+answer+`]`)
	assert.Equal(t, answer, hub.next())
	assert.Equal(t, `[`+answer+`]`, hub.next())
}

// Without a hub messages wait, in order, until they expire.
func TestMessagesWaitForHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		for i := range 10 {
			s.send(request(i, "x", `[]`), `{"jsonrpc":"2.0","method":"note"}`)
		}
		time.Sleep(5*time.Second - time.Millisecond)
		hub := s.hub()
		for i := range 10 {
			assert.Equal(t, request(i, "x", `[]`), hub.next())
			assert.Equal(t, `{"jsonrpc":"2.0","method":"note"}`, hub.next())
		}
		hub.end.Close()
		for i := range 10 {
			assertLost(t, fmt.Sprint(i), s.next())
		}
		began := time.Now()
		s.send(request(1, "x", `[]`), `{"jsonrpc":"2.0","method":"note"}`)
		time.Sleep(time.Second)
		s.send(`[` + request(2, "x", `[]`) + `,` + request(3, "x", `[]`) + `]`)
		assertLost(t, `1`, s.next())
		assert.Equal(t, 5*time.Second, time.Since(began))
		batch := s.next()
		assert.Equal(t, 6*time.Second, time.Since(began))
		assert.Equal(t, 2, strings.Count(batch, "hub_lost"))
		assert.Equal(t, `[`, batch[:1])
		hub = s.hub()
		s.send(request(4, "x", `[]`))
		assert.Equal(t, request(4, "x", `[]`), hub.next(), "the relay does not send an expired message")
	})
}

// Later messages do not overtake waiting ones.
func TestMessagesStayInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		big := `"` + strings.Repeat("x", 100_000) + `"`
		for i := range 10 {
			s.send(request(i, "x", big))
		}
		hub := s.hub()
		synctest.Wait() // the relay is writing the first, and the hub does not read
		for i := range 10 {
			s.send(request(10+i, "x", big))
		}
		time.Sleep(time.Minute) // a slow hub is not lost
		for i := range 20 {
			assert.Equal(t, fmt.Sprint(i), string(testkit.JSONMember(t, hub.next(), "id")))
		}
	})
}

func TestWaitingMessagesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		fits    int
	}{
		"count": {`{"jsonrpc":"2.0","method":"note"}`, 1000},
		"bytes": {`{"jsonrpc":"2.0","method":"note","params":"` + strings.Repeat("x", 1<<20-45) + `"}`, 16},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t)
				require.LessOrEqual(t, len(c.message), 1<<20)
				sent := 0
				var err error
				require.NoError(t, s.end.SetWriteDeadline(time.Now().Add(time.Second)))
				for err == nil {
					if _, err = s.end.Write(framed(c.message)); err == nil {
						sent++
					}
				}
				// The reader holds one more message.
				assert.GreaterOrEqual(t, sent, c.fits)
				assert.LessOrEqual(t, sent, c.fits+3)
			})
		})
	}
}

func TestEachSideStallsOnlyItself(t *testing.T) {
	const grace = 200 * time.Millisecond
	s := start(t, func(o *relay.Options) { o.Grace = grace })
	hub := s.hub()
	big := `"` + strings.Repeat("x", 1<<20) + `"`
	fill := func(w *wire) (n int) {
		require.NoError(t, w.end.SetWriteDeadline(time.Now().Add(grace)))
		for {
			if _, err := w.end.Write(framed(big)); err != nil {
				require.NoError(t, w.end.SetWriteDeadline(time.Time{}))
				return n
			}
			n++
		}
	}
	assert.LessOrEqual(t, fill(hub), 3, "the editor does not read")
	s.send(request(1, "x", `[]`))
	assert.Equal(t, request(1, "x", `[]`), hub.next(), "the relay still relays the editor's messages")
	assert.LessOrEqual(t, fill(s.wire), 3, "the hub does not read")
	s.cancel()
	require.NoError(t, s.returned(), "neither side delays the end")
}

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
	exits := func(message string) {
		t.Helper()
		hub.send(message)
		assert.JSONEq(t, message, s.next())
	}
	asks(1, "terminal.start", `{}`, `{"terminal_id":"started","pty_pid":1}`)
	asks(2, "terminal.start", `{}`, `{"terminal_id":"over","pty_pid":2}`)
	asks(10, "spawn_terminal", `{}`, `{"terminal_id":"spawned","pty_pid":3}`)
	asks(11, "spawn_terminal", `{}`, `{"terminal_id":"over too","pty_pid":4}`)
	asks(3, "terminal.attach", `[{"terminal_id":"watched"}]`, `{"terminal_id":"watched"}`)
	asks(4, "terminal.attach", `{"terminal_id":"left"}`, `{"terminal_id":"left"}`)
	asks(5, "terminal.detach", `{"terminal_id":"left"}`, `{"detached":true}`)
	s.send(request(6, "terminal.attach", `{"terminal_id":"nobody"}`))
	hub.next()
	hub.send(`{"jsonrpc":"2.0","id":6,"error":{"code":-32603,"message":"no"}}`)
	s.next()
	exits(`{"jsonrpc":"2.0","method":"event","params":{"kind":"terminal.exited","time":"2025-01-01T00:00:00Z","data":{"terminal_id":"over","exit_code":0}}}`)
	exits(`{"jsonrpc":"2.0","method":"event","params":{"event":{"type":"terminal_exit","timestamp":"2025-01-01T00:00:00Z","data":{"terminal_id":"over too","exit_code":0}}}}`)
	s.send(request(7, "terminal.start", `{}`)) // unknown to all other handlers
	hub.next()

	hub.end.Close()
	assertLost(t, "7", s.next())
	var ends []string
	for range 3 {
		ends = append(ends, regexp.MustCompile(`"20[^"]*Z"`).ReplaceAllString(s.next(), `"NOW"`))
	}
	sort.Strings(ends)
	assert.Equal(t, []string{
		`{"jsonrpc":"2.0","method":"event","params":{"event":{"type":"terminal_exit","timestamp":"NOW","data":{"terminal_id":"spawned","exit_code":-1,"signal":"hub gone"}}}}`,
		`{"jsonrpc":"2.0","method":"event","params":{"kind":"terminal.exited","time":"NOW","data":{"terminal_id":"started","exit_code":-1,"signal":"hub gone"}}}`,
		`{"jsonrpc":"2.0","method":"event","params":{"kind":"terminal.exited","time":"NOW","data":{"terminal_id":"watched","exit_code":-1,"signal":"hub gone"}}}`,
	}, ends)
	hub = s.hub()
	assert.JSONEq(t, response("8", `1`), func() string {
		s.send(request(8, "ping", `{}`))
		hub.next()
		hub.send(response("8", `1`))
		return s.next()
	}(), "and once is enough")
}

// Deep and wide messages cost no more than their length, in both directions and without a hub. A
// relay that scans an array again at each level, or a table that walks the requests with the same
// id, takes minutes here.
func TestDeepAndWideMessages(t *testing.T) {
	const levels = frame.MaxDepth - 10
	deep := strings.Repeat("[", levels) + strings.Repeat("]", levels)
	many := func(n int, one string) string { return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]" }
	same := `{"id":1,"method":""}`
	for name, body := range map[string]string{
		"deep":                      deep,
		"deep parts":                many(400, deep),
		"wide":                      many(3_000_000, "[]"),
		"requests with the same id": many(400_000, same),
		"deep parameters":           request(1, "event.subscribe", deep),
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(o *relay.Options) {
				o.Early = func(*frame.Message) ([]byte, bool) { return nil, false }
			})
			go s.send(body) // there is no hub yet
			hub := s.hub()
			require.True(t, body == hub.next(), "from the editor")
			go hub.send(body)
			require.True(t, body == s.next(), "from the hub")
		})
	}
}
