package handlers

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/preview"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerPreview registers what clients that show the pages of a project call (application
// boundaries).
func registerPreview(reg *server.Registry, d Domain) {
	p := &previews{watchers: make(map[*server.Conn]*preview.Watcher)}
	f := boundaryFamily
	const within = " An address is a path, such as /index.html, or a whole URL of origin; what leads elsewhere is the error -32006."
	handle(reg, d, f, "fetch", p.fetch, server.LongRunning(),
		server.Doc("Reads what an address of the preview has: a file of the directory of [preview], the index.html of a directory in it, or the first index.html for an address without extension that no file has."+
			" What is not there has the status 404; where nothing can be shown, the error is -32005."+within+" Whoever calls it shows the preview, and is told where to go: notifications navigate {url} and refresh {}."))
	handle(reg, d, f, "navigate", p.navigate, server.LongRunning(),
		server.Doc("Has all clients that show the preview go to an address, once it is known that there is something."+within))
	handle(reg, d, f, "refresh", p.refresh, server.Doc("Has all clients that show the preview load it again."))
	const kept = " It is kept with a session, so that an agent can be asked about it (listPageMessages). The last thousand messages are; of those that come faster than 20 a second, beyond the first hundred, only how many they were."
	handle(reg, d, f, "console", p.console, server.Doc("Tells what a page has written to its console; a notification or a request."+kept))
	handle(reg, d, f, "error", p.pageError, server.Doc("Tells what has gone wrong in a page; a notification or a request."+kept))
	handle(reg, d, f, "updateNavigationState", p.navigated, server.Doc("Tells where a page is now; a notification or a request. Whoever calls it shows the preview, as with fetch."+kept))
	handle(reg, d, f, "listPageMessages", p.list, server.Doc("Lists what pages of the preview have said, the oldest first."))
}

// previews are the connections that watch previews.
type previews struct {
	mu       sync.Mutex // guards the field below
	watchers map[*server.Conn]*preview.Watcher
}

