package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// Codes of errors of the server itself; those of daemons pass unchanged.
const (
	codeRefused = -32051 // as native methods have it
	codeLost    = -32042 // as an editor's process has it
	codeNoHub   = -32052
)

// answersWithin is how long a daemon may take to answer a device. Some methods wait for an agent.
const answersWithin = 5 * time.Minute

// A connection is a page of a device that is connected.
type connection struct {
	server *Server
	id     string // of the device
	conn   *server.Conn
	ctx    context.Context // ends with it
	end    func(code websocket.StatusCode, reason string)

	mu      sync.Mutex // guards the fields below
	device  Device
	greeted bool // the page has shown its key
	links   map[string]*link
	streams map[string]*eventstream.Subscription
	lastID  int
	lists   map[string]any // notifications that wait, by method: each has a whole list, so that a later one replaces it
	waiting chan struct{}  // has a value while lists may have some
}

// A link is a page's connection to the daemon of a project.
type link struct {
	opening chan struct{} // closed when client or err is set
	client  *client.Client
	err     error
}

// connect serves a page of a device on a WebSocket until that ends.
func (s *Server) connect(ctx context.Context, ws *websocket.Conn, device Device) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &connection{
		server: s, id: device.ID, device: device, ctx: ctx, links: map[string]*link{}, streams: map[string]*eventstream.Subscription{},
		lists: map[string]any{}, waiting: make(chan struct{}, 1),
		end: func(code websocket.StatusCode, reason string) {
			_ = ws.Close(code, reason) // it waits for the page's own
			cancel()
		},
	}
	if !s.join(c) {
		c.end(websocket.StatusTryAgainLater, "this device has too many pages open")
		return
	}
	defer s.leave(c)
	defer c.close()
	go c.watch()
	go c.tellLists()
	srv := server.New(c.methods(), server.Options{
		Limits: frame.Limits{}, MaxLine: mostRead, Logger: s.log, MaxLongRunning: 64,
	})
	serveSocket(ctx, ws, srv)
}

// watch ends the connection when its device was removed.
func (c *connection) watch() {
	for isAliveAfter(c.ctx, looksAtDevices) {
		now, err := c.server.devices.WithID(c.id)
		switch {
		case errors.Is(err, ErrNoDevice):
			c.mu.Lock()
			// At once: a page may take its time to close.
			c.device, c.greeted, c.conn = Device{}, false, nil
			c.mu.Unlock()
			c.end(closeRemoved, "this device was removed")
			return
		case err == nil:
			c.mu.Lock()
			c.device = now
			c.mu.Unlock()
		}
	}
}

func (c *connection) close() {
	c.mu.Lock()
	links := c.links
	c.links = nil
	c.mu.Unlock()
	for _, l := range links {
		<-l.opening
		if l.client != nil {
			l.client.Close()
		}
	}
}

// methods returns the methods for the page.
func (c *connection) methods() *server.Registry {
	reg := server.NewRegistry()
	server.Handle(reg, "web.hello", c.hello)
	own(reg, c, "web.sessions", c.sessions)
	own(reg, c, "web.rename", c.rename)
	own(reg, c, "web.leave", c.leave)
	own(reg, c, "web.push.set", c.setPush)
	own(reg, c, "web.push.test", c.testPush)
	for method := range allowed {
		server.HandleRaw(reg, method, func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
			return c.pass(ctx, method, params)
		}, server.LongRunning())
	}
	own(reg, c, "event.subscribe", c.subscribe)
	return reg
}

// own registers a method of the server itself, for a page that has shown its key.
func own[P, R any](reg *server.Registry, c *connection, name string, h func(context.Context, P) (R, error)) {
	server.Handle(reg, name, func(ctx context.Context, params P) (result R, err error) {
		if err := c.mayCall(); err != nil {
			return result, err
		}
		return h(ctx, params)
	}, server.LongRunning())
}

func refusal(kind, format string, args ...any) *jsonrpc2.Error {
	return server.NewError(codeRefused, fmt.Sprintf(format, args...), map[string]string{"kind": kind})
}

func (c *connection) mayCall() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.greeted {
		return refusal("not_paired", "this page has not shown its key: begin with web.hello")
	}
	return nil
}

type empty struct{}

type helloParams struct {
	Key string `json:"key"`
}

// A deviceInfo is a device, for its own page.
type deviceInfo struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type helloResult struct {
	Device   deviceInfo `json:"device"`
	Version  string     `json:"version"`
	Projects []Project  `json:"projects"`
	Inbox    []Question `json:"inbox"`
	Push     pushInfo   `json:"push"`
}

