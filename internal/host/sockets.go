package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/sandbox"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// sockets are the sockets for clients: the project's own, those of --listen, and the one that
// AIWG's command line looks for. It may be used by any goroutine.
type sockets struct {
	server *server.Server
	log    *slog.Logger

	serving *sync.WaitGroup // a goroutine for each socket that is or was open

	opening sync.Mutex // held while sockets are opened or closed
	extra   []string   // the paths of --listen, also of clients; guarded by opening

	mu        sync.Mutex // guards the fields below
	listeners []net.Listener
	pidFile   *AIWGPIDFile      // nil: AIWG's command line is not served
	trouble   string            // why it is not, if it should be
	unopened  map[string]string // paths of --listen that cannot be opened, with the reason
}

// open opens the sockets; connections over them end with ctx. The error is that of the project's
// own socket.
func (s *sockets) open(ctx context.Context, p project.Project) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	if _, err := socket.RaiseFileLimit(); err != nil {
		s.log.Debug("the limit of open files stays as it is", "err", err)
	}
	// First: a client that connects to the project's own socket finds them open.
	for _, path := range s.extra {
		_ = s.openExtra(ctx, path) // logged, and reported by health
	}
	if err := s.openForAIWG(ctx, p); err != nil {
		s.log.Warn("AIWG's command line cannot reach this daemon", "err", err)
		s.mu.Lock()
		s.trouble = "AIWG's command line cannot reach this daemon: " + err.Error()
		s.mu.Unlock()
	}
	path, indirect, err := socket.Path(p.StateDir)
	if err == nil {
		err = s.openAt(ctx, path)
	}
	if err == nil && indirect {
		err = socket.Announce(p.StateDir, path)
	}
	return err
}

// add opens a socket that a client wants. Connections over it end with ctx. It stays open until
// close.
func (s *sockets) add(ctx context.Context, path string) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	if ctx.Err() != nil {
		return domain.ErrEnding
	}
	if slices.Contains(s.paths(), path) {
		return nil
	}
	if err := s.openExtra(ctx, path); err != nil {
		return err
	}
	s.extra = append(s.extra, path)
	return nil
}

// openExtra opens a socket of --listen.
func (s *sockets) openExtra(ctx context.Context, path string) error {
	err := s.openAt(ctx, path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.unopened, path)
		return nil
	}
	err = fmt.Errorf("cannot open the socket of --listen: %w", err)
	s.log.Error(err.Error())
	if s.unopened == nil {
		s.unopened = make(map[string]string)
	}
	s.unopened[path] = err.Error()
	return err
}

func (s *sockets) openAt(ctx context.Context, path string) error {
	l, err := socket.Options{Logger: s.log, Refuse: sandbox.Inside}.Listen(ctx, path)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	s.log.Info("listening", "socket", path)
	s.serving.Go(func() {
		if err := s.server.ServeListener(ctx, socket.Senders(l)); err != nil && !errors.Is(err, net.ErrClosed) {
			s.log.Error("a socket failed", "socket", path, "err", err)
		}
	})
	return nil
}

// openForAIWG opens the socket of AIWG's command line, if --listen names it or the project uses
// AIWG.
func (s *sockets) openForAIWG(ctx context.Context, p project.Project) error {
	path := AIWGSocket(p.Root)
	if !slices.Contains(s.paths(), path) {
		if used, err := UsesAIWG(p.Root); !used {
			return err
		}
		if err := CheckAIWGFree(p.Root, p.StateDir); err != nil {
			return err
		}
		if err := s.openAt(ctx, path); err != nil {
			return err
		}
	}
	file, err := WriteAIWGPID(p.Root, p.StateDir)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pidFile = file
	return err
}

// close closes the sockets. Connections continue.
func (s *sockets) close() {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pidFile != nil { // first: a reader of the file then connects to the socket
		if err := s.pidFile.Remove(); err != nil {
			s.log.Debug("what AIWG's command line reads cannot be removed", "err", err)
		}
		s.pidFile = nil
	}
	s.trouble = ""
	for _, l := range s.listeners {
		l.Close()
	}
	s.listeners = nil
}

// unserved lists the clients that look for this process and cannot reach it, with the reason.
func (s *sockets) unserved() (problems []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble != "" {
		problems = append(problems, s.trouble)
	}
	return append(problems, s.unopenedLocked()...)
}

// issues lists the sockets of --listen that cannot be opened.
func (s *sockets) issues() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unopenedLocked()
}

func (s *sockets) unopenedLocked() []string { return slices.Sorted(maps.Values(s.unopened)) }

// paths returns the paths of the open sockets.
func (s *sockets) paths() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		paths = append(paths, l.Addr().String())
	}
	return paths
}
