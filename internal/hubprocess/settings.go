package hubprocess

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// Settings are the settings of a process from its flags and the environment. They do not change
// once they are in use.
type Settings struct {
	Version     string // of this program
	LogLevel    logging.Level
	NoColor     bool
	TestMethods bool     // serve the methods for authors of clients, too
	Listen      []string // paths of more sockets
	Root        string   // of the project; "": found from the working directory
	Host        string   // of the project; "": this machine
	Here        string   // with Host: the project of this machine; "": found from the working directory
	Limits      frame.Limits
	// AnswerWithin is how long a hub may take to answer a new client.
	AnswerWithin time.Duration
	// EndWithin is how long a process takes at most to end after a signal, and an editor's process
	// after its editor has begun to leave.
	EndWithin time.Duration
	// AnyBuild accepts a daemon of another build, whatever its protocol: to inspect it, or to
	// end it.
	AnyBuild bool
	// Observes says that the connections only follow what happens: they keep no idle daemon running, and replace none.
	Observes bool
	// Notice, if set, receives the daemon's message for the user, once.
	Notice func(text string)
	// EnvFrom are names and patterns of more variables that the daemon gets for agents.
	EnvFrom []string
	// Idle, if set, is the lifetime without clients of a daemon that this process starts.
	Idle time.Duration
}

// Project returns the project of the process. It fails for one on another host.
func (s *Settings) Project() (project.Project, error) {
	if s.Host != "" {
		return project.Project{}, fmt.Errorf("the project is on %s: this needs one of this machine, so leave out --host", s.Host)
	}
	return config.Owners(os.Getenv).Find(s.Root)
}

// Config reads the current configuration of the project.
func (s *Settings) Config() (*config.Config, error) { return s.ConfigFor(false) }

// ConfigFor reads the configuration. With restricted, it reads it for a user who may not trust
// the workspace.
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

// OpenLog opens the log. The environment sets its destination, and whether it contains every
// message.
func (s *Settings) OpenLog() *logging.Log {
	return logging.Open(logging.Options{
		Level: s.LogLevel.Slog(), Path: os.Getenv("DUET_RPC_LOG"), NoColor: s.NoColor,
		Messages: logging.LogsMessages(os.Getenv),
	})
}

// LiveConfig returns the configuration of a project, which is read again when it changes.
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

// Paths are the paths of a project's files, whether or not they exist.
type Paths struct {
	Root     string `json:"root"`
	State    string `json:"state"`
	Database string `json:"database"`
	Socket   string `json:"socket"`
	Log      string `json:"log"` // the daemon's
	Project  string `json:"project_configuration"`
	User     string `json:"user_configuration"`
}

// Paths returns the paths of the project's files.
func (s *Settings) Paths() (Paths, error) {
	p, err := s.Project()
	if err != nil {
		return Paths{}, err
	}
	user, err := config.UserFile(os.Getenv)
	if err != nil {
		return Paths{}, err
	}
	at, err := socket.Find(p.StateDir)
	if err != nil {
		return Paths{}, err
	}
	return Paths{p.Root, p.StateDir, p.Database(), at, DaemonLog(p), p.ConfigFile(), user}, nil
}

// environment returns the notification client.environment with the environment of this process.
// Without a readable configuration it contains the variables that every agent gets.
func (s *Settings) environment() []byte {
	names := s.EnvFrom
	if c, err := s.Config(); err == nil {
		names = slices.Concat(names, c.VariablesFrom())
	}
	variables, _ := json.Marshal(clientenv.Collect(os.Environ(), names)) // strings: encoding cannot fail
	message := []byte(`{"jsonrpc":"2.0","method":"client.environment","params":{"environment":`)
	return append(append(message, variables...), "}}"...)
}