// hello checks the page's key, and begins to send it what changes.
func (c *connection) hello(ctx context.Context, p helloParams) (helloResult, error) {
	c.mu.Lock()
	device := c.device
	c.mu.Unlock()
	if !device.Key.matches(p.Key) {
		c.server.log.Warn("a page has the cookie of a device and not its key", "device", device.Name)
		server.AfterReply(ctx, func() { go c.end(closeUnpaired, "this page has another key") })
		return helloResult{}, refusal("not_paired", "this page has another key: pair it again")
	}
	push, err := c.server.devices.pushInfo(device)
	if err != nil {
		return helloResult{}, err
	}
	c.mu.Lock()
	c.greeted, c.conn = true, server.ConnFrom(ctx)
	c.mu.Unlock()
	c.server.noteSeen(device)
	projects, inbox := c.server.projects.list(), c.server.projects.inbox()
	return helloResult{deviceInfo{device.ID, device.Name}, c.server.opts.Version, projects, inbox, push}, nil
}

// tellSoon sends a notification with a whole list when the page has read what came before. It does not wait.
func (c *connection) tellSoon(method string, list any) {
	c.mu.Lock()
	c.lists[method] = list
	c.mu.Unlock()
	select {
	case c.waiting <- struct{}{}:
	default:
	}
}

// tellLists sends the lists of tellSoon until the connection ends.
func (c *connection) tellLists() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.waiting:
		}
		c.mu.Lock()
		lists := c.lists
		if c.conn != nil {
			c.lists = map[string]any{}
		}
		c.mu.Unlock()
		for method, list := range lists {
			c.tell(method, list)
		}
	}
}

// tell sends a notification if the page has shown its key. It waits for a page that does not read.
func (c *connection) tell(method string, params any) {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, writesIn)
	defer cancel()
	_ = conn.Notify(ctx, method, params) // a page that has gone begins with web.hello again
}

type sessionsResult struct {
	Projects []projectSessions `json:"projects"`
}

func (c *connection) sessions(ctx context.Context, _ empty) (sessionsResult, error) {
	return sessionsResult{c.server.projects.sessions(ctx)}, nil
}

type renameParams struct {
	Name string `json:"name"`
}

func (c *connection) rename(_ context.Context, p renameParams) (renameParams, error) {
	name, err := c.server.devices.rename(c.id, p.Name)
	return renameParams{name}, err
}

// leave removes the page's device.
func (c *connection) leave(ctx context.Context, _ empty) (empty, error) {
	_, err := c.server.devices.Remove(c.id)
	return empty{}, err
}

// pass passes a request on to the daemon of its project.
func (c *connection) pass(ctx context.Context, method string, raw json.RawMessage) (json.RawMessage, error) {
	if err := c.mayCall(); err != nil {
		return nil, err
	}
	id, params, err := c.checked(method, raw)
	if err != nil {
		return nil, err
	}
	if method == "approval.decide" { // whatever name the page gives
		params["client"], _ = json.Marshal(c.name())
	}
	if method == "event.unsubscribe" {
		return c.unsubscribe(id, params)
	}
	return c.call(ctx, id, method, params)
}

// name is the device's name, for the people who see what it decided.
func (c *connection) name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.device.Name
}

// checked checks the parameters of a method of daemons. It returns the project, and the parameters without it.
func (c *connection) checked(method string, raw json.RawMessage) (project string, params map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(raw, &params); err != nil || params == nil {
		return "", nil, server.InvalidParam(server.ParamError{Param: "params", Expected: "an object", Received: "something else"})
	}
	if err := json.Unmarshal(params["project"], &project); err != nil || project == "" {
		return "", nil, server.InvalidParam(server.ParamError{Param: "project", Expected: "the id of a project", Received: "nothing of the kind"})
	}
	delete(params, "project")
	for name := range params {
		if accepted := allowed[method]; !slices.Contains(accepted, name) {
			return "", nil, server.NewError(codeRefused, fmt.Sprintf("%s: a device may not give %s", method, name),
				map[string]any{"kind": "not_allowed", "param": name, "accepted": accepted})
		}
	}
	return project, params, nil
}

// call calls a method of the daemon of a project.
func (c *connection) call(ctx context.Context, project, method string, params any) (json.RawMessage, error) {
	to, err := c.link(ctx, project)
	if err != nil {
		return nil, err
	}
	var result json.RawMessage
	if err := to.Call(ctx, method, params, &result, client.WithTimeout(answersWithin)); err != nil {
		return nil, wireError(err)
	}
	return result, nil
}

// wireError is the error of a call to a daemon, for the page.
func wireError(err error) error {
	var answer *client.Error
	var lost *client.DisconnectedError
	switch {
	case errors.As(err, &answer):
		e := &jsonrpc2.Error{Code: answer.Code, Message: answer.Message}
		if answer.Data != nil {
			e.Data = &answer.Data
		}
		return e
	case errors.As(err, &lost) && lost.Sent:
		return server.NewError(codeLost, "the daemon ended before it answered", map[string]any{"kind": "hub_lost", "retry": true})
	case errors.As(err, &lost), errors.Is(err, client.ErrClosed), errors.Is(err, client.ErrTimeout):
		return server.NewError(codeNoHub, "the daemon does not answer: "+err.Error(), map[string]string{"kind": "subsystem_unavailable"})
	}
	return server.NewError(codeNoHub, err.Error(), map[string]string{"kind": "subsystem_unavailable"})
}

