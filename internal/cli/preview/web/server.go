// Package web serves a preview to a browser: each request is one to the hub.
package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed" // page.js
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// own is the path prefix of the server's own files. Project files below it are never shown.
const own = "/.duet/"

// Page is the hub's response for an address.
type Page struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"` // in base64
}

// Report is a message of a page: a method of the hub with its parameters.
type Report struct {
	Method string
	Params map[string]any
}

// RefusedError says that the hub does not show an address, and why.
type RefusedError struct {
	Status int // of HTTP
	Text   string
}

func (e *RefusedError) Error() string { return e.Text }

// Options configure a Server.
type Options struct {
	Port  int // the server listens only on loopback addresses
	Fetch func(ctx context.Context, path string) (Page, error)
	// Report, if set, receives the messages of pages; each page gets a script for that. Calls
	// for one page are sequential. Calls for several pages may be concurrent.
	Report func(context.Context, Report) error
}

// loopback is the host for browsers that do not resolve names under .localhost. Its cookies go
// to all servers on 127.0.0.1.
const loopback = "127.0.0.1"

// Server answers the requests of a browser that has its token.
type Server struct {
	opts   Options
	token  string
	host   string // unique, so that browsers send the cookie to no other local server
	cookie string // the cookie's name

	ended chan struct{} // closed by End

	mu    sync.Mutex // guards the fields below
	pages map[chan command]bool
	last  command // the latest command
}

// New returns a Server.
func New(o Options) *Server {
	return &Server{
		opts: o, token: rand.Text(), host: strings.ToLower(rand.Text()) + ".localhost", cookie: "duet-preview-" + strconv.Itoa(o.Port),
		pages: make(map[chan command]bool), ended: make(chan struct{}),
	}
}

// Address returns the URL that opens the preview, including the token.
func (s *Server) Address() string {
	return s.Origin() + own + "open?" + url.Values{"token": {s.token}}.Encode()
}

func (s *Server) port() string { return strconv.Itoa(s.opts.Port) }

// Origin returns the origin of the preview. Its host name is unique. Browsers resolve names
// under .localhost to this machine without DNS.
func (s *Server) Origin() string { return s.originAt(s.host) }

func (s *Server) originAt(host string) string { return "http://" + net.JoinHostPort(host, s.port()) }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	w.Header().Set("Referrer-Policy", "same-origin")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	// The name of another host may resolve to this machine (DNS rebinding). Pages of that host
	// must not read the preview.
	if host, port, err := net.SplitHostPort(r.Host); err != nil || port != s.port() || host != s.host && host != loopback {
		http.Error(w, "this preview has another address", http.StatusMisdirectedRequest)
		return
	}
	if r.URL.Path == own+"open" {
		s.open(w, r)
		return
	}
	if !s.mayRead(r) {
		http.Error(w, "open the whole address that duet-rpc preview has printed", http.StatusForbidden)
		return
	}
	switch {
	case r.Method == http.MethodPost && r.URL.Path == own+"report" && s.opts.Report != nil:
		s.report(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "a preview is only read", http.StatusMethodNotAllowed)
	case r.URL.Path == own+"page.js" && s.opts.Report != nil:
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write(script)
	case r.URL.Path == own+"told" && s.opts.Report != nil:
		s.streamCommands(w, r)
	default:
		s.page(w, r)
	}
}

