package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acpagent"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/demoagent"
	"github.com/duet-rpc/duet-rpc/internal/executor"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/server"
)

// newExecutorCommand returns the command that the hub starts to run agents. It serves the link
// to the hub on an inherited file descriptor. It does not use standard input and output, and
// logs to standard error.
func newExecutorCommand(*settings) *cobra.Command {
	return &cobra.Command{
		Use:    "executor",
		Short:  "Run agents for the daemon (started by duet-rpc itself)",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			link, err := executor.Inherited()
			if err != nil {
				return err
			}
			// The hub may die first and close its end of standard error. This process must
			// survive SIGPIPE then, because it still has to end its agents. It uses Notify,
			// not Ignore, because child processes inherit ignored signals.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			level := slog.LevelInfo
			if flag := cmd.Flag("log-level"); flag != nil { // a flag of the root command
				if err := level.UnmarshalText([]byte(flag.Value.String())); err != nil {
					return err
				}
			}
			log := logging.Open(logging.Options{Level: level, NoColor: true})
			defer log.Close(logGrace)
			options := executor.Options{Logger: log.Logger}
			const self = "/proc/self/exe" // this program, even if its file was replaced
			if _, err := os.Stat(self); err == nil && runtime.GOOS == "linux" {
				options.Subreaper = []string{self, "subreaper"}
			}
			return executor.Serve(ctx, link, options)
		},
	}
}

// newSubreaperCommand returns the command that the executor starts to run a command of the
// configuration.
func newSubreaperCommand(*settings) *cobra.Command {
	return &cobra.Command{
		Use:                "subreaper",
		Short:              "Run a command and end all that it starts (started by duet-rpc itself)",
		Hidden:             true,
		DisableFlagParsing: true, // the arguments belong to the command
		RunE:               func(_ *cobra.Command, args []string) error { return process.RunSubreaper(args) },
	}
}

