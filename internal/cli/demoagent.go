package cli

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/demoagent"
)

// newDemoAgentCommand makes the command that is an agent itself.
func newDemoAgentCommand(s *invocation.Settings) *cobra.Command {
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
		Args: invocation.NoArguments,
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
				return invocation.ExitStatus(demoagent.CrashStatus)
			}
			return err
		},
	}
	cmd.Flags().IntVar(&protocol, "protocol", protocol, "the newest `version` of the protocol to speak, if the client asks for it: 1 or 2")
	return cmd
}
