package invocation

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

// AskYes asks on the terminal. No answer is no, which the error says in words,
// and where nobody can be asked what to run again.
func AskYes(cmd *cobra.Command, s *Settings, question, no, again string) error {
	if s.JSON || !term.IsTerminal(os.Stdin) {
		return fmt.Errorf("%s: run `%s` on a terminal, or add --yes", no, again)
	}
	side := cmd.ErrOrStderr()
	if yes, err := term.Yes(cmd.InOrStdin(), side, term.Asking(side, question)); yes || err != nil {
		return err
	}
	return errors.New(no)
}
