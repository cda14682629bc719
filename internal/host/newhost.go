package host

import (
	"fmt"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/agentstatus"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/server"
)

// newHost makes a host of the project that is claimed, for a daemon of a build. Nothing is done
// before [host.begin].
func newHost(s *hubprocess.Settings, log *logging.Log, c *claim, build string) *host {
	h := &host{settings: s, log: log, claim: c}
	h.life = newLife(projectParts{h}, log.Logger)
	h.vacant = vacancy{count: h.connections, since: time.Now()}
	h.builds = newBuilds(build, h.connections)
	h.srv = server.New(newRegistry(h), server.Options{
		Limits:   s.Limits,
		Logger:   log.Logger,
		Grace:    handlerGrace,
		Released: restMemory,
		ConnEnding: func() {
			if h.ending != nil {
				h.ending()
			}
		},
		ConnEnded: h.vacant.connectionEnded,
		Trace:     traceOf(log),
	})
	h.sockets = sockets{server: h.srv, log: log.Logger, extra: s.Listen, serving: &h.serving}
	return h
}

// newRegistry registers every method.
func newRegistry(h *host) *server.Registry {
	reg := server.NewRegistry()
	workspaces := handlers.NewWorkspaces()
	unwatched := handlers.NewUnwatched(func() bool { return project.FirstTime(os.Getenv, "work-went-on") })
	handlers.RegisterCore(reg, handlers.Core{
		Version: h.settings.Version, LogLevel: h.log.Level, Now: time.Now, Logger: h.log.Logger, Issues: h.issues,
		Trust:      func() error { return trustWorkspace(h.settings, h.log) },
		Workspaces: workspaces, Build: h.meet, Unwatched: unwatched,
	})
	notes, err := agentstatus.DefaultNotes(os.Getenv)
	if err != nil {
		h.log.Debug("what agents tell of themselves is not kept", "err", err)
	}
	h.notified = handlers.RegisterDomain(reg, handlers.Domain{
		Hub: h.Hub, NextHub: h.nextHub, Version: h.settings.Version, Now: time.Now, Stop: h.life.stop, Clients: h.connections, Logger: h.log.Logger, Workspaces: workspaces,
		EditorFiles: &h.editorFiles, AgentNotes: notes, Unwatched: unwatched,
		Sockets: h.sockets.paths, Unserved: h.sockets.unserved, Configuration: h.settings.ConfigFor,
	})
	if h.settings.TestMethods {
		handlers.RegisterTestMethods(reg)
	}
	return reg
}

// traceOf logs the messages of connections, if that is wanted; else it is nil.
func traceOf(log *logging.Log) func(c *server.Conn, sent bool, message []byte) {
	messages := log.Messages()
	if messages == nil {
		return nil
	}
	return func(c *server.Conn, sent bool, message []byte) {
		messages(fmt.Sprintf("connection %d", c.Number()), sent, message)
	}
}
