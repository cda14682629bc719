package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/mdp/qrterminal/v3"
	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/web"
)

const webHelp = `Serve one page for all your projects and hosts to your browser or phone: the open
questions, the sessions, their changes, and new prompts (docs/web.md). It runs until you
press C-c; the agents go on without it.

A browser is paired once: with the code that this shows, or the picture. By default only
this machine reaches the page. For a phone, give --certificate and --key, or put a proxy
with TLS in front (--origin https://NAME), such as that of your VPN.

Exit status: 0 after C-c or a signal, 1 if it could not begin.`

func newWeb(s *settings) *cobra.Command {
	var at web.Address
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Serve your sessions and questions to a browser or a phone",
		Long:  webHelp,
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.serveWeb(cmd, at) },
	}
	f := cmd.Flags()
	f.StringVar(&at.Listen, "address", "", "the host and the port to listen on (default "+web.DefaultListen+")")
	f.StringVar(&at.Certificate, "certificate", "", "the TLS certificate, a PEM file")
	f.StringVar(&at.Key, "key", "", "the certificate's key, a PEM file")
	f.StringVar(&at.Origin, "origin", "", "the https address of a proxy in front, as browsers see it")
	cmd.AddCommand(newWebPair(s), newWebDevices(s), newWebInstall(s))
	return cmd
}

// webDevices returns the paired devices of the user.
func webDevices() (*web.Devices, error) {
	home, err := project.StateHome(os.Getenv)
	if err != nil {
		return nil, err
	}
	return web.OpenDevices(filepath.Join(home, "web"))
}

func (s *settings) serveWeb(cmd *cobra.Command, at web.Address) error {
	c, err := config.OfUser(os.Getenv)
	if err != nil {
		return err
	}
	devices, err := webDevices()
	if err != nil {
		return err
	}
	log := s.OpenLog()
	defer log.Close(logGrace)
	say := func(text string) { progress(cmd, s, "%s", text) }
	ctx, stop := term.UntilInterrupted(cmd.Context())
	defer stop()
	server, err := web.Listen(ctx, devices, web.Options{
		Address: web.Address{
			Listen: cmp.Or(at.Listen, c.Web.Listen), Certificate: cmp.Or(at.Certificate, c.Web.Certificate), Key: cmp.Or(at.Key, c.Web.Key),
			Origin: cmp.Or(at.Origin, c.Web.Origin),
		},
		Version: s.Version, Source: s.webSource(), Log: log.Logger, Say: say, Rest: host.RestMemory,
		Notify: web.Notify{Command: c.Notify.Command, Webhook: c.Notify.Webhook, Content: web.Content(cmp.Or(c.Notify.Content, string(web.ContentNone)))},
	})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: perhaps `duet-rpc web` runs already; --address HOST:PORT listens elsewhere", err)
	case err != nil:
		return err
	}
	if err := writeWebURL(server.URL()); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), server.URL())
	if !server.Reachable(ctx) {
		say("only this machine reaches it; docs/web.md says how a phone does")
	}
	paired, err := devices.List()
	if err != nil {
		return err
	}
	if len(paired) == 0 {
		if err := showCode(cmd, s, devices, server.URL()); err != nil {
			return err
		}
	} else {
		say(fmt.Sprintf("%s; `duet-rpc web pair` pairs another one", term.Count(len(paired), "device is paired", "devices are paired")))
	}
	return server.Serve(ctx)
}

// webURLFile has the address of the page that was served last, for `duet-rpc web pair`.
func webURLFile() (string, error) {
	home, err := project.StateHome(os.Getenv)
	return filepath.Join(home, "web", "url"), err
}

func writeWebURL(url string) error {
	file, err := webURLFile()
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(url+"\n"), 0o600)
}

