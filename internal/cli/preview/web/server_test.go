package web_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/cli/preview/web"
)

// world is a preview of some pages.
type world struct {
	t       *testing.T
	address string
	origin  string
	web     *web.Server
	browser *http.Client

	mu      sync.Mutex // guards the field below
	reports []web.Report
}

func newWorld(t *testing.T, capture bool) *world {
	t.Helper()
	w := &world{t: t}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.web.ServeHTTP(rw, r) }))
	at, err := url.Parse("http://" + server.Listener.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)
	o := web.Options{Port: port, Fetch: func(_ context.Context, path string) (web.Page, error) {
		html := map[string]string{"Content-Type": "text/html; charset=utf-8"}
		switch path {
		case "/", "/?a=b":
			return web.Page{Status: 200, Headers: html, Body: []byte("<!doctype html><HEAD lang=x><p>home " + path)}, nil
		case "/bare":
			return web.Page{Status: 200, Headers: html, Body: []byte("<header>")}, nil
		case "/refused":
			return web.Page{}, &web.RefusedError{Status: 400, Text: "refused"}
		case "/broken":
			return web.Page{}, errors.New("the hub has gone")
		}
		return web.Page{Status: 404, Headers: map[string]string{"Content-Type": "text/plain"}, Body: []byte("none: " + path)}, nil
	}}
	if capture {
		o.Report = func(_ context.Context, r web.Report) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reports = append(w.reports, r)
			return nil
		}
	}
	w.web = web.New(o)
	w.address, w.origin = w.web.Address(), w.web.Origin()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) { // browsers resolve names under .localhost to loopback
		return new(net.Dialer).DialContext(ctx, network, at.Host)
	}
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	w.browser = &http.Client{Jar: jar, Transport: transport}
	server.Start()
	t.Cleanup(func() { w.web.End(); server.Close() })
	return w
}

