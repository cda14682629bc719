package handlers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
)

// site writes files into the directory dist of the project.
func (w *world) site(files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		path := filepath.Join(w.dir, "dist", name)
		require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
	}
}

func TestAPageIsFetched(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	refused := c.failsAs("fetch", `{"url":"/"}`, -32005, "preview_load_failed")
	assert.Contains(t, refused.Message, "Preview load failed: there is nothing to show")
	w.site(map[string]string{"index.html": "<p>home", "a.js": "1"})
	assert.JSONEq(t, `{"status":200,"headers":{"Content-Type":"text/html; charset=utf-8","X-Content-Type-Options":"nosniff","Cache-Control":"no-store"},"body":"PHA+aG9tZQ=="}`, string(c.ask("fetch", `{"url":"/users/1"}`)))
	assert.Equal(t, 404.0, object(t, c.ask("fetch", `{"url":"/b.js"}`))["status"])
	assert.Equal(t, 200.0, object(t, c.ask("fetch", `{"url":"http://localhost:1/a.js","origin":"http://localhost:1"}`))["status"])
	for _, url := range []string{"/../secret", "http://example.org/", "/%2e%2e/x", "/a%00"} {
		c.failsAs("fetch", fmt.Sprintf(`{"url":%q}`, url), -32006, "navigation_failed", url)
	}
}

func TestAFileThatFitsIntoNoMessageIsRefused(t *testing.T) {
	w := newWorld(t, quick)
	w.site(map[string]string{"index.html": "", "most.bin": strings.Repeat("x", 6<<20), "more.bin": strings.Repeat("x", 8<<20), "lines.bin": strings.Repeat("x", 1<<20)})
	lines := w.connect(frame.NDJSON)
	assert.Equal(t, -32005, lines.fail("fetch", `{"url":"/lines.bin"}`).Code)
	c := w.connect(frame.LSP)
	assert.Len(t, object(t, c.ask("fetch", `{"url":"/most.bin"}`))["body"], 8<<20)
	refused := c.fail("fetch", `{"url":"/more.bin"}`)
	assert.Equal(t, -32005, refused.Code)
	assert.Contains(t, refused.Message, "dist/more.bin is too long for a preview: it has 8192 KiB")
}

func TestWhoShowsAPreviewIsToldWhereToGo(t *testing.T) {
	w := newWorld(t, quick)
	w.site(map[string]string{"index.html": "home", "docs/index.html": "docs"})
	asking, showing, also := w.connect(frame.LSP), w.connect(frame.LSP), w.connect(frame.LSP)
	assert.JSONEq(t, `{"url":"/about","shown":0}`, string(asking.ask("navigate", `{"url":"/about"}`)))
	showing.ask("fetch", `{"url":"/"}`)
	also.ask("updateNavigationState", `{"url":"/","title":"Home"}`)
	assert.JSONEq(t, `{"url":"/about?a=b","shown":2}`, string(asking.ask("navigate", `{"url":"/about?a=b"}`)))
	assert.JSONEq(t, `{"shown":2}`, string(asking.ask("refresh", "")))
	assert.JSONEq(t, `{"url":"/docs","shown":2}`, string(asking.ask("navigate", `{"url":"docs"}`)))
	for _, c := range []*client{showing, also} {
		for _, want := range []string{`navigate {"url":"/about?a=b"}`, `refresh {}`, `navigate {"url":"/docs"}`} {
			m := c.next()
			assert.Equal(t, want, m.Method+" "+string(m.Params))
		}
	}
	for _, url := range []string{"/none.html", "https://example.org/", "/.."} {
		assert.Equal(t, -32006, asking.fail("navigate", fmt.Sprintf(`{"url":%q}`, url)).Code)
	}
	also.close()
	assert.JSONEq(t, `{"shown":1}`, string(asking.ask("preview.refresh", "")))
	assert.JSONEq(t, `{"url":"/docs","shown":1}`, string(asking.ask("preview.navigate", `{"url":"docs"}`)))
	asking.failsAs("preview.navigate", `{"url":"/none.html"}`, -32051, "navigation_failed")
	asking.failsAs("preview.fetch", `{"url":"https://example.org/"}`, -32051, "navigation_failed")
	asking.ask("preview.fetch", `{"url":"/docs"}`)
	assert.Empty(t, asking.aside)
}

