package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/server"
)

// A served site has a `duet-rpc web`.
type served struct {
	*e2e.Site
	t       *testing.T
	url     string
	process *e2e.Process
}

// serve starts `duet-rpc web` for the user of a site. code is that of the first device; "": others are paired.
func serve(t *testing.T, s *e2e.Site, args ...string) (w served, code string) {
	t.Helper()
	if len(args) == 0 {
		args = []string{"--address", "127.0.0.1:0"}
	}
	p := s.Launch(append([]string{"web"}, args...)...).Start(t)
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill() // it may have ended
		<-p.Ended
		s.EndDaemons()
	})
	lines := bufio.NewScanner(p.Stdout)
	require.True(t, lines.Scan(), "%s", p.Log)
	w = served{s, t, lines.Text(), p}
	if devices := s.Run("web", "devices", "--json"); !strings.Contains(devices, `"id"`) {
		require.True(t, lines.Scan())
		code = strings.Fields(strings.TrimPrefix(lines.Text(), "Code: "))[0]
	}
	go io.Copy(io.Discard, p.Stdout)
	return w, code
}

// code returns a new code, as `duet-rpc web pair` shows it.
func (w served) code() string {
	w.t.Helper()
	var shown struct{ Code string }
	require.NoError(w.t, json.Unmarshal([]byte(w.Run("web", "pair", "--json")), &shown))
	return shown.Code
}

// A device is a browser.
type device struct {
	w      served
	cookie string // as the header has it
	key    string
	id     string
}

// request sends a request as a page of the server does, changed by more, and returns the answer.
func (w served) request(method, path string, body any, more ...func(*http.Request)) (status int, answer object, header http.Header) {
	w.t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(w.t, err)
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader(raw))
	require.NoError(w.t, err)
	r.Header.Set("Origin", w.url)
	for _, change := range more {
		change(r)
	}
	got, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(w.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(w.t, err)
	_ = json.Unmarshal(text, &answer) // pages are no JSON
	return got.StatusCode, answer, got.Header
}

// pair pairs a browser.
func (w served) pair(code, name string) device {
	w.t.Helper()
	status, answer, header := w.request("POST", "/pair", object{"code": code, "name": name})
	require.Equal(w.t, http.StatusOK, status, "%v", answer)
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	return device{w, cookie, answer["key"].(string), answer["device"].(object)["id"].(string)}
}

// connect opens a WebSocket as the device's page does, changed by more.
func (d device) connect(more ...func(http.Header)) (*websocket.Conn, *http.Response, error) {
	header := http.Header{"Origin": {d.w.url}, "Cookie": {d.cookie}}
	for _, change := range more {
		change(header)
	}
	ws, r, err := websocket.Dial(d.w.t.Context(), d.w.url+"/connect", &websocket.DialOptions{HTTPHeader: header, CompressionMode: websocket.CompressionNoContextTakeover})
	if err == nil {
		ws.SetReadLimit(64 << 20)
	}
	return ws, r, err
}

// A page is an open page of a device.
type page struct {
	*client.Client
	t     *testing.T
	hello hello

	mu     sync.Mutex
	inbox  []question
	events []event
}

type hello struct {
	Device   struct{ ID, Name string }
	Projects []struct{ ID, Name, Root, State string }
	Inbox    []question
	Push     struct {
		PublicKey string `json:"public_key"`
	}
}

type question struct {
	Project  string
	Approval struct {
		Approval, Title, Fingerprint string
		Session                      int64
	}
}

type event struct {
	Project        string
	SubscriptionID string `json:"subscription_id"`
	Seq            int64
	Kind, Turn     string
	Data           json.RawMessage
}

// overSocket is a transport over a WebSocket. [websocket.NetConn] would close it at a deadline.
func overSocket(t *testing.T, ws *websocket.Conn) server.Transport {
	near, far := server.Pipe()
	ctx := context.WithoutCancel(t.Context())
	go func() {
		defer far.Close()
		for {
			_, message, err := ws.Read(ctx)
			if err != nil {
				return
			}
			if _, err := far.Write(append(message, '\n')); err != nil {
				return
			}
		}
	}()
	go func() {
		defer ws.CloseNow()
		lines := bufio.NewReader(far)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil || ws.Write(ctx, websocket.MessageText, line) != nil {
				return
			}
		}
	}()
	return near
}

// open opens a page of the device, which shows its key.
func (d device) open() *page {
	d.w.t.Helper()
	ws, _, err := d.connect()
	require.NoError(d.w.t, err)
	p := &page{t: d.w.t}
	c, err := client.Dial(d.w.t.Context(), client.OverTransport(overSocket(d.w.t, ws), frame.NDJSON),
		client.WithSetup(func(c *client.Client) {
			c.On("web.inbox", func(raw json.RawMessage) {
				var now struct{ Questions []question }
				_ = json.Unmarshal(raw, &now)
				p.mu.Lock()
				defer p.mu.Unlock()
				p.inbox = now.Questions
			})
			c.On("event", func(raw json.RawMessage) {
				var e event
				_ = json.Unmarshal(raw, &e)
				p.mu.Lock()
				defer p.mu.Unlock()
				p.events = append(p.events, e)
			})
		}))
	require.NoError(d.w.t, err)
	d.w.t.Cleanup(func() { c.Close() })
	p.Client = c
	p.call("web.hello", object{"key": d.key}, &p.hello)
	p.mu.Lock()
	if p.inbox == nil {
		p.inbox = p.hello.Inbox
	}
	p.mu.Unlock()
	return p
}

func (p *page) call(method string, params, result any) {
	p.t.Helper()
	require.NoError(p.t, p.Call(p.t.Context(), method, params, result, client.WithTimeout(time.Minute)), method)
}

// until waits for something that the page has been sent.
func (p *page) until(what string, done func() bool) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return done()
	}, e2e.Watchdog, e2e.PollEvery, what)
}

// asks waits for an open question, and returns it.
func (p *page) asks() (q question) {
	p.t.Helper()
	p.until("a question", func() bool {
		if len(p.inbox) > 0 {
			q = p.inbox[0]
		}
		return len(p.inbox) > 0
	})
	return q
}