// do sends a request and returns the status and the body.
func (w *world) do(method, path, body string, headers ...string) (status int, text string) {
	w.t.Helper()
	r, err := http.NewRequest(method, w.origin+path, strings.NewReader(body))
	require.NoError(w.t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := w.browser.Do(r)
	require.NoError(w.t, err)
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	require.NoError(w.t, err)
	return answer.StatusCode, string(read)
}

func (w *world) open() string {
	w.t.Helper()
	status, text := w.do("GET", strings.TrimPrefix(w.address, w.origin), "")
	require.Equal(w.t, 200, status)
	return text
}

func TestPagesNeedToken(t *testing.T) {
	w := newWorld(t, true)
	for _, path := range []string{"/", "/.duet/page.js", "/.duet/told?after=0", "/.duet/open", "/.duet/open?token=", "/.duet/open?token=X"} {
		status, _ := w.do("GET", path, "")
		assert.Equal(t, 403, status, path)
	}
	status, _ := w.do("POST", "/.duet/report", "[]")
	assert.Equal(t, 403, status)
	assert.Contains(t, w.open(), "home /")
	token := w.address[strings.Index(w.address, "/.duet"):]
	for _, host := range []string{"evil.example", "other.localhost", "localhost", "[::1]", "x." + hostOf(t, w.origin)} {
		for _, path := range []string{"/", token} { // a name that resolves to this machine (DNS rebinding)
			status, _ = w.do("GET", path, "", "Host", host+":"+portOf(t, w.origin))
			assert.Equal(t, 421, status, host)
		}
	}
	status, _ = w.do("GET", "/", "", "Host", "127.0.0.1:1")
	assert.Equal(t, 421, status)
	for want, headers := range map[int][][]string{
		200: {{"Sec-Fetch-Site", "none"}, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, {"Origin", w.origin}},
		403: {{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, {"Origin", "http://127.0.0.1:1"}, {"Origin", "null"}},
	} {
		for _, h := range headers {
			status, _ := w.do("GET", "/", "", h...)
			assert.Equal(t, want, status, "%v", h)
		}
	}
}

// Cookies ignore ports, so the preview has its own host name.
func TestCookieStaysWithPreview(t *testing.T) {
	w := newWorld(t, false)
	assert.Regexp(t, `^http://[a-z0-9]{26}\.localhost:[0-9]+$`, w.origin)
	assert.NotEqual(t, w.origin, newWorld(t, false).origin)
	w.open()
	for origin, want := range map[string]int{w.origin: 1, "http://127.0.0.1:" + portOf(t, w.origin): 0, "http://127.0.0.1:1": 0, "http://localhost:1": 0, "http://other.localhost:1": 0} {
		at, err := url.Parse(origin + "/")
		require.NoError(t, err)
		assert.Len(t, w.browser.Jar.Cookies(at), want, origin)
	}
}

// A browser that does not resolve names under .localhost may use 127.0.0.1.
func TestLoopbackAddressWorks(t *testing.T) {
	w := newWorld(t, true)
	w.origin, w.address = "http://127.0.0.1:"+portOf(t, w.origin), "http://127.0.0.1:"+portOf(t, w.origin)+strings.TrimPrefix(w.address, w.origin)
	status, _ := w.do("GET", "/", "")
	assert.Equal(t, 403, status)
	assert.Contains(t, w.open(), "home /")
	status, _ = w.do("POST", "/.duet/report", `[{"method":"error","params":{"message":"m","url":"`+w.origin+`/a"}}]`, "Origin", w.origin)
	assert.Equal(t, 204, status)
	assert.Equal(t, "/a", w.reports[0].Params["url"])
}

func hostOf(t *testing.T, origin string) string {
	t.Helper()
	u, err := url.Parse(origin)
	require.NoError(t, err)
	return u.Hostname()
}

func portOf(t *testing.T, origin string) string {
	t.Helper()
	u, err := url.Parse(origin)
	require.NoError(t, err)
	return u.Port()
}

func TestPages(t *testing.T) {
	w := newWorld(t, false)
	assert.Equal(t, "<!doctype html><HEAD lang=x><p>home /", w.open(), "as it is")
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/?a=b": {200, "<!doctype html><HEAD lang=x><p>home /?a=b"}, "/refused": {400, "refused\n"}, "/broken": {502, "the hub has gone\n"}, "/%2e%2e/x": {404, "none: /%2e%2e/x"},
		"/.duet/page.js": {404, "none: /.duet/page.js"},
	} {
		status, text := w.do("GET", path, "")
		assert.Equal(t, want.status, status, path)
		assert.Equal(t, want.text, text, path)
	}
	status, text := w.do("HEAD", "/", "")
	assert.Equal(t, 200, status)
	assert.Empty(t, text)
	status, _ = w.do("POST", "/.duet/report", "[]")
	assert.Equal(t, 405, status)
}

func TestPageReports(t *testing.T) {
	w := newWorld(t, true)
	assert.Equal(t, `<!doctype html><HEAD lang=x><script src="/.duet/page.js?after=0" data-line="1"></script><p>home /`, w.open())
	_, bare := w.do("GET", "/bare", "")
	assert.Equal(t, `<script src="/.duet/page.js?after=0" data-line="1"></script><header>`, bare)
	_, missing := w.do("GET", "/%2e%2e/x&y", "", "Sec-Fetch-Mode", "navigate")
	assert.Equal(t, `<!doctype html><script src="/.duet/page.js?after=0" data-line="1"></script><pre>none: /%2e%2e/x&amp;y</pre>`, missing)
	_, missing = w.do("GET", "/%2e%2e/x.js", "")
	assert.Equal(t, "none: /%2e%2e/x.js", missing, "a part of a page")
	_, script := w.do("GET", "/.duet/page.js", "")
	assert.Contains(t, script, "unhandledrejection")
	status, _ := w.do("POST", "/.duet/report", `[{"method":"console","params":{"level":"warn","message":"m `+w.origin+`/","url":"/","session_id":"another's"}},
		{"method":"error","params":{"message":"no `+w.origin+`/x.png","stack":"at `+w.origin+`/app.js:1:2\n`+w.origin+`/b.js","url":"`+w.origin+`/app.js?v","line":1,"column":2}}, {"method":"updateNavigationState","params":{"url":"/a","title":"t"}}]`)
	assert.Equal(t, 204, status)
	want := []web.Report{
		{Method: "preview.console", Params: map[string]any{"level": "warn", "message": "m /", "url": "/"}},
		{Method: "preview.error", Params: map[string]any{"message": "no /x.png", "stack": "at /app.js:1:2\n/b.js", "url": "/app.js?v", "line": 1, "column": 2}},
		{Method: "preview.navigated", Params: map[string]any{"url": "/a", "title": "t"}},
	}
	assert.Equal(t, want, w.reports)
	for _, body := range []string{"", "{}", `[{"method":"launchSession"}]`, "[" + strings.Repeat(" ", 3<<20) + "]", "[" + strings.Repeat(`{"method":"console"},`, 100) + `{"method":"console"}]`} {
		status, _ := w.do("POST", "/.duet/report", body)
		assert.Equal(t, 400, status, "%.40s", body)
	}
	assert.Len(t, w.reports, 3)
}

// nextEvent reads the next event that a page receives, as two lines.
func nextEvent(t *testing.T, lines *bufio.Scanner) (event string) {
	t.Helper()
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: ") {
			event = strings.TrimPrefix(lines.Text(), "event: ")
			require.True(t, lines.Scan())
			return event + " " + strings.TrimPrefix(lines.Text(), "data: ")
		}
	}
	t.Fatal("nothing was told: ", lines.Err())
	return ""
}

func TestPagesReceiveCommands(t *testing.T) {
	w := newWorld(t, true)
	w.open()
	page := func(after string, headers ...string) *bufio.Scanner {
		r, err := http.NewRequestWithContext(t.Context(), "GET", w.origin+"/.duet/told?after="+after, nil)
		require.NoError(t, err)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := w.browser.Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { answer.Body.Close() })
		assert.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
		lines := bufio.NewScanner(answer.Body)
		require.True(t, lines.Scan(), "it is there")
		return lines
	}
	first := page("0")
	w.web.Navigate("/a?b=\n")
	assert.Equal(t, `navigate "/a?b=\n"`, nextEvent(t, first))
	w.web.Refresh()
	assert.Equal(t, "refresh now", nextEvent(t, first))

	late := page("1") // it was loaded before that, and subscribes only now
	assert.Equal(t, "refresh now", nextEvent(t, late))
	next, again := page("2"), page("0", "Last-Event-ID", "2")
	w.web.Navigate("/c")
	for _, p := range []*bufio.Scanner{first, late, next, again} {
		assert.Equal(t, `navigate "/c"`, nextEvent(t, p))
	}
	_, text := w.do("GET", "/", "")
	assert.Contains(t, text, "?after=3")
	status, _ := w.do("GET", "/.duet/told", "")
	assert.Equal(t, 400, status)
}