// watcher is that of the connection, which is made if need be; nil where it is ending.
func (p *previews) watcher(ctx context.Context, h *hub.Hub) *preview.Watcher {
	conn := server.ConnFrom(ctx)
	if conn == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watchers[conn]; w != nil {
		return w
	}
	w := h.Preview().Watch()
	started := conn.Go(func(ctx context.Context) {
		defer h.Preview().Leave(w)
		defer p.drop(conn)
		for {
			select {
			case told := <-w.C:
				if tellPreview(ctx, conn, told) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	if !started {
		h.Preview().Leave(w)
		return nil
	}
	p.watchers[conn] = w
	return w
}

func (p *previews) drop(conn *server.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watchers, conn)
}

func tellPreview(ctx context.Context, conn *server.Conn, t preview.Told) error {
	switch {
	case t.Said != nil:
		return conn.Notify(ctx, "pageMessage", pageMessageOf(*t.Said))
	case t.Refresh:
		return conn.Notify(ctx, "refresh", struct{}{})
	}
	return conn.Notify(ctx, "navigate", map[string]string{"url": t.Navigate})
}

// shows notes that the connection shows the preview.
func (p *previews) shows(ctx context.Context, h *hub.Hub) {
	if w := p.watcher(ctx, h); w != nil {
		h.Preview().Shows(w)
	}
}

type addressParams struct {
	URL    string `json:"url" doc:"A path, with a query if need be."`
	Origin string `json:"origin,omitempty" doc:"Where the client shows the preview, such as http://127.0.0.1:8080: whole URLs that begin so are paths, too."`
}

type fetchResult struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body" doc:"In base64. What does not fit into a message is the error -32005: of frames files of 6 MiB fit, of lines those of 700 KiB."`
}

func (p *previews) fetch(ctx context.Context, h *hub.Hub, a addressParams) (fetchResult, error) {
	p.shows(ctx, h)
	const envelope = 2048 // what stands around the body
	most := max(base64.StdEncoding.DecodedLen(max(room(ctx)-envelope, 0))-3, 1)
	r, err := h.Preview().Fetch(ctx, a.URL, a.Origin, most)
	if err != nil {
		return fetchResult{}, err
	}
	return fetchResult{r.Status, r.Headers, base64.StdEncoding.EncodeToString(r.Body)}, nil
}

type shownResult struct {
	URL   string `json:"url,omitempty" doc:"As clients are told it."`
	Shown int    `json:"shown" doc:"How many clients were told."`
}

func (p *previews) navigate(ctx context.Context, h *hub.Hub, a addressParams) (shownResult, error) {
	url, n, err := h.Preview().Navigate(ctx, a.URL, a.Origin)
	return shownResult{url, n}, err
}

func (p *previews) refresh(_ context.Context, h *hub.Hub, _ none) (shownResult, error) {
	return shownResult{Shown: h.Preview().Refresh()}, nil
}

// ofSession says to which session something belongs that a page has said.
type ofSession struct {
	SessionID string `json:"session_id,omitempty" doc:"A session that it is kept with, by any id; absent: the one that was begun last."`
}

type consoleParams struct {
	Level   string            `json:"level,omitempty" doc:"log, debug, info, warn or error; absent: log."`
	Message string            `json:"message,omitempty" doc:"What was written, as one text."`
	Args    []json.RawMessage `json:"args,omitempty" doc:"What was written, where there is no message: texts as they are, other values as JSON."`
	URL     string            `json:"url,omitempty" doc:"Of the page."`
	Line    int               `json:"line,omitempty" doc:"Of the script; 1 is the first."`
	Column  int               `json:"column,omitempty" doc:"Within the line; 1 is the first."`
	ofSession
}

type pageErrorParams struct {
	Message string `json:"message" doc:"What is wrong."`
	Stack   string `json:"stack,omitempty" doc:"Where it was, line by line."`
	URL     string `json:"url,omitempty" doc:"Of the script, or the page."`
	Source  string `json:"source,omitempty" doc:"The same under another name."`
	Line    int    `json:"line,omitempty" doc:"1 is the first."`
	Column  int    `json:"column,omitempty" doc:"Within the line; 1 is the first."`
	ofSession
}

type navigationParams struct {
	URL   string `json:"url" doc:"Where the page is now."`
	Title string `json:"title,omitempty" doc:"Of the page."`
	ofSession
}

type keptResult struct {
	Kept bool `json:"kept" doc:"Not, where pages say too much."`
}

func (p *previews) console(ctx context.Context, h *hub.Hub, c consoleParams) (keptResult, error) {
	text := c.Message
	if text == "" {
		parts := make([]string, 0, len(c.Args))
		for _, arg := range c.Args {
			var s string
			if json.Unmarshal(arg, &s) != nil {
				s = string(arg)
			}
			parts = append(parts, s)
		}
		text = strings.Join(parts, " ")
	}
	return say(ctx, h, c.ofSession, domain.PageMessage{Kind: domain.PageConsole, Level: cmp.Or(c.Level, "log"), Text: text, URL: c.URL, Line: c.Line, Column: c.Column})
}

func (p *previews) pageError(ctx context.Context, h *hub.Hub, e pageErrorParams) (keptResult, error) {
	return say(ctx, h, e.ofSession, domain.PageMessage{Kind: domain.PageError, Text: e.Message, Stack: e.Stack, URL: cmp.Or(e.URL, e.Source), Line: e.Line, Column: e.Column})
}

func (p *previews) navigated(ctx context.Context, h *hub.Hub, n navigationParams) (keptResult, error) {
	p.shows(ctx, h)
	return say(ctx, h, n.ofSession, domain.PageMessage{Kind: domain.PageNavigation, Text: n.Title, URL: n.URL})
}

func say(ctx context.Context, h *hub.Hub, s ofSession, m domain.PageMessage) (keptResult, error) {
	kept, err := h.Preview().Say(ctx, s.SessionID, m)
	return keptResult{kept}, err
}

type pageMessagesParams struct {
	SessionID string `json:"session_id,omitempty" doc:"Only what is kept with a session, or with a conversation, by any id."`
	Problems  bool   `json:"problems,omitempty" doc:"Only errors, and what was written to the console at the levels warn and error."`
	AfterID   int64  `json:"after_id,omitempty" doc:"Only messages with a higher id."`
	Limit     uint   `json:"limit,omitempty" doc:"The last ones; absent: 100, 1000 at most."`
	Follow    *bool  `json:"follow,omitempty" doc:"Whether the connection is told what pages say from now on, by notifications pageMessage, which are as the messages here; absent: as before. One that was told already comes again when it was said again."`
}

// A pageMessage is what a page has said, as clients see it.
type pageMessage struct {
	ID        int64  `json:"id"`
	Kind      string `json:"kind" doc:"console, error or navigation."`
	Level     string `json:"level,omitempty" doc:"Of console: log, debug, info, warn or error."`
	Message   string `json:"message" doc:"Of navigation: the title of the page."`
	URL       string `json:"url,omitempty"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	Stack     string `json:"stack,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Count     int    `json:"count" doc:"How often it was said, one after the other."`
	Time      string `json:"time" doc:"When it was said last."`
}

func pageMessageOf(m domain.PageMessage) pageMessage {
	return pageMessage{m.ID, m.Kind, m.Level, m.Text, m.URL, m.Line, m.Column, m.Stack, m.Session, m.Count, protocol.Timestamp(m.Time)}
}

type pageMessages struct {
	Messages []pageMessage `json:"messages"`
}

func (p *previews) list(ctx context.Context, h *hub.Hub, q pageMessagesParams) (pageMessages, error) {
	if q.Follow != nil {
		if w := p.watcher(ctx, h); w != nil {
			h.Preview().Hears(w, *q.Follow)
		}
	}
	list, err := h.Preview().Messages(ctx, q.SessionID, domain.PageFilter{Problems: q.Problems, After: q.AfterID, Limit: int(min(q.Limit, 1000))})
	out := pageMessages{[]pageMessage{}}
	for _, m := range list {
		out.Messages = append(out.Messages, pageMessageOf(m))
	}
	return out, err
}
