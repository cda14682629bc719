// Package web serves one page for all projects of a user to the browsers of paired devices: the inbox, the sessions, a conversation,
// its changes and a prompt box. The page is that of the panel in VS Code (vscode/src/webview). It is a client of the daemons like any
// other, and each of its requests passes through this process, which refuses what a device may not do.
//
// docs/web.md is for users; docs/security.md says what it keeps out.
package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Options are the options of a [Server].
type Options struct {
	Address
	Version string
	Source  Source
	Notify  Notify
	Log     *slog.Logger
	// Say shows the user of the terminal a line.
	Say func(text string)
	// Rest, if set, is called when no page has been open for a while: a good time to return memory to the system.
	Rest func()
}

const (
	mostPages      = 8   // of one device at once
	mostSockets    = 256 // of all devices
	looksAtDevices = 250 * time.Millisecond
	headerWithin   = 5 * time.Second
	longestBody    = 64 << 10
	restsAfter     = 2 * time.Second
	cookieLasts    = 400 * 24 * time.Hour // the longest that browsers keep one
)

// A Server serves the page. It may be used by any goroutine.
type Server struct {
	opts     Options
	log      *slog.Logger
	names    *names
	listener net.Listener
	devices  *Devices
	projects *projects
	guesses  guesses
	pusher   *pusher
	ctx      context.Context // of Serve

	pages sync.WaitGroup // those that are open

	mu      sync.Mutex // guards the fields below
	open    map[*connection]struct{}
	ended   bool        // no page may come any more
	resting *time.Timer // nil: none was set yet
}

// Listen opens the listener of a server. The error says what to do.
func Listen(ctx context.Context, devices *Devices, o Options) (*Server, error) {
	listener, names, err := o.listen(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), names: names, listener: listener, devices: devices, open: map[*connection]struct{}{},
	}
	s.projects = newProjects(o.Source, s.log)
	s.pusher = newPusher(devices, o.Notify, s.log, names)
	s.projects.changed = func() {
		s.tellAll("web.projects", map[string]any{"projects": s.projects.list()})
		s.mu.Lock()
		defer s.mu.Unlock()
		s.restSoonLocked()
	}
	s.projects.asks = func() {
		inbox := s.projects.inbox()
		s.tellAll("web.inbox", map[string]any{"questions": inbox})
		s.pusher.asked(inbox, s.projects.wereAsked(), s.projects.nameOf)
	}
	return s, nil
}

// URL is the address for a browser. Reachable reports whether other machines can open it.
func (s *Server) URL() string { return s.names.URL() }

// Reachable reports whether other machines can open the address.
func (s *Server) Reachable(ctx context.Context) bool { return s.names.reachable(ctx) }

// Serve serves until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.ctx = ctx
	var running sync.WaitGroup
	defer func() {
		cancel()
		s.mu.Lock()
		s.ended = true
		if s.resting != nil {
			s.resting.Stop()
		}
		s.mu.Unlock()
		s.pages.Wait()
		running.Wait()
		s.projects.following.Wait()
	}()
	running.Go(func() { s.projects.run(ctx) })
	running.Go(func() { s.pusher.run(ctx) })
	h := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerWithin, ReadTimeout: writesIn, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(discard{}, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
	}
	running.Go(func() {
		<-ctx.Done()
		within, stop := context.WithTimeout(context.WithoutCancel(ctx), closeLasts)
		defer stop()
		_ = h.Shutdown(within)
		_ = h.Close()
	})
	err := h.Serve(newLimited(s.listener))
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// discard drops what net/http logs of peers: their bytes do not belong into a log.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// handler returns the handler of all requests.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /connect", s.serveConnect)
	mux.HandleFunc("POST /pair", s.servePair)
	mux.HandleFunc("POST /decide", s.serveDecide)
	mux.HandleFunc("GET /", serveAsset)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		for name, value := range securityHeaders {
			header.Set(name, value)
		}
		if s.names.isSecure() {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !s.names.allows(r.Host) {
			http.Error(w, "This server does not have the name "+fmt.Sprintf("%.100q", r.Host)+".", http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// securityHeaders go with every answer. The page has no inline script or style, and loads nothing from elsewhere.
var securityHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), microphone=(), geolocation=()",
}

// isOwnPage refuses a request that does not come from a page of this server. Browsers name the origin with every one that changes
// something.
func (s *Server) isOwnPage(w http.ResponseWriter, r *http.Request) bool {
	if s.names.allowsOrigin(r.Header.Get("Origin")) {
		return true
	}
	s.log.Warn("a page of another site sent a request", "origin", fmt.Sprintf("%.100q", r.Header.Get("Origin")), "path", r.URL.Path)
	answer(w, http.StatusForbidden, map[string]string{"error": "this request does not come from a page of this server"})
	return false
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the peer may have gone
}

// cookieName is one that no other host and, with TLS, no unencrypted page can set.
func (s *Server) cookieName() string {
	if s.names.isSecure() {
		return "__Host-duet"
	}
	return "duet-" + s.names.port
}

// device returns the device of a request.
func (s *Server) device(r *http.Request) (Device, error) {
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return Device{}, ErrNoDevice
	}
	return s.devices.WithCookie(cookie.Value)
}

type pairRequest struct {
	Code string `json:"code"`
	Name string `json:"name"`
}

