package web

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// A day of two phones: a question that both see and one answers, a conversation without a gap across a daemon that is killed and a
// `duet-rpc web` that is killed, and a device that is removed.
func TestADayOfTwoPhones(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	w, code := serve(t, s)
	phone, tablet := w.pair(code, "Phone"), w.pair(w.code(), "Phone")
	one, two := phone.open(), tablet.open()
	assert.Equal(t, []string{"Phone", "Phone 2"}, []string{one.hello.Device.Name, two.hello.Device.Name})

	s.Begin()
	editor := s.Open()
	l := editor.Launch("write it", "")
	q := one.asks()
	assert.Equal(t, q, two.asks())
	project := q.Project

	// The first answer wins, and the other page hears of it.
	var decided struct {
		Success bool
		Error   string
	}
	refused := one.Call(t.Context(), "approval.decide", object{"project": project, "approval": q.Approval.Approval, "decision": "approve", "fingerprint": "another"}, nil)
	require.ErrorIs(t, refused, client.Kind("changed"))
	one.call("approval.decide", object{"project": project, "approval": q.Approval.Approval, "decision": "approve", "fingerprint": q.Approval.Fingerprint}, &decided)
	require.True(t, decided.Success)
	two.call("approval.decide", object{"project": project, "approval": q.Approval.Approval, "decision": "deny", "comment": "no"}, &decided)
	require.False(t, decided.Success)
	two.until("the inbox is empty", func() bool { return len(two.inbox) == 0 })
	editor.Completes(l)

	// A prompt with an id is sent once.
	var begun [2]struct {
		Turn    string
		Session string `json:"session_uuid"`
	}
	for i := range begun {
		one.call("session.start", object{"project": project, "prompt": "quiet", "start_id": "7a1c7a2f-3a51-4d0f-9a8e-0b1f5f7d3c10"}, &begun[i])
	}
	require.Equal(t, begun[0], begun[1])

	// Events go on without a gap when the daemon is killed.
	var subscribed struct {
		SubscriptionID string `json:"subscription_id"`
	}
	one.call("event.subscribe", object{"project": project, "session": begun[0].Session, "since": 0}, &subscribed)
	s.CrashHub()
	one.call("session.prompt", object{"project": project, "session": begun[0].Session, "prompt": "quiet again", "prompt_id": "8b2d8b30-4b62-4e1a-8b9f-1c2a6a8e4d21"}, nil)
	one.until("the second turn has ended", func() bool {
		return slices.ContainsFunc(one.events, func(e event) bool {
			return e.Kind == "turn.state" && strings.HasSuffix(e.Turn, ".2") && strings.Contains(string(e.Data), `"state":"completed"`)
		})
	})
	seen := map[int64]bool{}
	for _, e := range one.events {
		require.False(t, e.Seq > 0 && seen[e.Seq], "event %d came twice", e.Seq)
		seen[e.Seq] = true
	}

	// Another process serves the same devices.
	require.NoError(t, w.process.Cmd.Process.Signal(syscall.SIGKILL))
	<-w.process.Ended
	again, _ := serve(t, s)
	phone.w, tablet.w = again, again
	phone.cookie = strings.Replace(phone.cookie, portOf(w.url), portOf(again.url), 1) // it has another port here alone
	tablet.cookie = strings.Replace(tablet.cookie, portOf(w.url), portOf(again.url), 1)
	one, two = phone.open(), tablet.open()
	assert.Equal(t, "Phone 2", two.hello.Device.Name)

	// A removed device is cut off, and does not come back.
	s.Run("web", "devices", "remove", "Phone 2")
	require.Eventually(t, func() bool { return two.State() != client.Connected }, e2e.Watchdog, e2e.PollEvery)
	ws, _, err := tablet.connect()
	require.NoError(t, err)
	_, _, err = ws.Read(t.Context())
	assert.EqualValues(t, 4401, websocket.CloseStatus(err))
	one.call("web.sessions", object{}, nil)
	assert.NotContains(t, s.Run("web", "devices"), "Phone 2")
	e2e.Leave(editor)
}

func portOf(url string) string { return url[strings.LastIndexByte(url, ':')+1:] }