// open sets the cookie of a browser that has the token.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(s.token)) != 1 {
		http.Error(w, "open the whole address that duet-rpc preview has printed", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: s.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// mayRead reports whether a request comes from a browser that has the token, and not from a
// third-party page, such as one of a server on another port.
func (s *Server) mayRead(r *http.Request) bool {
	cookie, err := r.Cookie(s.cookie)
	if err != nil || subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(s.token)) != 1 {
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	after := s.lastCommand() // before the page is read, so that no command is missed
	page, err := s.opts.Fetch(r.Context(), r.URL.RequestURI())
	if err != nil {
		status := http.StatusBadGateway
		if refused, ok := err.(*RefusedError); ok {
			status = refused.Status
		}
		page = Page{Status: status, Headers: map[string]string{"Content-Type": "text/plain; charset=utf-8"}, Body: []byte(err.Error() + "\n")}
	}
	for name, value := range page.Headers {
		w.Header().Set(name, value)
	}
	if s.opts.Report != nil && page.Status >= http.StatusBadRequest && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		// With the script, the browser loads the address again when a build has made the page.
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		page.Body = withScript([]byte("<!doctype html><pre>"+html.EscapeString(string(page.Body))+"</pre>"), after)
	} else if s.opts.Report != nil && isHTML(page.Headers["Content-Type"]) {
		page.Body = withScript(page.Body, after)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(page.Body)))
	w.WriteHeader(page.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(page.Body)
	}
}

// mostReport limits a report of a page, in bytes. It has room for a text of 8,000 characters
// of six bytes each.
const mostReport = 2 << 20

// pageMessage is the JSON that the script sends.
type pageMessage struct {
	Method string `json:"method"`
	Params struct {
		Level   string `json:"level"`
		Message string `json:"message"`
		Stack   string `json:"stack"`
		URL     string `json:"url"`
		Title   string `json:"title"`
		Line    int    `json:"line"`
		Column  int    `json:"column"`
	} `json:"params"`
}

// reports are the hub's methods for the messages of a page.
var reports = map[string]string{"console": "preview.console", "error": "preview.error", "updateNavigationState": "preview.navigated"}

// report forwards a message of a page, with known parameters only.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	var list []pageMessage
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostReport)).Decode(&list); err != nil || len(list) > 100 {
		http.Error(w, "this is nothing that a page says", http.StatusBadRequest)
		return
	}
	for _, one := range list {
		p := one.Params
		report := Report{Method: reports[one.Method]}
		switch one.Method {
		case "console":
			report.Params = map[string]any{"level": p.Level, "message": s.short(p.Message), "url": s.short(p.URL)}
		case "error":
			report.Params = map[string]any{
				"message": s.short(p.Message), "stack": s.short(p.Stack), "url": s.short(p.URL), "line": p.Line, "column": p.Column,
			}
		case "updateNavigationState":
			report.Params = map[string]any{"url": s.short(p.URL), "title": p.Title}
		default:
			http.Error(w, "this is nothing that a page says", http.StatusBadRequest)
			return
		}
		if err := s.opts.Report(r.Context(), report); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// short replaces the preview's origin in a text. The host differs at each start and does not
// help the reader.
func (s *Server) short(text string) string {
	return strings.NewReplacer(s.Origin()+"/", "/", s.originAt(loopback)+"/", "/").Replace(text)
}

//go:embed page.js
var script []byte

// begins find the position for the script: before the page's other scripts, and after tags
// that decide about the layout mode.
var begins = []func() *regexp.Regexp{
	lazyregexp.New(`(?i)<head(\s[^>]*)?>`), lazyregexp.New(`(?i)<html(\s[^>]*)?>`), lazyregexp.New(`(?i)^\s*<!doctype[^>]*>`),
}

// withScript inserts the script and the number of the latest command into a page.
func withScript(page []byte, after int64) []byte {
	at := 0
	for _, begin := range begins {
		if found := begin().FindIndex(page); found != nil {
			at = found[1]
			break
		}
	}
	scriptTag := fmt.Sprintf(`<script src="%spage.js?after=%d" data-line="%d"></script>`, own, after, 1+bytes.Count(page[:at], []byte("\n")))
	out := make([]byte, 0, len(page)+len(scriptTag))
	out = append(out, page[:at]...)
	out = append(out, scriptTag...)
	return append(out, page[at:]...)
}

func isHTML(contentType string) bool { return strings.HasPrefix(contentType, "text/html") }