// newDemoAgentCommand returns the command that runs the demo agent.
func newDemoAgentCommand(s *settings) *cobra.Command {
	protocol := demoagent.NewestProtocol
	cmd := &cobra.Command{
		Use:   "demo-agent",
		Short: "Run a scripted agent that needs no account, for trials and tests",
		Long: `The demo agent speaks the Agent Client Protocol on standard input and output, in
the newest version that the client asks for. It has no model: words in the prompt
say what it does.

` + demoagent.Help() + `
Environment:
  DUET_DEMO_DELAY   the pause between chunks of text, such as 0 or 50ms (15ms)
  DUET_DEMO_STATE   where its sessions are kept, instead of duet/demo in
                    $XDG_STATE_HOME or ~/.local/state

Exit status: 0 when its input has ended; 1 if it could not start; 3 after the
word crash.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if protocol < 1 || protocol > demoagent.NewestProtocol {
				return fmt.Errorf("--protocol %d: the demo agent speaks the versions 1 to %d of the protocol", protocol, demoagent.NewestProtocol)
			}
			opts := demoagent.Options{
				Protocol: protocol,
				StateDir: os.Getenv("DUET_DEMO_STATE"),
				Delay:    demoagent.DefaultDelay,
				Version:  s.Version,
				Stderr:   cmd.ErrOrStderr(),
				OnHang:   func() { signal.Ignore(syscall.SIGINT, syscall.SIGTERM) },
			}
			var err error
			if text := os.Getenv("DUET_DEMO_DELAY"); text != "" {
				if opts.Delay, err = time.ParseDuration(text); err != nil || opts.Delay < 0 {
					return fmt.Errorf("environment variable DUET_DEMO_DELAY: invalid value %q: it must be a time such as 0 or 50ms", text)
				}
			}
			if opts.StateDir == "" {
				if opts.StateDir, err = demoagent.DefaultStateDir(); err != nil {
					fmt.Fprintf(opts.Stderr, "duet-rpc demo-agent: %v; sessions are not kept\n", err)
				}
			}
			err = demoagent.Serve(cmd.Context(), os.Stdin, os.Stdout, opts)
			if errors.Is(err, demoagent.ErrCrash) {
				return exitStatus(demoagent.CrashStatus)
			}
			return err
		},
	}
	cmd.Flags().IntVar(&protocol, "protocol", protocol, "the newest `version` of the protocol to speak, if the client asks for it: 1 or 2")
	return cmd
}

// newServeCommand returns the former name of --stdio, which configurations of editors may still have.
func newServeCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "serve", Hidden: true, Short: "Serve an editor, as duet-rpc --stdio", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if term.IsTerminal(os.Stdin) && !s.Stdio {
				return errors.New("there is no command \"serve\": `duet-rpc --stdio` does that")
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "duet-rpc: serve is now called --stdio; the editor's configuration has the old name")
			return host.Serve(cmd.Context(), &s.Settings)
		},
	}
}

// duet-rpc mcp: Duet as an MCP server.

const mcpHelp = `Serve the Model Context Protocol on standard input and output, for agents that Duet
has not started: they ask you through the project's inbox, and see what other agents
do. docs/mcp.md says how to add it to each of them.

  request_permission  asks whether a tool may run, by your rules first and then you
  ask_user            asks you anything
  list_sessions, get_turn, list_items, list_questions, page_messages

Claude Code asks you in your editor or shell, instead of in its terminal, with
  claude mcp add duet -- duet-rpc mcp
  claude -p --permission-prompt-tool mcp__duet__request_permission "..."

The project's daemon is started if none runs. A question stays open when the
agent ends: an agent of the same name that asks it again gets the answer.

With --session it is the server duet-editor, which Duet gives the agents that it starts:
diagnostics, definition, references, symbols, buffers, selection and open, answered by
the editor of that session.

Exit status: 0 when the agent has gone; 1 if it could not start.`

// newMCP returns the mcp command.
func newMCP(s *settings) *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use:     "mcp",
		Short:   "Be an MCP server for agents that ask you through the inbox",
		Long:    mcpHelp,
		Example: "  duet-rpc mcp\n  claude mcp add duet -- duet-rpc mcp",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if session != "" {
				return serveEditorTools(cmd.Context(), os.Stdin, os.Stdout, &s.Settings, session)
			}
			directory, err := os.Getwd()
			if err != nil {
				directory = "" // use the project's root
			}
			return host.ServeThrough(cmd.Context(), &s.Settings, s.quietLog(cmd), func(ctx context.Context, agent server.Transport, hub *client.Client, log *logging.Log) error {
				return serveTools(ctx, agent, hub, toolsOptions{Version: s.Version, Logger: log.Logger, CWD: directory})
			})
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "offer the tools of this session's editor, and no others")
	return cmd
}

// duet-rpc acp: Duet as an ACP agent for editors.

const help = `Be an agent for an editor that speaks the Agent Client Protocol, on standard input
and output: Zed, JetBrains, agent-shell, CodeCompanion and others. The editor
chooses version 1 or version 2 of the protocol. Its sessions are
sessions of the project, with any agent behind: they outlive the editor,
their questions are in the editor and in the inbox, and all clients of the daemon see
them.

The project's daemon is started if none runs. When the editor goes, turns
continue and questions stay open, for another editor or for duet-rpc itself.

Exit status: 0 when the editor has gone; 1 if it could not start.`

// newACPCommand returns the acp command.
func newACPCommand(s *settings) *cobra.Command {
	var o acpagent.Options
	var signsIn bool
	cmd := &cobra.Command{
		Use:     "acp",
		Short:   "Be an agent for an editor that speaks the Agent Client Protocol",
		Long:    help,
		Example: "  duet-rpc acp\n  duet-rpc acp --agent claude",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.Host != "" { // an agent there would read the editor's files, and their paths are those of this machine
				return errors.New("the command acp works with agents of this machine only: leave out --host and DUET_HOST")
			}
			if signsIn {
				return signIn(cmd, s, o.Agent)
			}
			return host.ServeThrough(cmd.Context(), &s.Settings, s.quietLog(cmd), func(ctx context.Context, editor server.Transport, hub *client.Client, log *logging.Log) error {
				if !cmd.Flags().Changed("saved-files") {
					if c, err := s.Config(); err == nil { // the hub reports what is wrong with the configuration
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
	agentFlag(cmd, s, &o.Agent, "the agent of new sessions (default: default_agent, else the first installed one, else demo)")
	cmd.Flags().BoolVar(&o.CancelOnDisconnect, "cancel-on-disconnect", false, "end the editor's turns when it disconnects")
	cmd.Flags().BoolVar(&o.SavedFiles, "saved-files", false, "let the agent read files from the disk, even if the editor has unsaved "+
		"changes; default: saved_files in [acp] of the configuration, or DUET_ACP_SAVED_FILES")
	cmd.Flags().BoolVar(&signsIn, strings.TrimPrefix(acpagent.LoginFlag, "--"), false,
		"sign in to the agent in this terminal, as duet-rpc agents login does, and end: for editors that open one")
	return cmd
}

// longestPrompt limits a message of an editor, in bytes. It has room for 20 MiB of images in
// base64.
const longestPrompt = 32 << 20

// quietLog opens the log. Editors and agents show their users a program's standard error, so the
// level is warnings or above unless the user sets one. A daemon that is started logs as the
// settings say.
func (s *settings) quietLog(cmd *cobra.Command) *logging.Log {
	own := s.Settings
	if !s.LevelGiven(cmd) {
		own.LogLevel = logging.Level(slog.LevelWarn)
	}
	return own.OpenLog()
}

// signIn signs in to the agent that runs the sessions.
func signIn(cmd *cobra.Command, s *settings, agent string) error {
	if agent == "" {
		c, err := s.Config()
		if err != nil {
			return err
		}
		agent = c.Default()
	}
	err := s.login(cmd.Context(), os.Stdout, agent, "")
	var several *agentlink.UnknownMethodError
	if !errors.As(err, &several) || several.ID != "" || len(several.Known) == 0 {
		return err
	}
	fmt.Fprintf(os.Stdout, "Which one? [%s] ", several.Known[0])
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // an unreadable answer names no method
	method := strings.TrimSpace(line)
	if line == "" {
		return err
	}
	if method == "" {
		method = several.Known[0]
	}
	return s.login(cmd.Context(), os.Stdout, agent, method)
}
