package foreign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/refusal"
	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// TakeOver takes over the history, as the project's hub or by the one that runs,
// and says on out what was taken and where the database is now.
func (f *Database) TakeOver(ctx context.Context, s *hubprocess.Settings, p project.Project, log *logging.Log, out io.Writer) error {
	taken, err := host.TakeOver(ctx, s, f.Database, log)
	result := taken.Result
	if taken.From != "" {
		f.Database, f.Now = taken.From, taken.Now
	}
	if errors.As(err, new(*project.HeldError)) {
		result, err = f.takeByHub(ctx, s, p, err)
	}
	if err != nil {
		return err
	}
	f.Taken, f.Result = true, &result
	fmt.Fprintf(out, "Taken over: %s.\nThe old database is at %q, and is no longer needed.\n", result.Summary(), f.Now)
	return nil
}

// takeByHub has the hub that runs take over the history; running says which
// that is.
func (f *Database) takeByHub(ctx context.Context, s *hubprocess.Settings, p project.Project, running error) (history.Result, error) {
	var taken struct {
		history.Result
		Database string
	}
	alone := fmt.Errorf("%w; stop that one first: close the editors of this project, run `duet-rpc daemon stop`, then `duet-rpc trust --database %s`",
		running, output.Quoted(f.Database))
	directory := filepath.Dir(f.Database)
	if filepath.Dir(directory) != p.StateDir {
		return taken.Result, alone // a hub takes only what is the project's
	}
	c, err := hubprocess.Dial(ctx, s, p)
	if err != nil {
		return taken.Result, fmt.Errorf("%w (%w)", alone, err)
	}
	defer c.Close()
	err = c.Call(ctx, "daemon.takeHistory", map[string]string{"directory": filepath.Base(directory)}, &taken, client.WithTimeout(0))
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Code == jsonrpc2.CodeMethodNotFound:
		return taken.Result, alone // it is of an earlier version
	case err != nil:
		return taken.Result, fmt.Errorf("%w; %w", refusal.InWords(err), alone)
	}
	f.Now = taken.Database
	return taken.Result, nil
}
