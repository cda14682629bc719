package invocation

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
)

// AskYes asks on the terminal. No answer is no, which the error says in words,
// and where nobody can be asked what to run again.
func AskYes(cmd *cobra.Command, s *Settings, question, no, again string) error {
	if s.JSON || !tty.Is(os.Stdin) {
		return fmt.Errorf("%s: run `%s` on a terminal, or add --yes", no, again)
	}
	side := cmd.ErrOrStderr()
	if yes, err := tty.Yes(cmd.InOrStdin(), side, output.Asking(side, question)); yes || err != nil {
		return err
	}
	return errors.New(no)
}
