package host

import (
	"errors"
	"io/fs"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/trust"
)

// trustWorkspace trusts the project's file as it is now, because its user
// trusts the workspace in the editor.
func trustWorkspace(s *hubprocess.Settings, log *logging.Log) error {
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