func TestWhatAPageSaysIsKeptWithTheSession(t *testing.T) {
	w := newWorld(t, quick)
	c, other := w.connect(frame.LSP), w.connect(frame.LSP)
	list := func(params string) []map[string]any {
		r := answer[struct{ Messages []map[string]any }](other, "preview.messages", params)
		for _, m := range r.Messages {
			assert.NotEmpty(t, m["time"])
			delete(m, "time")
			delete(m, "id")
		}
		return r.Messages
	}
	assert.JSONEq(t, `{"kept":true}`, string(c.ask("preview.console", `{"message":"before any session"}`)))
	first := object(t, c.ask("launchSession", `{"query":"one"}`))["session_id"].(string)
	second := object(t, c.ask("launchSession", `{"query":"two"}`))["session_id"].(string)
	other.ask("preview.messages", `{"follow":true}`)
	c.write(`{"jsonrpc":"2.0","method":"preview.console","params":{"level":"warning","args":["count",{"a":[1]}],"url":"/","line":3}}`)
	c.ask("preview.error", fmt.Sprintf(`{"message":"x is not defined","stack":"at f","source":"/app.js","line":1,"column":2,"session":%q}`, first))
	for range 3 {
		c.ask("preview.navigated", `{"url":"/about","title":"About"}`)
	}
	before := map[string]any{"kind": "console", "level": "log", "message": "before any session", "count": 1.0}
	warned := map[string]any{"kind": "console", "level": "warn", "message": `count {"a":[1]}`, "url": "/", "line": 3.0, "turn_uuid": second, "count": 1.0}
	wrong := map[string]any{"kind": "error", "message": "x is not defined", "stack": "at f", "url": "/app.js", "line": 1.0, "column": 2.0, "turn_uuid": first, "count": 1.0}
	moved := map[string]any{"kind": "navigation", "message": "About", "url": "/about", "turn_uuid": second, "count": 3.0}
	assert.Equal(t, []map[string]any{before, warned, wrong, moved}, list(""))
	assert.Equal(t, []map[string]any{warned, wrong}, list(`{"problems":true}`))
	assert.Equal(t, []map[string]any{wrong}, list(fmt.Sprintf(`{"session":%q}`, first)))
	assert.Equal(t, []map[string]any{moved}, list(`{"limit":1}`))

	moved["count"] = 1.0
	for _, want := range []map[string]any{warned, wrong, moved} {
		m := other.next()
		require.Equal(t, "pageMessage", m.Method)
		got := object(t, m.Params)
		delete(got, "time")
		delete(got, "id")
		assert.Equal(t, want, got)
	}
	assert.Equal(t, "task_not_found", c.fail("console", `{"message":"x","session_id":"unknown"}`).Data["kind"])
	c.failsAs("preview.console", `{"message":"x","session":"unknown"}`, -32050, "not_found")
	for method, params := range map[string]string{"console": `"message":"m"`, "error": `"message":"m"`, "updateNavigationState": `"url":"/old"`} { // application boundaries
		c.ask(method, `{`+params+`,"session_id":"`+first+`"}`)
		assert.Equal(t, first, list(`{"limit":1}`)[0]["turn_uuid"], method)
	}
}

func TestAPageThatNeverStopsIsCutShort(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	kept := 0
	for i := range 300 {
		if object(t, c.ask("preview.console", fmt.Sprintf(`{"message":"m%d"}`, i)))["kept"].(bool) {
			kept++
		}
	}
	assert.GreaterOrEqual(t, kept, 100)
	long := strings.Repeat("é", 20<<10)
	c.ask("console", fmt.Sprintf(`{"message":%q}`, long))
	r := answer[struct{ Messages []struct{ Message string } }](c, "preview.messages", `{"limit":1000}`)
	for _, m := range r.Messages {
		assert.LessOrEqual(t, len(m.Message), 8<<10)
	}
}
