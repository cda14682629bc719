package doctor

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/database"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

const (
	// shownAccesses is how many times that agents asked for keys are shown.
	shownAccesses = 100
	// readAccessesWithin is how long a database may take to tell of them.
	readAccessesWithin = 20 * time.Second
)

// ShowKeyAccesses prints when agents of a project asked for API keys, and what
// became of it.
func ShowKeyAccesses(ctx context.Context, p project.Project, asJSON bool, out io.Writer) error {
	if err := p.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readAccessesWithin)
	defer cancel()
	list, err := database.KeyAccesses(ctx, p, shownAccesses)
	switch {
	case err != nil:
		return err
	case asJSON:
		return term.JSON(out, list)
	case len(list) == 0:
		_, err := fmt.Fprintln(out, "no agent has asked for a key here")
		return err
	}
	table := term.NewTable(out, "TIME", "SERVICE", "OUTCOME", "SESSION")
	table.Below("SESSION")
	for _, a := range list {
		table.Row(a.At.Local().Format(time.DateTime), a.Service, a.Outcome, a.SessionID)
	}
	return table.Flush()
}
