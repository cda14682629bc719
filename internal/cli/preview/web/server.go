// Package web serves a preview to a browser: each request is one to the hub.
package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// own is where a Server has what is its own. Files of that name are never shown.
const own = "/.duet/"

// A Page is what the hub has for an address.
type Page struct {
	Status  int
	Headers map[string]string
	Body    []byte
}

// A Report is what a page says: a method of the hub with its parameters.
type Report struct {
	Method string
	Params map[string]any
}

// A RefusedError is an address that the hub does not show, and why.
type RefusedError struct {
	Status int // of HTTP
	Text   string
}

func (e *RefusedError) Error() string { return e.Text }

// Options are what a Server needs.
type Options struct {
	Port  int // that the server listens on, on loopback addresses alone
	Fetch func(ctx context.Context, path string) (Page, error)
	// Report, if set, is told what pages say: each gets a script for that. It is called by
	// one request of a page after the other, and by those of several at once.
	Report func(context.Context, Report) error
}

// loopback is the host for browsers that do not find names under .localhost. Its cookies
// go to all servers on 127.0.0.1.
const loopback = "127.0.0.1"

// A Server answers the requests of a browser that has its token.
type Server struct {
	opts   Options
	token  string
	host   string // its own: browsers send its cookie to no other server of the machine
	cookie string // the cookie's name

	ended chan struct{} // closed by End

	mu    sync.Mutex // guards the fields below
	pages map[chan told]bool
	last  told // that pages were told
}

// New makes a Server.
func New(o Options) *Server {
	return &Server{opts: o, token: rand.Text(), host: strings.ToLower(rand.Text()) + ".localhost", cookie: "duet-preview-" + strconv.Itoa(o.Port), pages: make(map[chan told]bool), ended: make(chan struct{})}
}

// Address is where a person opens the preview: it has the token.
func (s *Server) Address() string {
	return s.Origin() + own + "open?" + url.Values{"token": {s.token}}.Encode()
}

func (s *Server) port() string { return strconv.Itoa(s.opts.Port) }

// Origin is what the addresses of the preview begin with: a host that no other server
// knows. Browsers themselves resolve names under .localhost to this machine.
func (s *Server) Origin() string { return s.originAt(s.host) }

func (s *Server) originAt(host string) string { return "http://" + net.JoinHostPort(host, s.port()) }

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	w.Header().Set("Referrer-Policy", "same-origin")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	// A name of another host may lead here (DNS rebinding): its pages are not to read these.
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
		s.tellOn(w, r)
	default:
		s.page(w, r)
	}
}

// open gives a browser that has the token a cookie.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(s.token)) != 1 {
		http.Error(w, "open the whole address that duet-rpc preview has printed", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: s.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// mayRead reports whether a request comes from a browser that has the token, and not for a
// page of somebody else, such as a server on another port.
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
	told := s.lastTold() // before the page is what it is
	page, err := s.opts.Fetch(r.Context(), r.URL.RequestURI())
	if err != nil {
		status := http.StatusBadGateway
		if refused, ok := err.(*RefusedError); ok {
			status = refused.Status
		}
		http.Error(w, err.Error(), status)
		return
	}
	for name, value := range page.Headers {
		w.Header().Set(name, value)
	}
	if s.opts.Report != nil && isHTML(page.Headers["Content-Type"]) {
		page.Body = withScript(page.Body, told)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(page.Body)))
	w.WriteHeader(page.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(page.Body)
	}
}

// mostReport bounds what a page says at once, in bytes; of a text of 8,000 characters each
// may take six.
const mostReport = 2 << 20

// said is what the script sends.
type said struct {
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

// report passes on what a page says, with the parameters that are known alone.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	var list []said
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostReport)).Decode(&list); err != nil || len(list) > 100 {
		http.Error(w, "this is nothing that a page says", http.StatusBadRequest)
		return
	}
	for _, one := range list {
		p := one.Params
		report := Report{Method: one.Method}
		switch one.Method {
		case "console":
			report.Params = map[string]any{"level": p.Level, "message": s.short(p.Message), "url": s.short(p.URL)}
		case "error":
			report.Params = map[string]any{"message": s.short(p.Message), "stack": s.short(p.Stack), "url": s.short(p.URL), "line": p.Line, "column": p.Column}
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

// short is a text with the addresses of the preview as paths: its host is another one at
// each start, and concerns nobody who reads the text.
func (s *Server) short(text string) string {
	return strings.NewReplacer(s.Origin()+"/", "/", s.originAt(loopback)+"/", "/").Replace(text)
}
