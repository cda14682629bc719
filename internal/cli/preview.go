package cli

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
	"github.com/duet-rpc/duet-rpc/internal/cli/preview/web"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// duet-rpc preview: show the project's pages in a browser.

const previewHelp = `Show the pages that the project makes in a browser: print an address to open, and serve
it until C-c. The files are those of the directory of [preview] in the configuration, or
of the first of dist, build, out, _site, public and . that has an index.html. Nothing
outside of it is shown, and only to a browser that was given the whole address. If the
browser does not find the host of the address, write 127.0.0.1 in its place.

With --capture pages get a small script that tells what they write to the console, what
goes wrong in them and where they are: that is printed, and kept for the agent that
works on them (` + "`duet-rpc preview console`" + `, or the tool page_messages of ` + "`duet-rpc mcp`" + `).
They then also follow ` + "`duet-rpc preview navigate` and `refresh`" + `. docs/preview.md has more.

Exit status: 0 or 130 when you ended it; 1 if it could not start.`

// newPreview returns the preview command.
func newPreview(s *settings) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "preview",
		Short:   "Show the project's pages in a browser, and keep their messages",
		Long:    previewHelp,
		Example: "  duet-rpc preview\n  duet-rpc preview --capture --port 8080\n  duet-rpc build && duet-rpc preview refresh",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return turn.InWords(serve(cmd, s, o))
		},
	}
	cmd.Flags().Uint16Var(&o.port, "port", 0, "the port of 127.0.0.1 to listen on (default: one that is free)")
	cmd.Flags().BoolVar(&o.capture, "capture", false, "add a script to pages that reports their messages")
	cmd.Flags().StringVar(&o.session, "session", "", "the session that keeps the pages' messages (default: the one that was started last)")
	cmd.AddCommand(newConsole(s), newNavigate(s), newRefresh(s))
	return cmd
}

type options struct {
	port    uint16
	capture bool
	session string
}

// serving is one run of the command.
type serving struct {
	cmd      *cobra.Command
	settings *settings
	options  options
	web      *web.Server
	hub      atomic.Pointer[client.Client] // the hub that runs now
}

// serve serves pages until a signal arrives.
func serve(cmd *cobra.Command, s *settings, o options) error {
	h, err := openAttended(cmd.Context(), &s.Settings, nil)
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
	announced := false
	for {
		err := term.OrInterrupted(h.Interrupts, cancel, func() error { return p.withHub(ctx, h.Client, &announced) })
		if !errors.Is(err, hubclient.ErrHubGone) {
			return err
		}
		if err := h.Again(); err != nil {
			return err
		}
		p.hub.Store(h.Client)
	}
}

// withHub stays connected to a hub until it ends. After the first hub has answered a first
// request, it prints the address, once.
func (p *serving) withHub(ctx context.Context, c *client.Client, announced *bool) error {
	ctx, cancel := hubclient.WhileConnected(ctx, c)
	defer cancel()
	for method, follow := range map[string]func(json.RawMessage){
		"refresh": func(json.RawMessage) { p.web.Refresh() },
		"navigate": func(params json.RawMessage) {
			var to protocol.PreviewShown
			if json.Unmarshal(params, &to) == nil {
				p.web.Navigate(to.URL)
			}
		},
		"pageMessage": func(params json.RawMessage) { printMessage(p.cmd, p.settings, params) },
	} {
		defer c.On(method, follow)()
	}
	if p.options.capture {
		if _, _, err := hubclient.Call[protocol.PageMessages](
			ctx, c, "preview.messages", protocol.PageMessagesParams{Limit: 1, Follow: new(true)},
		); err != nil {
			return hubclient.OrGone(ctx, err)
		}
	}
	// This reports a wrong directory before the user opens a browser.
	_, err := p.fetchOf(ctx, c, "/")
	var refused *web.RefusedError
	if err != nil && !errors.As(err, &refused) {
		return hubclient.OrGone(ctx, err)
	}
	if !*announced {
		*announced = true
		if refused != nil {
			progress(p.cmd, p.settings, "%s", refused.Text)
		}
		p.printAddress()
	}
	<-ctx.Done()
	return hubclient.OrGone(ctx, ctx.Err())
}