// showCode shows a new code, as text and as a picture for a phone's camera.
func showCode(cmd *cobra.Command, s *settings, devices *web.Devices, url string) error {
	code, err := devices.NewCode(time.Now())
	if err != nil {
		return err
	}
	link := url + "/#code=" + code
	out := cmd.OutOrStdout()
	if s.JSON {
		return term.JSON(out, map[string]string{"code": code, "url": link})
	}
	if term.Draws(out) {
		var picture strings.Builder
		qrterminal.GenerateWithConfig(link, qrterminal.Config{
			Level: qrterminal.L, Writer: &picture, HalfBlocks: true, QuietZone: 2,
			BlackChar: qrterminal.BLACK_BLACK, WhiteChar: qrterminal.WHITE_WHITE, BlackWhiteChar: qrterminal.BLACK_WHITE, WhiteBlackChar: qrterminal.WHITE_BLACK,
		})
		_, _ = io.WriteString(out, picture.String()) // the code below is enough
	}
	fmt.Fprintf(out, "Code: %s (ten minutes, one device)\n", code)
	fmt.Fprintln(out, link)
	return nil
}

const webPairHelp = `Show a code, and a picture of it for a phone's camera. The page asks for the code and pairs
the browser. It works once, within ten minutes, while ` + "`duet-rpc web`" + ` runs.

Exit status: 0 if the code counts, 1 if not.`

func newWebPair(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "pair", Short: "Show a code that pairs a browser or a phone", Long: webPairHelp, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			devices, err := webDevices()
			if err != nil {
				return err
			}
			file, err := webURLFile()
			if err != nil {
				return err
			}
			url, err := os.ReadFile(file)
			if errors.Is(err, os.ErrNotExist) {
				return errors.New("the page was never served here: `duet-rpc web` serves it, and shows the first code")
			}
			if err != nil {
				return err
			}
			return showCode(cmd, s, devices, strings.TrimSpace(string(url)))
		},
	}
}

const webDevicesHelp = `List the browsers and phones that are paired with ` + "`duet-rpc web`" + `, or remove one.

Exit status: 0 if they could be listed, 1 if not.`

func newWebDevices(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use: "devices", Short: "List the paired browsers and phones, or remove one", Long: webDevicesHelp, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			devices, err := webDevices()
			if err != nil {
				return err
			}
			list, err := devices.List()
			if err != nil {
				return err
			}
			if s.JSON {
				shown := []map[string]any{}
				for _, d := range list {
					shown = append(shown, map[string]any{
						"id": d.ID, "name": d.Name, "paired_at": d.Paired, "seen_at": d.Seen, "notifications": d.Push != nil,
					})
				}
				return term.JSON(cmd.OutOrStdout(), map[string]any{"devices": shown})
			}
			table := term.NewTable(cmd.OutOrStdout(), "DEVICE", "PAIRED", "SEEN", "NOTIFICATIONS", "ID")
			table.Empty("no device is paired: `duet-rpc web` shows a code for the first one")
			for _, d := range list {
				notifications := "off"
				if d.Push != nil {
					notifications = map[web.Content]string{
						web.ContentNone: "without content", web.ContentTitle: "with titles", web.ContentAll: "with the question",
					}[d.Push.Content]
				}
				table.Row(term.Line(d.Name), term.Age(d.Paired), term.Age(d.Seen), notifications, d.ID)
			}
			return table.Flush()
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "remove DEVICE", Short: "Remove a device, which closes its open pages", Args: exactly("DEVICE"),
		Long: "Remove a paired device, by its name or id. Its open pages close within a second, and it\n" +
			"has to be paired again.\n\nExit status: 0 if it is removed, 1 if there is none of that name.",
		ValidArgsFunction: completeDevices,
		RunE: func(cmd *cobra.Command, args []string) error {
			devices, err := webDevices()
			if err != nil {
				return err
			}
			removed, err := devices.Remove(args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", term.Short(args[0]), err)
			}
			if s.JSON {
				return term.JSON(cmd.OutOrStdout(), map[string]string{"removed": removed.ID})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Removed: %s\n", term.Line(removed.Name))
			return nil
		},
	})
	return cmd
}

