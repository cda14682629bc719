package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newDevices(t *testing.T) *Devices {
	t.Helper()
	d, err := OpenDevices(filepath.Join(t.TempDir(), "web"))
	require.NoError(t, err)
	return d
}

func question(t *testing.T, project, id string) Question {
	t.Helper()
	q, ok := questionOf(Place{Root: project}, fmt.Appendf(nil, `{"approval":%q,"title":"Run it","type":"function_call"}`, id))
	require.True(t, ok)
	return q
}

// A question is notified once, also when another process goes on whose projects answer one after the other.
func TestQuestionsAreNotifiedOnceAcrossProcesses(t *testing.T) {
	said := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		said <- r.Header.Get("Click")
	}))
	defer hook.Close()
	devices := newDevices(t)
	serve := func() (asked func(known []string, open ...Question), end func()) {
		p := newPusher(devices, Notify{Webhook: hook.URL, Content: ContentNone}, slog.New(slog.DiscardHandler), &names{scheme: "http", host: "localhost", port: "1"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.run(ctx) }()
		return func(known []string, open ...Question) {
			ids := map[string]bool{}
			for _, id := range known {
				ids[id] = true
			}
			p.asked(open, ids, func(id string) string { return id })
		}, func() { cancel(); <-done }
	}
	a, b, c := question(t, "/a", "in-a"), question(t, "/b", "in-b"), question(t, "/a", "another")
	both := []string{"/a", "/b"}

	asked, end := serve()
	asked(both, a, b)
	assert.Contains(t, <-said, "in-a")
	assert.Contains(t, <-said, "in-b")
	end()

	asked, end = serve()
	asked([]string{"/a"}, a, c) // /b has not answered yet
	assert.Contains(t, <-said, "another")
	asked(both, a, b, c, question(t, "/b", "last"))
	assert.Contains(t, <-said, "last", "none was notified again")
	end()
}

// A long question is in the inbox, too: its row is short, and the page asks for the rest.
func TestLongQuestionsStayInTheInbox(t *testing.T) {
	long := strings.Repeat("x", mostOfProject)
	q, ok := questionOf(Place{Root: "/a"}, fmt.Appendf(nil, `{"approval":"q","title":"Write it","type":"function_call","fingerprint":"f","diff":%q,"tool_input":{"content":%[1]q}}`, long))
	require.True(t, ok)
	var row map[string]any
	require.NoError(t, json.Unmarshal(q.Approval, &row))
	assert.Equal(t, map[string]any{
		"approval": "q", "title": "Write it", "type": "function_call", "fingerprint": "f", "truncated": true, "tool_input": map[string]any{},
	}, row)
	assert.False(t, q.message(ContentAll, true, "a").Actions, "a notification that does not show all has no buttons")

	_, ok = questionOf(Place{Root: "/a"}, fmt.Appendf(nil, `{"approval":"q","title":%q}`, long))
	assert.False(t, ok, "a host's title of any length")
}

// A removed device may do nothing more, even if its page takes its time to close.
func TestARemovedDeviceMayDoNothingMore(t *testing.T) {
	devices := newDevices(t)
	code, err := devices.NewCode(time.Now())
	require.NoError(t, err)
	device, _, key, err := devices.Pair(code, "Phone", time.Now())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan websocket.StatusCode, 1)
	c := &connection{
		server: &Server{devices: devices}, id: device.ID, device: device, greeted: true, ctx: ctx,
		end: func(code websocket.StatusCode, _ string) { ended <- code },
	}
	require.NoError(t, c.mayCall())
	_, err = devices.Remove("Phone")
	require.NoError(t, err)
	c.watch()
	assert.Equal(t, closeRemoved, <-ended)
	require.Error(t, c.mayCall())
	assert.False(t, c.device.Key.matches(key), "it cannot begin again")
}