// What is no page of a paired device gets nothing.
func TestAttacksOnTheWeb(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Run("prompt", "quiet")
	w, code := serve(t, s)
	phone := w.pair(code, "Phone")
	get := func(path string, more ...func(*http.Request)) int {
		status, _, _ := w.request("GET", path, nil, more...)
		return status
	}
	origin := func(o string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Origin", o) } }
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }

	// DNS rebinding: another site's name has this address.
	assert.Equal(t, http.StatusMisdirectedRequest, get("/", host("evil.example:"+portOf(w.url))))
	assert.Equal(t, http.StatusMisdirectedRequest, get("/", host("localhost:1")))
	assert.Equal(t, http.StatusOK, get("/", host("localhost:"+portOf(w.url))))

	// Another site's page, also one on another port of this machine.
	for _, o := range []string{"https://evil.example", "http://127.0.0.1:1", "https://127.0.0.1:" + portOf(w.url), "null", ""} {
		status, _, _ := w.request("POST", "/pair", object{"code": w.code()}, origin(o))
		assert.Equal(t, http.StatusForbidden, status, o)
		status, _, _ = w.request("POST", "/decide", object{}, origin(o), func(r *http.Request) { r.Header.Set("Cookie", phone.cookie); r.Header.Set("Duet-Key", phone.key) })
		assert.Equal(t, http.StatusForbidden, status, o)
		_, r, err := phone.connect(func(h http.Header) { h.Set("Origin", o) })
		require.Error(t, err)
		assert.Equal(t, http.StatusForbidden, r.StatusCode, o)
	}

	// Names of files beside the page.
	for _, path := range []string{"/../server.go", "/%2e%2e/devices.json", "/assets/index.html", "/..%2f..%2fetc/passwd", "/connect/..", "//etc/passwd"} {
		assert.NotEqual(t, http.StatusOK, get(path), path)
	}

	// A cookie without the key, which other ports of this machine get, too; a wrong key ends the page.
	ws, _, err := phone.connect()
	require.NoError(t, err)
	require.NoError(t, ws.Write(t.Context(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"method":"web.sessions","params":{}}`)))
	_, answer, err := ws.Read(t.Context())
	require.NoError(t, err)
	assert.Contains(t, string(answer), `"not_paired"`)
	require.NoError(t, ws.Write(t.Context(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":2,"method":"web.hello","params":{"key":"guess"}}`)))
	for err == nil {
		_, _, err = ws.Read(t.Context())
	}
	assert.EqualValues(t, 4401, websocket.CloseStatus(err))

	// What a device may not do is refused by the process.
	p := phone.open()
	project := p.hello.Projects[0].ID
	for method, params := range map[string]object{
		"secret.provide": {"name": "x"}, "daemon.stop": {}, "terminal.start": {"command": "sh"}, "agent.login": {"agent": "claude"},
		"build.run": {}, "approval.create": {}, "rule.delete": {"rule_id": 1}, "project.forget": {}, "shutdown": {}, "setLogLevel": {"level": "debug"},
	} {
		params["project"] = project
		var e *client.Error
		require.ErrorAs(t, p.Call(t.Context(), method, params, nil), &e, method)
		assert.EqualValues(t, -32601, e.Code, method)
	}
	for method, params := range map[string]object{
		"session.start":  {"prompt": "x", "gates": []string{"touch /tmp/x"}},
		"session.prompt": {"session": 1, "prompt": "x", "mcp_config": object{}},
		"session.set":    {"session": 1, "additional_directories": []string{"/"}},
		"session.fork":   {"turn": 1, "prompt": "x", "skip_permissions": true},
	} {
		params["project"] = project
		require.ErrorIs(t, p.Call(t.Context(), method, params, nil), client.Kind("not_allowed"), method)
	}
	require.ErrorIs(t, p.Call(t.Context(), "session.list", object{"project": "/etc"}, nil), client.Kind("project_not_found"))
	assert.Equal(t, http.StatusForbidden, statusOf(w, phone, object{"project": project, "approval": "x", "fingerprint": "x", "decision": "approve"}),
		"this device has not chosen to answer in notifications")

	// Wrong codes.
	first := w.code()
	for n := range 10 {
		status, _, _ := w.request("POST", "/pair", object{"code": fmt.Sprintf("WRONG%03d", n), "name": "x"})
		assert.Equal(t, http.StatusForbidden, status)
	}
	status, refusal, _ := w.request("POST", "/pair", object{"code": first, "name": "x"})
	assert.Equal(t, http.StatusTooManyRequests, status)
	assert.Contains(t, refusal["error"], "too many wrong codes")
	w.process.RequireLog("10 wrong codes: no device is paired for 5 minutes")
	assert.Equal(t, 1, strings.Count(s.Run("web", "devices", "--json"), `"id"`))
}

func statusOf(w served, d device, body object) int {
	status, _, _ := w.request("POST", "/decide", body, func(r *http.Request) {
		r.Header.Set("Cookie", d.cookie)
		r.Header.Set("Duet-Key", d.key)
	})
	return status
}

// A thousand silent connections and a page that reads nothing hold up no other page.
func TestManyConnectionsToTheWeb(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Run("prompt", "quiet")
	w, code := serve(t, s)
	phone := w.pair(code, "Phone")
	for range 1_000 {
		conn, err := (&net.Dialer{Timeout: time.Minute}).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
	}
	silent, _, err := phone.connect()
	require.NoError(t, err)
	for id := range 64 {
		require.NoError(t, silent.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"web.hello","params":{"key":%q}}`, id, phone.key)))
	}
	p := phone.open()
	p.call("session.list", object{"project": p.hello.Projects[0].ID}, nil)
	for range 6 {
		phone.open()
	}
	ws, _, err := phone.connect()
	require.NoError(t, err)
	_, _, err = ws.Read(t.Context())
	assert.Equal(t, websocket.StatusTryAgainLater, websocket.CloseStatus(err), "a device has eight pages at most")
}

// An address that others reach needs TLS.
func TestAddressesOfTheWeb(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Refuses("needs --certificate and --key there", "web", "--address", "0.0.0.0:0")
	s.Refuses("has to be a host and a port", "web", "--address", "7311")
	s.Refuses("belong together", "web", "--certificate", "x")
	s.Refuses("has to be an address such as https://duet.example", "web", "--origin", "http://duet.example")
	w, _ := serve(t, s, "--address", "127.0.0.1:0", "--origin", "https://duet.example")
	assert.Equal(t, "https://duet.example", w.url)
}