func completeDevices(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	devices, err := webDevices()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := devices.List() // without a list there is nothing to complete
	for _, d := range list {
		names = append(names, d.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

const webInstallHelp = `Print a unit of systemd (Linux) or launchd (macOS) that keeps ` + "`duet-rpc web`" + ` running for
you, and the commands that start it. It changes nothing.

Exit status: 0 if it was printed, 1 if this system has neither.`

func newWebInstall(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "install", Short: "Print a unit for systemd or launchd that keeps it running", Long: webInstallHelp, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			unit, after, err := webUnit(runtime.GOOS, program, os.Getenv("PATH"))
			if err != nil {
				return err
			}
			if _, err := io.WriteString(cmd.OutOrStdout(), unit); err != nil {
				return err
			}
			for _, line := range after {
				progress(cmd, s, "%s", line)
			}
			return nil
		},
	}
}

// launchdUnit has the program and the path, escaped.
const launchdUnit = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key><string>duet.web</string>
	<key>ProgramArguments</key><array><string>%s</string><string>web</string></array>
	<key>EnvironmentVariables</key><dict><key>PATH</key><string>%s</string></dict>
	<key>RunAtLoad</key><true/>
	<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
</dict>
</plist>
`

// webUnit returns the unit of a system, and what to do with it. Agents that a page starts are found in path: units have a short one.
func webUnit(system, program, path string) (unit string, after []string, err error) {
	switch system {
	case "linux", "freebsd":
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%")
		return "[Unit]\nDescription=Duet's page for browsers and phones\n\n[Service]\nExecStart=\"" +
				strings.ReplaceAll(quoted.Replace(program), "$", "$$") + "\" web\nEnvironment=\"PATH=" + quoted.Replace(path) + "\"\nRestart=on-failure\n\n" +
				"[Install]\nWantedBy=default.target\n",
			[]string{
				"save it: `duet-rpc web install > ~/.config/systemd/user/duet-web.service`",
				"start it: `systemctl --user enable --now duet-web`; `loginctl enable-linger` keeps it running when you are logged out",
				"`duet-rpc web pair` shows a code for each device",
			}, nil
	case "darwin":
		escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
		after = []string{
			"save it: `duet-rpc web install > ~/Library/LaunchAgents/duet.web.plist`",
			"start it: `launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/duet.web.plist`",
			"`duet-rpc web pair` shows a code for each device",
		}
		return fmt.Sprintf(launchdUnit, escape(program), escape(path)), after, nil
	}
	return "", nil, fmt.Errorf("no unit is known for %s: start `duet-rpc web` as your system starts programs of a user", system)
}

// webSource reaches the projects of the user for the page.
func (s *settings) webSource() web.Source {
	at := func(p web.Place, observes bool) *hubprocess.Settings {
		own := s.Settings
		own.Root, own.Host, own.Observes = p.Root, p.Host, observes
		if p.Here != "" {
			own.Here = p.Here
		}
		return &own
	}
	return web.Source{
		Find: func(ctx context.Context, found func(web.Place), isKnown func(web.Place) bool) {
			s.lookEverywhere(ctx, func(l listedAt) { found(l.place()) }, func(l listedAt) bool { return isKnown(l.place()) }, func([]string) {})
		},
		List: func(ctx context.Context, each func(web.Place, []json.RawMessage, string, *time.Time)) error {
			l, err := turnsOf(protocol.ListTurnsParams{}).everywhere(ctx, s, nil)
			for _, p := range l.Projects {
				each(listedAt{root: p.Root}.place(), p.Turns, p.Error, nil)
			}
			for _, h := range l.Hosts {
				for _, p := range h.Projects {
					each(listedAt{h.Host, h.here, p.Root}.place(), p.Turns, cmp.Or(p.Error, h.Error), h.SeenAt)
				}
			}
			return err
		},
		Observe: func(ctx context.Context, p web.Place) (c *client.Client, broken bool, err error) {
			c, err = hubprocess.Reach(ctx, at(p, true), hubprocess.StartNever, client.WithReconnect(false))
			return c, hubprocess.IsBroken(err), err
		},
		Dial: func(ctx context.Context, p web.Place) (*client.Client, error) {
			return hubprocess.Reach(ctx, at(p, false), hubprocess.StartAlways)
		},
	}
}

// place is the project for the page.
func (p listedAt) place() web.Place {
	name := filepath.Base(p.root)
	if p.host != "" {
		name += "@" + p.host
	}
	return web.Place{Root: p.root, Host: p.host, Here: p.here, Name: term.Line(name)}
}
