package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
)

// askYes asks on the terminal. No answer is no, which the error says in words,
// and where nobody can be asked what to run again.
func askYes(cmd *cobra.Command, s *settings, question, no, again string) error {
	if s.json || !tty.Is(os.Stdin) {
		return fmt.Errorf("%s: run `%s` on a terminal, or add --yes", no, again)
	}
	tty.DiscardTyped(os.Stdin)
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errors.New(no)
}
