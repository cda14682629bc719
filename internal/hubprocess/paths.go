package hubprocess

import (
	"os"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

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
