package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/demoagent"
	"github.com/duet-rpc/duet-rpc/internal/executor"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// newExecutorCommand makes the command that the hub starts to run agents. It
// serves the link that the hub left in a descriptor; standard input and output
// are not used, and the log goes to standard error.
func newExecutorCommand(*settings) *cobra.Command {
	return &cobra.Command{
		Use:    "executor",
		Short:  "Run agents for the hub (started by duet-rpc itself)",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			link, err := executor.Inherited()
			if err != nil {
				return err
			}
			// The hub may die before us, and its end of standard error with
			// it; we still have agents to end then. Notify, not Ignore: what
			// is ignored stays ignored in child processes.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			level := slog.LevelInfo
			if flag := cmd.Flag("log-level"); flag != nil { // the root's
				if err := level.UnmarshalText([]byte(flag.Value.String())); err != nil {
					return err
				}
			}
			log := logging.Open(logging.Options{Level: level, NoColor: true})
			defer log.Close(logGrace)
			options := executor.Options{Logger: log.Logger}
			const self = "/proc/self/exe" // this program, also when its file was replaced
			if _, err := os.Stat(self); err == nil && runtime.GOOS == "linux" {
				options.Subreaper = []string{self, "subreaper"}
			}
			return executor.Serve(ctx, link, options)
		},
	}
}

// newSubreaperCommand makes the command that the executor starts to run a command of the
// configuration.
func newSubreaperCommand(*settings) *cobra.Command {
	return &cobra.Command{
		Use:                "subreaper",
		Short:              "Run a command and end all that it starts (started by duet-rpc itself)",
		Hidden:             true,
		DisableFlagParsing: true, // the arguments are the command's
		RunE:               func(_ *cobra.Command, args []string) error { return process.RunSubreaper(args) },
	}
}

// newDemoAgentCommand makes the command that is an agent itself.
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

func newServeCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve an editor on standard input and output",
		Long: `Serve an editor on standard input and output, even if they are a terminal.

Exit status: 0 whichever way the session ended; 1 if it could not start.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return host.Serve(cmd.Context(), &s.Settings) },
	}
}
