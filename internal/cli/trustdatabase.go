package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/foreign"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/reach"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// trustDatabase shows what a database holds that is not used, and takes over
// its history if the user says yes. path is "" for the newest that there is.
func trustDatabase(ctx context.Context, cmd *cobra.Command, s *invocation.Settings, o trustOptions, path string) error {
	p, err := s.Project()
	if err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	if path, err = foreign.Find(ctx, p, path); err != nil {
		return err
	}
	found, err := foreign.Look(ctx, path)
	out := cmd.OutOrStdout()
	if s.JSON {
		w := out
		defer func() { _ = output.JSON(w, found) }()
		out = io.Discard
	}
	if err != nil {
		return err
	}
	found.Print(out)
	switch {
	case found.Problem != "":
		return errors.New("nothing of this database can be taken over; it stays where it is")
	case found.Holds.Conversations == 0:
		fmt.Fprintln(out, "There is no history to take over.")
		return nil
	case o.show:
		return nil
	case !o.yes:
		if err := invocation.AskYes(cmd, s, "Take over its history?", "not taken over", "duet-rpc trust --database"); err != nil {
			return err
		}
	}
	log := logging.Open(logging.Options{Level: reach.QuietLevel + 1, NoColor: s.NoColor}) // what is set aside is said here
	defer log.Close(reach.LogGrace)
	return found.TakeOver(ctx, &s.Settings, p, log, out)
}
