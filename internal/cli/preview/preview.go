// Package preview is the command that shows the pages of the project in a browser.
package preview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/preview/web"
	"github.com/duet-rpc/duet-rpc/internal/cli/reach"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

const help = `Show the pages that the project makes in a browser: print an address to open, and serve
it until C-c. The files are those of the directory of [preview] in the configuration, or
of the first of dist, build, out, _site and public that has an index.html. Nothing
outside of it is shown, and only to a browser that was given the whole address. If the
browser does not find the host of the address, write 127.0.0.1 in its place.

With --capture pages get a small script that tells what they write to the console, what
goes wrong in them and where they are: that is printed, and kept for the agent that
works on them (` + "`duet-rpc preview console`" + `, or the tool page_messages of ` + "`duet-rpc mcp`" + `).
They then also follow ` + "`duet-rpc preview navigate` and `refresh`" + `. docs/preview.md has more.

Exit status: 0 or 130 when you ended it; 1 if it could not start.`

// New makes the command.
func New(s *invocation.Settings) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "preview",
		Short:   "Show the project's pages in a browser, and keep what they say",
		Long:    help,
		Example: "  duet-rpc preview\n  duet-rpc preview --capture --port 8080\n  duet-rpc build && duet-rpc preview refresh",
		Args:    invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return turn.InWords(serve(cmd, s, o))
		},
	}
	cmd.Flags().Uint16Var(&o.port, "port", 0, "the port of 127.0.0.1 to listen on (default: one that is free)")
	cmd.Flags().BoolVar(&o.capture, "capture", false, "add a script to pages, which tells what they say")
	cmd.Flags().StringVar(&o.session, "session", "", "the session that what pages say is kept with (default: the one that was begun last)")
	cmd.AddCommand(newConsole(s), newNavigate(s), newRefresh(s))
	return cmd
}

type options struct {
	port    uint16
	capture bool
	session string
}

// A serving is one call of the command.
type serving struct {
	cmd      *cobra.Command
	settings *invocation.Settings
	options  options
	web      *web.Server
	hub      atomic.Pointer[client.Client] // the one that runs now
}

// serve serves until a signal comes.
func serve(cmd *cobra.Command, s *invocation.Settings, o options) error {
	h, err := reach.Open(cmd.Context(), &s.Settings)
	if err != nil {
		return err
	}
	defer h.Close()
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("cannot listen: %w; choose another --port", err)
	}
	p := &serving{cmd: cmd, settings: s, options: o}
	p.hub.Store(h.Client)
	served := web.Options{Port: listener.Addr().(*net.TCPAddr).Port, Fetch: p.fetch}
	if o.capture {
		served.Report = p.report
	}
	p.web = web.New(served)
	server := &http.Server{Handler: p.web, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	defer func() {
		p.web.End()
		server.Close()
		<-ended
	}()
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	told := false
	for {
		err := term.OrInterrupted(h.Interrupts, cancel, func() error { return p.withHub(ctx, h.Client, &told) })
		if !errors.Is(err, wire.ErrHubGone) {
			return err
		}
		if err := h.Again(); err != nil {
			return err
		}
		p.hub.Store(h.Client)
	}
}

// withHub stays with a hub until it has gone, and tells the address when what is needed of
// the first one is known.
func (p *serving) withHub(ctx context.Context, c *client.Client, told *bool) error {
	ctx, cancel := wire.WhileConnected(ctx, c)
	defer cancel()
	for method, follow := range map[string]func(json.RawMessage){
		"refresh": func(json.RawMessage) { p.web.Refresh() },
		"navigate": func(params json.RawMessage) {
			var to wire.PreviewShown
			if json.Unmarshal(params, &to) == nil {
				p.web.Navigate(to.URL)
			}
		},
		"pageMessage": func(params json.RawMessage) { printMessage(p.cmd, p.settings, params) },
	} {
		defer c.On(method, follow)()
	}
	if p.options.capture {
		if _, _, err := wire.Call[wire.PageMessages](ctx, c, "listPageMessages", map[string]any{"limit": 1, "follow": true}); err != nil {
			return wire.OrGone(ctx, err)
		}
	}
	// What is wrong with the directory is known before anybody opens a browser.
	_, err := p.fetchOf(ctx, c, "/")
	var refused *web.RefusedError
	if err != nil && !errors.As(err, &refused) {
		return wire.OrGone(ctx, err)
	}
	if !*told {
		*told = true
		if refused != nil {
			invocation.Progress(p.cmd, p.settings, "%s", refused.Text)
		}
		p.tellAddress()
	}
	<-ctx.Done()
	return wire.OrGone(ctx, ctx.Err())
}

func (p *serving) tellAddress() {
	out := p.cmd.OutOrStdout()
	if p.settings.JSON {
		if line, err := json.Marshal(map[string]string{"url": p.web.Address(), "origin": p.web.Origin()}); err == nil {
			_ = term.Raw(out, line) // a line, as those of messages
		}
		return
	}
	fmt.Fprintln(out, p.web.Address())
}

func (p *serving) fetch(ctx context.Context, path string) (web.Page, error) {
	return p.fetchOf(ctx, p.hub.Load(), path)
}

// fetchOf asks a hub for what an address has.
func (p *serving) fetchOf(ctx context.Context, c *client.Client, path string) (web.Page, error) {
	r, _, err := wire.Call[wire.PreviewFile](ctx, c, "fetch", map[string]string{"url": path})
	var refused *client.Error
	if errors.As(err, &refused) {
		status := map[client.Kind]int{"preview_load_failed": http.StatusServiceUnavailable, "navigation_failed": http.StatusBadRequest}[refused.Kind()]
		if status != 0 {
			return web.Page{}, &web.RefusedError{Status: status, Text: refused.Message}
		}
	}
	return web.Page{Status: r.Status, Headers: r.Headers, Body: r.Body}, err
}

// report tells the hub what a page says.
func (p *serving) report(ctx context.Context, r web.Report) error {
	if p.options.session != "" {
		r.Params["session_id"] = p.options.session
	}
	return p.hub.Load().Call(ctx, r.Method, r.Params, nil)
}

// printMessage prints what a page says.
func printMessage(cmd *cobra.Command, s *invocation.Settings, raw json.RawMessage) {
	out := cmd.OutOrStdout()
	if s.JSON {
		_ = term.Raw(out, raw)
		return
	}
	var m wire.PageMessage
	if json.Unmarshal(raw, &m) == nil {
		fmt.Fprintln(out, term.Exact(m.Text()))
	}
}
