package host

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/aiwg"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// sockets are what others reach the hub by: the project's own, those of --listen,
// and where AIWG's command line looks for one. One goroutine at a time opens and closes them; any may ask for the
// paths.
type sockets struct {
	server *server.Server
	log    *slog.Logger
	extra  []string // the paths of --listen

	serving *sync.WaitGroup // a goroutine for each socket that is or was open

	mu        sync.Mutex         // guards the fields below
	ctx       context.Context    // of the connections
	end       context.CancelFunc // ends ctx; nil: the sockets were not opened since they were closed for all
	closed    bool               // since they were opened, but those who had come stay
	listeners []net.Listener
	pidFile   *aiwg.PIDFile // nil: AIWG's command line is not served
	trouble   string        // why it is not, where it should be
}

// open opens the sockets, unless that was tried since they were closed;
// connections over them end with ctx. What cannot be opened is logged; an editor
// on pipes does without. The error is that of the project's own.
func (s *sockets) open(ctx context.Context, p project.Project) error {
	s.mu.Lock()
	if s.end != nil && !s.closed {
		s.mu.Unlock()
		return nil
	}
	if s.end == nil {
		s.ctx, s.end = context.WithCancel(ctx)
	}
	ctx, s.closed = s.ctx, false
	s.mu.Unlock()
	if _, err := socket.RaiseFileLimit(); err != nil {
		s.log.Debug("the limit of open files stays as it is", "err", err)
	}
	// First: who is answered on the project's own finds them open.
	for _, path := range s.extra {
		if err := s.openAt(ctx, path); err != nil {
			s.log.Error("a socket of --listen cannot be opened", "err", err)
		}
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
	if err != nil {
		s.log.Warn("the project's socket cannot be opened; other editors cannot join", "err", err)
	}
	return err
}

func (s *sockets) openAt(ctx context.Context, path string) error {
	l, err := socket.Options{Logger: s.log}.Listen(ctx, path)
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

// openForAIWG has AIWG's command line find this process: where its socket was asked for with
// --listen, or where AIWG is used.
func (s *sockets) openForAIWG(ctx context.Context, p project.Project) error {
	path := aiwg.Socket(p.Root)
	if !slices.Contains(s.paths(), path) {
		if used, err := aiwg.IsUsed(p.Root); !used {
			return err
		}
		if err := aiwg.CheckFree(p.Root, p.StateDir); err != nil {
			return err
		}
		if err := s.openAt(ctx, path); err != nil {
			return err
		}
	}
	file, err := aiwg.WritePID(p.Root, p.StateDir)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pidFile = file
	return err
}

// close closes the sockets: who comes is to find whoever is the hub. Who has come
// stays, for there may be a hub here again in a moment.
func (s *sockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pidFile != nil { // first: who reads it goes to the socket
		if err := s.pidFile.Remove(); err != nil {
			s.log.Debug("what AIWG's command line reads cannot be removed", "err", err)
		}
		s.pidFile = nil
	}
	s.trouble, s.closed = "", true
	for _, l := range s.listeners {
		l.Close()
	}
	s.listeners = nil
}

// disconnect ends the connections, too.
func (s *sockets) disconnect() {
	s.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		s.end()
		s.end = nil
	}
}

// unserved says who cannot reach this process who looks for one, and why.
func (s *sockets) unserved() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble == "" {
		return nil
	}
	return []string{s.trouble}
}

// paths are those of the sockets that are open.
func (s *sockets) paths() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		paths = append(paths, l.Addr().String())
	}
	return paths
}
