// Package reach connects commands with the project's hub: with the one that runs, and
// where none does with what else serves them: what was kept, a hub for the
// moment of a change, or one in this process until what it runs has ended.
package reach

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// A Without is what serves a command where no hub runs.
type Without string

const (
	Nothing Without = ""        // it is refused
	Daemon  Without = "daemon"  // one that is started, if the configuration wants one
	Started Without = "started" // one that is started, whatever the configuration wants
	Kept    Without = "kept"    // what was kept: the command changes nothing
	Change  Without = "change"  // a hub for the moment: it changes what is kept, and starts nothing
)

// Options are how a hub is reached.
type Options struct {
	Settings *hubprocess.Settings
	Without  Without
	Client   []client.Option
	OnlyKept func() // is called when what was kept has served; may be nil
	Quick    bool   // copies no database: a shell waits at a key
	// LevelGiven says that the user has said how much is logged.
	LevelGiven bool
}

// LogGrace is how long the end of a command waits for its log to be written.
const LogGrace = 400 * time.Millisecond

// Do runs do with a connection to the project's hub, or to what serves where none
// runs. Signals are left to do.
func Do(ctx context.Context, o Options, do func(context.Context, *client.Client) error) error {
	s := o.Settings
	p, err := s.Project()
	if err != nil {
		return err
	}
	opts := o.Client
	if logging.LogsMessages(os.Getenv) {
		log := s.OpenLog()
		defer log.Close(LogGrace)
		messages := log.Messages()
		opts = append(opts, client.WithTrace(func(sent bool, message []byte) { messages("hub", sent, message) }))
	}
	c, end, kept, err := o.connect(ctx, p, opts)
	if err != nil {
		return err
	}
	defer end()
	if err = do(ctx, c); err == nil && kept && o.OnlyKept != nil {
		o.OnlyKept()
	}
	return err
}

// looks is how often a hub may begin while something is looked up.
const looks = 50

// LookUp is [Do] for what only asks, and prints nothing: it is asked again where a hub has begun
// meanwhile.
func LookUp(ctx context.Context, o Options, do func(context.Context, *client.Client) error) error {
	var pause hubprocess.Pause
	for n := 1; ; n++ {
		err := Do(ctx, o, do)
		if n == looks || !host.IsChanged(err) || pause.Wait(ctx) != nil {
			return err
		}
	}
}

// connect returns what serves the command, and what ends that; kept tells that it is
// what was kept.
func (o *Options) connect(ctx context.Context, p project.Project, opts []client.Option) (c *client.Client, end func(), kept bool, err error) {
	s := o.Settings
	switch o.Without {
	case Kept:
		return host.Reach(ctx, s, p, o.Quick, opts...)
	case Change:
		log := openLog(s, o.LevelGiven)
		c, ended, err := host.ToChange(ctx, s, p, log, opts...)
		if err != nil {
			log.Close(LogGrace)
			return nil, nil, false, err
		}
		return c, func() { ended(); log.Close(LogGrace) }, false, nil
	}
	c, err = hubprocess.Dial(ctx, s, p, opts...)
	starts := o.Without == Started || o.Without == Daemon && hubprocess.WantsDaemon(s)
	if err != nil && starts && hubprocess.MayComeYet(err) {
		if err = hubprocess.EnsureDaemon(ctx, s, p); err == nil {
			c, err = hubprocess.Dial(ctx, s, p, opts...)
		}
	}
	if err != nil {
		return nil, nil, false, err
	}
	return c, func() { c.Close() }, false, nil
}

// QuietLevel is how much is logged beside what a command prints unless told otherwise:
// what went wrong.
const QuietLevel = slog.LevelError

// openLog opens the log of a hub in this process.
func openLog(s *hubprocess.Settings, levelGiven bool) *logging.Log {
	if !levelGiven {
		s.LogLevel = logging.Level(QuietLevel)
	}
	return s.OpenLog()
}