func (p *serving) printAddress() {
	out := p.cmd.OutOrStdout()
	if p.settings.JSON {
		if line, err := json.Marshal(map[string]string{"url": p.web.Address(), "origin": p.web.Origin()}); err == nil {
			_ = term.Raw(out, line) // a line, like a message
		}
		return
	}
	fmt.Fprintln(out, p.web.Address())
}

func (p *serving) fetch(ctx context.Context, path string) (web.Page, error) {
	return p.fetchOf(ctx, p.hub.Load(), path)
}

// fetchOf asks a hub for the page at a path.
func (p *serving) fetchOf(ctx context.Context, c *client.Client, path string) (web.Page, error) {
	page, _, err := hubclient.Call[web.Page](ctx, c, "preview.fetch", protocol.PreviewParams{URL: path})
	if refused, ok := errors.AsType[*client.Error](err); ok {
		status := map[client.Kind]int{
			"preview_load_failed": http.StatusServiceUnavailable, "navigation_failed": http.StatusBadRequest,
		}[refused.Kind()]
		if status != 0 {
			return web.Page{}, &web.RefusedError{Status: status, Text: refused.Message}
		}
	}
	return page, err
}

// report sends a page's message to the hub.
func (p *serving) report(ctx context.Context, r web.Report) error {
	if p.options.session != "" {
		r.Params["session"] = p.options.session
	}
	return p.hub.Load().Call(ctx, r.Method, r.Params, nil)
}

// printMessage prints a page's message.
func printMessage(cmd *cobra.Command, s *settings, raw json.RawMessage) {
	out := cmd.OutOrStdout()
	if s.JSON {
		_ = term.Raw(out, raw)
		return
	}
	var m protocol.PageMessage
	if json.Unmarshal(raw, &m) == nil {
		fmt.Fprintln(out, term.Exact(m.Text()))
	}
}

// newConsole returns the command that prints messages of pages.
func newConsole(s *settings) *cobra.Command {
	var session string
	var problems bool
	limit := uint(100)
	cmd := &cobra.Command{
		Use: "console", Args: noArguments,
		Short: "Print the messages of previewed pages",
		Long: "Print the console messages, errors and addresses of previewed pages, the oldest\n" +
			"first. The last thousand messages are kept.\n\n" +
			"Exit status: 0, also if there is nothing; 1 if it could not be read.",
		Example: "  duet-rpc preview console --problems\n  duet-rpc preview console --problems | duet-rpc prompt -c \"What is wrong there?\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			params := protocol.PageMessagesParams{Session: protocol.Ref(session), Limit: limit, Problems: problems}
			return askHub(cmd, s, "preview.messages", params, func(r protocol.PageMessages) error {
				for _, m := range r.Messages {
					fmt.Fprintln(cmd.OutOrStdout(), term.Exact(m.Text()))
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "only messages that a session keeps, by any of its ids (default: all)")
	cmd.Flags().BoolVar(&problems, "problems", false, "only errors and warnings")
	cmd.Flags().UintVar(&limit, "limit", limit, "how many at most: the last ones")
	return cmd
}

// newNavigate returns the command that makes pages open another address.
func newNavigate(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "navigate ADDRESS", Args: exactly("ADDRESS"),
		Short: "Make all open previews go to an address",
		Long: "Make all open previews go to an address, such as /about: editors, and browsers\n" +
			"of `duet-rpc preview --capture`.\n\n" +
			"Exit status: 0, also if no preview is open; 1 if there is no such page, or no daemon.",
		Example: "  duet-rpc preview navigate /about",
		RunE: func(cmd *cobra.Command, args []string) error {
			return callPreview(cmd, s, "preview.navigate", protocol.PreviewParams{URL: args[0]})
		},
	}
}

// newRefresh returns the command that reloads pages.
func newRefresh(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "refresh", Args: noArguments,
		Short: "Make all open previews reload",
		Long: "Make all open previews reload: editors, and browsers of\n" +
			"`duet-rpc preview --capture`.\n\n" +
			"Exit status: 0, also if no preview is open; 1 if there is no daemon.",
		Example: "  duet-rpc build && duet-rpc preview refresh",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return callPreview(cmd, s, "preview.refresh", nil)
		},
	}
}

func callPreview(cmd *cobra.Command, s *settings, method string, params any) error {
	return askHub(cmd, s, method, params, func(r protocol.PreviewShown) error {
		if r.Shown == 0 {
			progress(cmd, s, "no preview is open: start `duet-rpc preview --capture`, and open what it prints")
		}
		return nil
	})
}
