package hubprocess

import (
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// Settings are what a process of the project was told by its flags and the
// environment. They are not changed once they are in use.
type Settings struct {
	Version     string // of this program
	LogLevel    logging.Level
	NoColor     bool
	TestMethods bool     // serve those for authors of clients, too
	Listen      []string // more sockets, as paths
	Root        string   // of the project; "": found from the working directory
	Limits      frame.Limits
	// AnswerWithin is how long a hub may take to answer who comes to it.
	AnswerWithin time.Duration
	// AnyBuild has a daemon of another build used as it is, whatever its protocol: to look at it,
	// or to end it.
	AnyBuild bool
	// Notice, if set, gets what the daemon has for the user, once.
	Notice func(text string)
	// Idle, if set, is after how long without clients a daemon ends that this process starts.
	Idle time.Duration
}

// Project is the project that the process is about.
func (s *Settings) Project() (project.Project, error) {
	return config.Owners(os.Getenv).Find(s.Root)
}

// Config reads the project's configuration as it is now.
func (s *Settings) Config() (*config.Config, error) { return s.ConfigFor(false) }

// ConfigFor reads the configuration; restricted, as it is for somebody who may not
// trust the workspace.
func (s *Settings) ConfigFor(restricted bool) (*config.Config, error) {
	p, err := s.Project()
	if err != nil {
		return nil, err
	}
	user, err := config.UserFile(os.Getenv)
	if err != nil {
		return nil, err
	}
	return config.Load(config.Sources{Project: p.ConfigFile(), User: user, Restricted: restricted})
}

// OpenLog opens the log. Where it goes, and whether it has every message, is
// said by the environment.
func (s *Settings) OpenLog() *logging.Log {
	return logging.Open(logging.Options{
		Level: s.LogLevel.Slog(), Path: os.Getenv("DUET_RPC_LOG"), NoColor: s.NoColor, Messages: logging.LogsMessages(os.Getenv),
	})
}

// LiveConfig is the configuration of a project as it is whenever it is asked for.
func (s *Settings) LiveConfig(p project.Project) (*config.Live, error) {
	user, err := config.UserFile(os.Getenv)
	if err != nil {
		return nil, err
	}
	return config.NewLive(config.Sources{Project: p.ConfigFile(), User: user}, func(restricted bool) (*config.Config, error) {
		c, err := s.ConfigFor(restricted)
		if err != nil {
			return nil, config.Explain(err)
		}
		return c, nil
	})
}

// ForAnyBuild returns the settings with AnyBuild.
func (s *Settings) ForAnyBuild() *Settings {
	own := *s
	own.AnyBuild = true
	return &own
}
