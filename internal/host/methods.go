package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/server"
)

// newRegistry registers every method, with the options that both kinds of processes share. For
// notified see [handlers.RegisterDomain].
func newRegistry(s *hubprocess.Settings, log *logging.Log, core handlers.Core, domain handlers.Domain) (_ *server.Registry, notified func(context.Context)) {
	reg := server.NewRegistry()
	core.Version, core.LogLevel, core.Now, core.Logger = s.Version, log.Level, time.Now, log.Logger
	core.Trust = func() error { return trustWorkspace(s, log) }
	core.Workspaces = handlers.NewWorkspaces()
	core.Unwatched = handlers.NewUnwatched(func() bool { return project.FirstTime(os.Getenv, "work-went-on") })
	handlers.RegisterCore(reg, core)
	notes, err := agentlink.DefaultNotes(os.Getenv)
	if err != nil {
		log.Debug("what agents tell of themselves is not kept", "err", err)
	}
	domain.Version, domain.Now, domain.Logger, domain.Workspaces, domain.Unwatched = s.Version, time.Now, log.Logger, core.Workspaces, core.Unwatched
	domain.AgentNotes, domain.Configuration = notes, s.ConfigFor
	notified = handlers.RegisterDomain(reg, domain)
	if s.TestMethods {
		handlers.RegisterTestMethods(reg)
	}
	return reg, notified
}

// traceOf returns a function that logs the messages of connections; nil if message logging is
// off.
func traceOf(log *logging.Log) func(c *server.Conn, sent bool, message []byte) {
	messages := log.Messages()
	if messages == nil {
		return nil
	}
	return func(c *server.Conn, sent bool, message []byte) {
		messages(fmt.Sprintf("connection %d", c.Number()), sent, message)
	}
}

// trustWorkspace trusts the project's file in its current version, because its user trusts the
// workspace in the editor.
func trustWorkspace(s *hubprocess.Settings, log *logging.Log) error {
	p, err := s.Project()
	if err != nil {
		return err
	}
	file, err := config.Inspect(p.ConfigFile(), os.Getenv)
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*project.ForeignError)) {
		return nil // no file to trust
	}
	if err != nil {
		return err
	}
	trusted, err := config.DefaultTrust(os.Getenv)
	if err != nil {
		return err
	}
	log.Info("the editor trusts the workspace", "file", file.File)
	return file.Trust(trusted)
}
