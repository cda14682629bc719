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

// registerPreview registers the methods of the noun preview, for clients that show the project's pages.
func registerPreview(reg *server.Registry, d Domain) {
	p := &previews{watchers: make(map[*server.Conn]*preview.Watcher)}
	f := nativeFamily
	const within = " An address is a path, such as /index.html, or a URL that begins with origin. Any other address is the error " +
		"`navigation_failed`."
	handle(reg, d, f, "preview.fetch", p.fetch, server.LongRunning(),
		server.Doc("Returns the content of a preview address: a file of the [preview] directory, or the index.html of a directory in it. An "+
			"address without extension that matches no file gets the first index.html."+
			" A missing file has the status 404. If there is nothing to show, the error is `preview_load_failed`."+within+" The caller then "+
			"counts as showing the preview, and gets the notifications navigate {url} and refresh {}."))
	handle(reg, d, f, "preview.navigate", p.navigate, server.LongRunning(),
		server.Doc("Sends all clients that show the preview to an address, if the address exists."+within))
	handle(reg, d, f, "preview.refresh", p.refresh, server.Doc("Makes all clients that show the preview reload it."))
	const kept = " Duet stores the message with a session, so that agents can read it (preview.messages). It stores the last 1,000 " +
		"messages. After the first 100, it stores at most 20 a second, and only counts the others."
	handle(reg, d, f, "preview.console", p.console, server.Doc("Reports a console message of a page; a notification or a request."+kept))
	handle(reg, d, f, "preview.error", p.pageError, server.Doc("Reports an error in a page; a notification or a request."+kept))
	handle(reg, d, f, "preview.navigated", p.navigated, server.Doc("Reports the current address of a page; a notification or a request. As "+
		"with preview.fetch, the caller then counts as showing the preview."+kept))
	handle(reg, d, f, "preview.messages", p.list, server.Doc("Lists messages of the preview's pages, the oldest first."))
}

// previews stores the connections that watch previews.
type previews struct {
	mu       sync.Mutex // guards the field below
	watchers map[*server.Conn]*preview.Watcher
}

// watcher returns the watcher of the connection, which it creates if necessary. It returns nil if the
// connection is ending.
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
			case update := <-w.C:
				if sendPreview(ctx, conn, update) != nil {
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

func sendPreview(ctx context.Context, conn *server.Conn, t preview.Update) error {
	switch {
	case t.Said != nil:
		return conn.Notify(ctx, "pageMessage", pageMessageOf(*t.Said))
	case t.Refresh:
		return conn.Notify(ctx, "refresh", struct{}{})
	}
	return conn.Notify(ctx, "navigate", map[string]string{"url": t.Navigate})
}

// shows records that the connection shows the preview.
func (p *previews) shows(ctx context.Context, h *hub.Hub) {
	if w := p.watcher(ctx, h); w != nil {
		h.Preview().Shows(w)
	}
}

func (p *previews) fetch(ctx context.Context, h *hub.Hub, a protocol.PreviewParams) (protocol.PreviewFile, error) {
	p.shows(ctx, h)
	const envelope = 2048 // the members around the body
	most := max(base64.StdEncoding.DecodedLen(max(protocol.Room(ctx)-envelope, 0))-3, 1)
	r, err := h.Preview().Fetch(ctx, a.URL, a.Origin, most)
	if err != nil {
		return protocol.PreviewFile{}, err
	}
	return protocol.PreviewFile{Status: r.Status, Headers: r.Headers, Body: base64.StdEncoding.EncodeToString(r.Body)}, nil
}

func (p *previews) navigate(ctx context.Context, h *hub.Hub, a protocol.PreviewParams) (protocol.PreviewShown, error) {
	url, n, err := h.Preview().Navigate(ctx, a.URL, a.Origin)
	return protocol.PreviewShown{URL: url, Shown: n}, err
}

func (p *previews) refresh(_ context.Context, h *hub.Hub, _ none) (protocol.PreviewShown, error) {
	return protocol.PreviewShown{Shown: h.Preview().Refresh()}, nil
}

func (p *previews) console(ctx context.Context, h *hub.Hub, c protocol.ConsoleParams) (protocol.PreviewKept, error) {
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
	return say(ctx, h, c.PreviewSession,
		domain.PageMessage{Kind: domain.PageConsole, Level: cmp.Or(c.Level, "log"), Text: text, URL: c.URL, Line: c.Line, Column: c.Column})
}

func (p *previews) pageError(ctx context.Context, h *hub.Hub, e protocol.PageErrorParams) (protocol.PreviewKept, error) {
	return say(ctx, h, e.PreviewSession,
		domain.PageMessage{Kind: domain.PageError, Text: e.Message, Stack: e.Stack, URL: cmp.Or(e.URL, e.Source), Line: e.Line, Column: e.Column})
}

func (p *previews) navigated(ctx context.Context, h *hub.Hub, n protocol.NavigationParams) (protocol.PreviewKept, error) {
	p.shows(ctx, h)
	return say(ctx, h, n.PreviewSession, domain.PageMessage{Kind: domain.PageNavigation, Text: n.Title, URL: n.URL})
}

func say(ctx context.Context, h *hub.Hub, s protocol.PreviewSession, m domain.PageMessage) (protocol.PreviewKept, error) {
	kept, err := h.Preview().Say(ctx, string(s.Session), m)
	return protocol.PreviewKept{Kept: kept}, err
}

func pageMessageOf(m domain.PageMessage) protocol.PageMessage {
	return protocol.PageMessage{
		ID: m.ID, Kind: m.Kind, Level: m.Level, Message: m.Text, URL: m.URL, Line: m.Line, Column: m.Column, Stack: m.Stack,
		TurnUUID: m.HumanLayerSession, Count: m.Count, Time: protocol.Timestamp(m.Time),
	}
}

func (p *previews) list(ctx context.Context, h *hub.Hub, q protocol.PageMessagesParams) (protocol.PageMessages, error) {
	if q.Follow != nil {
		if w := p.watcher(ctx, h); w != nil {
			h.Preview().Hears(w, *q.Follow)
		}
	}
	list, err := h.Preview().Messages(ctx, string(q.Session),
		domain.PageFilter{Problems: q.Problems, After: q.AfterID, Limit: int(min(q.Limit, 1000))})
	out := protocol.PageMessages{Messages: []protocol.PageMessage{}}
	for _, m := range list {
		out.Messages = append(out.Messages, pageMessageOf(m))
	}
	return out, err
}
