package host

import (
	"errors"
	"io/fs"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/trust"
)

// configFiles are the files that the configuration is in.
func configFiles(p project.Project) ([]string, error) {
	user, err := config.UserFile(os.Getenv)
	if err != nil {
		return nil, err
	}
	return []string{p.ConfigFile(), user}, nil
}

// liveConfig is the configuration of a project as it is whenever it is asked for.
func (s *Settings) liveConfig(p project.Project) (*config.Live, error) {
	user, err := config.UserFile(os.Getenv)
	if err != nil {
		return nil, err
	}
	return config.NewLive(config.Sources{Project: p.ConfigFile(), User: user}, func(restricted bool) (*config.Config, error) {
		c, err := s.config(restricted)
		if err != nil {
			return nil, config.Explain(err)
		}
		return c, nil
	})
}

// trustWorkspace trusts the project's file as it is now, because its user
// trusts the workspace in the editor.
func trustWorkspace(s *Settings, log *logging.Log) error {
	p, err := s.Project()
	if err != nil {
		return err
	}
	file, err := config.Inspect(p.ConfigFile(), os.Getenv)
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*project.ForeignError)) {
		return nil // there is nothing to trust
	}
	if err != nil {
		return err
	}
	trusted, err := trust.Default(os.Getenv)
	if err != nil {
		return err
	}
	log.Info("the editor trusts the workspace", "file", file.File)
	return file.Trust(trusted)
}