// link returns the page's connection to the daemon of a project. It makes one at the first use, and starts the daemon if
// none runs.
func (c *connection) link(ctx context.Context, id string) (*client.Client, error) {
	place, ok := c.server.projects.place(id)
	if !ok {
		return nil, server.NewError(codeRefused, "there is no such project", map[string]string{"kind": "project_not_found"})
	}
	c.mu.Lock()
	if c.links == nil {
		c.mu.Unlock()
		return nil, wireError(client.ErrClosed)
	}
	l := c.links[id]
	if l == nil {
		l = &link{opening: make(chan struct{})}
		c.links[id] = l
		go c.open(id, place, l)
	}
	c.mu.Unlock()
	select {
	case <-l.opening:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.err != nil {
		return nil, wireError(l.err)
	}
	return l.client, nil
}

func (c *connection) open(id string, place Place, l *link) {
	defer close(l.opening)
	l.client, l.err = c.server.opts.Source.Dial(c.ctx, place)
	if l.err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.links, id) // the next request tries again
		return
	}
	c.server.projects.follow(c.server.ctx, place) // its daemon runs now
	l.client.OnState(func(state client.State) {
		switch state {
		case client.Connected:
			c.tell("web.trouble", troubleParams{id, nil})
		case client.Reconnecting:
			reason := "its daemon does not answer; trying again"
			if place.Host != "" {
				reason = "the line to " + place.Host + " broke; trying again"
			}
			c.tell("web.trouble", troubleParams{id, &reason})
		}
	})
}

type troubleParams struct {
	Project string  `json:"project"`
	Reason  *string `json:"reason"` // null: there is none any more
}

type subscribeParams struct {
	Project        string   `json:"project"`
	Kinds          []string `json:"kinds,omitempty"`
	Session        string   `json:"session"`
	Since          *int64   `json:"since,omitempty"`
	SubscriptionID string   `json:"subscription_id,omitempty"`
}

type subscribeResult struct {
	SubscriptionID string `json:"subscription_id"`
	Seq            int64  `json:"seq"`
}

// mostStreams are the subscriptions of a page.
const mostStreams = 16

// subscribe sends the page the events of a session, across daemons and broken lines, until the page ends it.
func (c *connection) subscribe(ctx context.Context, p subscribeParams) (subscribeResult, error) {
	if p.Session == "" {
		return subscribeResult{}, server.InvalidParam(server.ParamError{Param: "session", Expected: "a session", Received: "nothing"})
	}
	to, err := c.link(ctx, p.Project)
	if err != nil {
		return subscribeResult{}, err
	}
	c.mu.Lock()
	if len(c.streams) >= mostStreams {
		c.mu.Unlock()
		return subscribeResult{}, refusal("too_many_subscriptions", "a page has at most %d subscriptions", mostStreams)
	}
	c.lastID++
	id := p.SubscriptionID
	if _, taken := c.streams[id]; id == "" || taken || len(id) > 100 {
		id = fmt.Sprintf("web-%d", c.lastID)
	}
	c.streams[id] = nil // taken
	c.mu.Unlock()
	release := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.streams, id)
	}
	// An event may come before the reply; the page knows the subscription by then only if it chose the id.
	replied := make(chan struct{})
	server.AfterReply(ctx, func() { close(replied) })
	stream, err := eventstream.Subscribe(ctx, to, eventstream.Options{Kinds: p.Kinds, Session: p.Session, Since: p.Since}, func(e eventstream.Event) {
		select {
		case <-replied:
			c.tell("event", pageEvent{p.Project, id, e})
		case <-c.ctx.Done():
		}
	})
	if err != nil {
		release()
		return subscribeResult{}, wireError(err)
	}
	c.mu.Lock()
	c.streams[id] = stream
	c.mu.Unlock()
	return subscribeResult{id, stream.Begins()}, nil
}

// A pageEvent is an event of a daemon, for a page.
type pageEvent struct {
	Project        string `json:"project"`
	SubscriptionID string `json:"subscription_id"`
	eventstream.Event
}

func (c *connection) unsubscribe(_ string, params map[string]json.RawMessage) (json.RawMessage, error) {
	var id string
	_ = json.Unmarshal(params["subscription_id"], &id) // another type is no id
	c.mu.Lock()
	stream := c.streams[id]
	delete(c.streams, id)
	c.mu.Unlock()
	if stream == nil {
		return nil, server.NewError(codeRefused, "there is no such subscription", map[string]string{"kind": "subscription_not_found"})
	}
	return json.RawMessage(`{}`), stream.Close()
}
