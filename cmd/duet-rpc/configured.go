package main

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// agents resolves agents' names by the configuration as it is now: whoever
// edits it, or trusts it, need not restart the editor.
type agents struct {
	load  func() (*config.Config, error)
	files []string

	mu     sync.Mutex // guards the fields below
	config *config.Config
	stamps []stamp
}

// A stamp is by what a file that was changed is known.
type stamp struct {
	modified time.Time
	size     int64
}

// configFiles are the files that the configuration depends on.
func configFiles(p project.Project) ([]string, error) {
	user, err := config.UserFile(os.Getenv)
	if err != nil {
		return nil, err
	}
	trust, err := config.DefaultTrustStore(os.Getenv)
	if err != nil {
		return nil, err
	}
	return []string{p.ConfigFile(), user, trust.Path()}, nil
}

// stamp looks at the files.
func (a *agents) stamp() []stamp {
	list := make([]stamp, len(a.files))
	for i, file := range a.files {
		if info, err := os.Stat(file); err == nil {
			list[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return list
}

// take takes a configuration that was just loaded.
func (a *agents) take(c *config.Config) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config, a.stamps = c, a.stamp()
}

// Resolve is the agent of a name, or the default one for "".
func (a *agents) Resolve(name string) (config.Agent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.stamp()
	for i := range now {
		if now[i] == a.stamps[i] {
			continue
		}
		c, err := a.load()
		if err != nil {
			return config.Agent{}, configError(err)
		}
		a.config, a.stamps = c, now
		break
	}
	return a.config.Resolve(name)
}

// trustWorkspace trusts the project's file as it is now, because its user
// trusts the workspace in the editor.
func (d *domain) trustWorkspace() error {
	p, err := findProject(d.settings)
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
	trusted, err := config.DefaultTrustStore(os.Getenv)
	if err != nil {
		return err
	}
	d.log.Info("the editor trusts the workspace", "file", file.File)
	return file.Trust(trusted)
}