func (s *Server) servePair(w http.ResponseWriter, r *http.Request) {
	if !s.isOwnPage(w, r) {
		return
	}
	var p pairRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestBody)).Decode(&p); err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"error": "the request has no code"})
		return
	}
	now := time.Now()
	if left := s.guesses.blockedFor(now); left > 0 {
		answer(w, http.StatusTooManyRequests, map[string]string{
			"error": fmt.Sprintf("too many wrong codes: no device is paired for %d more seconds", int(left.Seconds())+1),
		})
		return
	}
	device, cookie, key, err := s.devices.Pair(p.Code, p.Name, now)
	switch {
	case errors.Is(err, ErrWrongCode):
		if s.guesses.wrongCode(now) {
			text := fmt.Sprintf("%d wrong codes: no device is paired for %d minutes", mostGuesses, int(blockLasts.Minutes()))
			s.log.Warn(text, "from", r.RemoteAddr)
			s.say(text)
		}
		answer(w, http.StatusForbidden, map[string]string{"error": err.Error()})
		return
	case err != nil:
		s.log.Error("a device cannot be paired", "err", err)
		answer(w, http.StatusInternalServerError, map[string]string{"error": err.Error()})
		return
	}
	s.guesses.rightCode()
	s.log.Info("a device was paired", "device", device.Name)
	s.say("Paired: " + device.Name)
	http.SetCookie(w, &http.Cookie{
		Name: s.cookieName(), Value: cookie, Path: "/", MaxAge: int(cookieLasts.Seconds()), HttpOnly: true, Secure: s.names.isSecure(),
		SameSite: http.SameSiteStrictMode,
	})
	answer(w, http.StatusOK, map[string]any{"key": key, "device": deviceInfo{device.ID, device.Name}})
}

func (s *Server) say(text string) {
	if s.opts.Say != nil {
		s.opts.Say(text)
	}
}

func (s *Server) serveConnect(w http.ResponseWriter, r *http.Request) {
	if !s.isOwnPage(w, r) {
		return
	}
	device, failed := s.device(r)
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify:   true, // isOwnPage is stricter, and knows the proxy
		CompressionMode:      websocket.CompressionNoContextTakeover,
		CompressionThreshold: 2 << 10, // a delta is not worth it
	})
	if err != nil {
		return // the answer says why
	}
	defer ws.CloseNow()
	if failed != nil {
		// A page cannot read the status of a WebSocket's refusal.
		code, reason := closeUnpaired, "this browser is not paired"
		if !errors.Is(failed, ErrNoDevice) {
			code, reason = websocket.StatusInternalError, "the devices cannot be read"
			s.log.Error("the devices cannot be read", "err", failed)
		}
		_ = ws.Close(code, reason)
		return
	}
	s.connect(s.ctx, ws, device)
}

// join counts a page, and reports whether there is room for it.
func (s *Server) join(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	pages := 0
	for other := range s.open {
		if other.id == c.id {
			pages++
		}
	}
	if pages >= mostPages || len(s.open) >= mostSockets || s.ended {
		return false
	}
	s.pages.Add(1)
	s.open[c] = struct{}{}
	return true
}

func (s *Server) leave(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	s.pages.Done()
	s.restSoonLocked()
}

// restSoonLocked returns memory to the system when no page has come for a while.
func (s *Server) restSoonLocked() {
	if s.opts.Rest == nil || len(s.open) > 0 {
		return
	}
	if s.resting == nil {
		s.resting = time.AfterFunc(restsAfter, func() {
			s.mu.Lock()
			isIdle := len(s.open) == 0
			s.mu.Unlock()
			if isIdle {
				s.opts.Rest()
			}
		})
		return
	}
	s.resting.Reset(restsAfter)
}

// tellAll sends a notification to all pages.
func (s *Server) tellAll(method string, params any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.tellSoon(method, params)
	}
}

func (s *Server) noteSeen(device Device) {
	if err := s.devices.saw(device, time.Now()); err != nil && !errors.Is(err, ErrNoDevice) {
		s.log.Warn("it cannot be noted that a device was seen", "err", err)
	}
}

type decideRequest struct {
	Project     string `json:"project"`
	Approval    string `json:"approval"`
	Fingerprint string `json:"fingerprint"`
	Decision    string `json:"decision"`
}

// serveDecide answers a question from a notification, of which the service worker knows no more than the push message had.
func (s *Server) serveDecide(w http.ResponseWriter, r *http.Request) {
	if !s.isOwnPage(w, r) {
		return
	}
	device, err := s.device(r)
	if err != nil || !device.Key.matches(r.Header.Get("Duet-Key")) {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "this browser is not paired"})
		return
	}
	var p decideRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestBody)).Decode(&p); err != nil || p.Fingerprint == "" {
		answer(w, http.StatusBadRequest, map[string]string{"error": "the request does not name a question that was shown"})
		return
	}
	if p.Decision != "approve" && p.Decision != "deny" || device.Push == nil || !device.Push.Answers {
		answer(w, http.StatusForbidden, map[string]string{"error": "this device does not answer in notifications"})
		return
	}
	result, err := s.decide(r.Context(), device, p)
	if err != nil {
		answer(w, http.StatusOK, map[string]any{"success": false, "error": err.Error()})
		return
	}
	answer(w, http.StatusOK, result)
}

// deniedInNotification is the reason of a denial for which its user wrote none.
const deniedInNotification = "denied in a notification"

func (s *Server) decide(ctx context.Context, device Device, p decideRequest) (json.RawMessage, error) {
	place, ok := s.projects.place(p.Project)
	if !ok {
		return nil, errors.New("there is no such project")
	}
	to, err := s.opts.Source.Dial(ctx, place)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	params := map[string]string{"approval": p.Approval, "fingerprint": p.Fingerprint, "decision": p.Decision, "client": device.Name}
	if p.Decision == "deny" {
		params["comment"] = deniedInNotification
	}
	var result json.RawMessage
	return result, to.Call(ctx, "approval.decide", params, &result)
}
