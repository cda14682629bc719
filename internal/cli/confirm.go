package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
)

// askYes asks on the terminal. No answer is no, which the error says in words,
// and where nobody can be asked what to run again.
func askYes(cmd *cobra.Command, s *settings, question, no, again string) error {
	if s.json || !tty.Is(os.Stdin) {
		return fmt.Errorf("%s: run `%s` on a terminal, or add --yes", no, again)
	}
	side := cmd.ErrOrStderr()
	if yes, err := tty.Yes(cmd.InOrStdin(), side, output.Asking(side, question)); yes || err != nil {
		return err
	}
	return errors.New(no)
}
