// Package reach connects commands with the project's hub, and starts a daemon if none runs.
package reach

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/database"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// Options are how a hub is reached.
type Options struct {
	Settings *hubprocess.Settings
	Client   []client.Option
	// Begins says that the command can be the first in a project. Any other one is refused
	// where nothing is kept: there is nothing that it could be about.
	Begins bool
}

// LogGrace is how long the end of a command waits for its log to be written.
const LogGrace = 400 * time.Millisecond

// Do runs do with a connection to the project's hub. Signals are left to do.
func Do(ctx context.Context, o Options, do func(context.Context, *client.Client) error) error {
	s := o.Settings
	opts := o.Client
	if logging.LogsMessages(os.Getenv) {
		log := s.OpenLog()
		defer log.Close(LogGrace)
		messages := log.Messages()
		opts = append(opts, client.WithTrace(func(sent bool, message []byte) { messages("hub", sent, message) }))
	}
	c, err := Dial(ctx, s, o.Begins, opts...)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(ctx, c)
}

// Dial connects to the project's hub. If none runs it starts a daemon, unless nothing is kept of
// the project and the command does not begin something.
func Dial(ctx context.Context, s *hubprocess.Settings, begins bool, opts ...client.Option) (*client.Client, error) {
	p, err := s.Project()
	if err != nil {
		return nil, err
	}
	c, err := hubprocess.Dial(ctx, s, p, opts...)
	if err == nil || !hubprocess.MayComeYet(err) {
		return c, err
	}
	if !begins && hubprocess.IsNone(err) && !database.Exists(p) {
		return nil, fmt.Errorf("%w; `duet-rpc prompt` begins a session", database.ErrNone)
	}
	if err := hubprocess.EnsureDaemon(ctx, s, p); err != nil {
		return nil, err
	}
	return hubprocess.Dial(ctx, s, p, opts...)
}

// QuietLevel is how much is logged beside what a command prints unless told otherwise:
// what went wrong.
const QuietLevel = slog.LevelError
