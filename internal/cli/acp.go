package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acpagent"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/server"
)

// This file is the command that makes Duet an agent of editors that speak the Agent
// Client Protocol.

const help = `Be an agent for an editor that speaks the Agent Client Protocol, on standard input
and output: Zed, JetBrains, agent-shell, CodeCompanion and others. The editor
chooses version 1 or version 2 of the protocol. Its sessions are
conversations of the project's hub, with any agent behind: they outlive the editor,
their questions are in the editor and in the inbox, and everybody who is connected
to the hub sees them.

The hub is a daemon, which is started if none runs. When the editor goes, turns go on
and questions stay open; another editor, or duet-rpc itself, goes on with them.

Exit status: 0 when the editor has gone; 1 if it could not start.`

// newACP makes the command.
func newACP(s *hubprocess.Settings, levelGiven func(cmd *cobra.Command) bool, agentFlag func(cmd *cobra.Command, value *string, usage string), login acpLogin) *cobra.Command {
	var o acpagent.Options
	var signsIn bool
	cmd := &cobra.Command{
		Use:     "acp",
		Short:   "Be an agent for an editor that speaks the Agent Client Protocol",
		Long:    help,
		Example: "  duet-rpc acp\n  duet-rpc acp --agent claude",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if signsIn {
				return signIn(cmd, s, o.Agent, login)
			}
			return host.ServeThrough(cmd.Context(), s, openLog(s, levelGiven(cmd)), func(ctx context.Context, editor server.Transport, hub *client.Client, log *logging.Log) error {
				if !cmd.Flags().Changed("saved-files") {
					if c, err := s.Config(); err == nil { // the hub tells what is wrong with it
						o.SavedFiles = c.ACP.SavedFiles
					}
				}
				o.Version, o.Logger = s.Version, log.Logger
				o.Limits = s.Limits
				o.Limits.MaxFrame = max(o.Limits.MaxFrame, longestPrompt)
				if messages := log.Messages(); messages != nil {
					o.Trace = func(_ *server.Conn, sent bool, message []byte) { messages("editor", sent, message) }
				}
				return acpagent.Serve(ctx, editor, hub, o)
			})
		},
	}
	agentFlag(cmd, &o.Agent, "the agent behind new sessions (default: default_agent, else the first that is found, else demo)")
	cmd.Flags().BoolVar(&o.CancelOnDisconnect, "cancel-on-disconnect", false, "end the turns that the editor has begun when it goes")
	cmd.Flags().BoolVar(&o.SavedFiles, "saved-files", false, "have the agent read files as they are on the disk, even if the editor offers what is not saved; default: saved_files in [acp] of the configuration, or DUET_ACP_SAVED_FILES")
	cmd.Flags().BoolVar(&signsIn, strings.TrimPrefix(acpagent.LoginFlag, "--"), false, "sign in to the agent in this terminal, as duet-rpc agents login does, and end: for editors that open one")
	return cmd
}

// longestPrompt is how long a message of an editor may be, in bytes: 20 MiB of images
// in base64.
const longestPrompt = 32 << 20

// openLog opens the log. Editors show their users what an agent writes to standard
// error, so it is what is wrong unless the user wants more; a daemon that is started
// logs as the settings say.
func openLog(s *hubprocess.Settings, levelGiven bool) *logging.Log {
	own := *s
	if !levelGiven {
		own.LogLevel = logging.Level(slog.LevelWarn)
	}
	return own.OpenLog()
}

// A acpLogin signs in to an agent in this terminal. Where it has several ways and none is
// named, it lists them on out, and its error is a [agentlink.UnknownMethodError].
type acpLogin func(ctx context.Context, out *os.File, agent, method string) error

// signIn signs in to the agent that is behind sessions.
func signIn(cmd *cobra.Command, s *hubprocess.Settings, agent string, login acpLogin) error {
	if agent == "" {
		c, err := s.Config()
		if err != nil {
			return err
		}
		agent = c.Default()
	}
	err := login(cmd.Context(), os.Stdout, agent, "")
	var several *agentlink.UnknownMethodError
	if !errors.As(err, &several) || several.ID != "" || len(several.Known) == 0 {
		return err
	}
	fmt.Fprintf(os.Stdout, "Which one? [%s] ", several.Known[0])
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // what cannot be read names none
	method := strings.TrimSpace(line)
	if line == "" {
		return err
	}
	if method == "" {
		method = several.Known[0]
	}
	return login(cmd.Context(), os.Stdout, agent, method)
}
