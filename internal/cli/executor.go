package cli

import (
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/reach"
	"github.com/duet-rpc/duet-rpc/internal/executor"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// newExecutorCommand makes the command that the hub starts to run agents. It
// serves the link that the hub left in a descriptor; standard input and output
// are not used, and the log goes to standard error.
func newExecutorCommand(*invocation.Settings) *cobra.Command {
	return &cobra.Command{
		Use:    "executor",
		Short:  "Run agents for the hub (started by duet-rpc itself)",
		Hidden: true,
		Args:   invocation.NoArguments,
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
			defer log.Close(reach.LogGrace)
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
func newSubreaperCommand(*invocation.Settings) *cobra.Command {
	return &cobra.Command{
		Use:                "subreaper",
		Short:              "Run a command and end all that it starts (started by duet-rpc itself)",
		Hidden:             true,
		DisableFlagParsing: true, // the arguments are the command's
		RunE:               func(_ *cobra.Command, args []string) error { return process.RunSubreaper(args) },
	}
}
