package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/doctor"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

const doctorHelp = `Check everything that duet-rpc needs, and say what was found, what is wrong and
what to do about it.

It starts this program as an editor would, exchanges messages with it, and runs a
prompt with the demo agent. With --exchange the messages are shown.

With --keys it checks nothing: it lists when agents of this project last asked for
API keys, for which service and session, and where the key came from. No key is
ever kept.

Exit status: 0 if everything is well; 1 if something is wrong.`

func newDoctorCommand(s *invocation.Settings) *cobra.Command {
	var showExchange, showKeys bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what duet-rpc needs, and say what is wrong and what to do",
		Long:  doctorHelp,
		Args:  invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showKeys {
				p, err := s.Project()
				if err != nil {
					return err
				}
				return doctor.ShowKeyAccesses(cmd.Context(), p, s.JSON, cmd.OutOrStdout())
			}
			show := io.Discard
			if showExchange && !s.JSON {
				show = cmd.OutOrStdout()
			}
			findings := doctor.Examine(&s.Settings, versionLine(s.Version), show)
			out := cmd.OutOrStdout()
			var err error
			if s.JSON {
				err = term.JSON(out, findings)
			} else {
				err = doctor.Print(out, findings)
			}
			if err != nil {
				return err
			}
			for _, f := range findings {
				if f.State == doctor.Wrong {
					return fmt.Errorf("something is wrong: %s", f.Check)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&showExchange, "exchange", false, "show the messages that go between an editor and duet-rpc")
	cmd.Flags().BoolVar(&showKeys, "keys", false, "list when agents asked for API keys, and where the keys came from")
	return cmd
}
