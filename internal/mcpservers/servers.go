// Package mcpservers tries the MCP servers that agents get, and tells the conversation
// whose agent got them which do not work: agents say nothing of servers that do not
// start.
package mcpservers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/mcpprobe"
)

const (
	defaultPatience = 15 * time.Second // some fetch themselves first
	atOnce          = 4                // servers that are tried at once
	most            = 100              // that are tried or wait for it
	remembered      = 4096             // of what is known; what is forgotten is tried, and told, again
)

// Options say what Servers stand on.
type Options struct {
	// Enabled tells whether servers are tried at all; it is asked each time.
	Enabled func() bool
	// Tell tells the conversation of a run. It is called by goroutines of Servers.
	Tell func(ctx context.Context, run int64, text string)
	// Patience is how long a server may take to answer. Default 15 s.
	Patience time.Duration
}

// Servers are those that were tried. A server that works is tried once, as long as its
// definition stays; a conversation is told once of one that does not, as long as it is among the last
// that were told. Methods may be
// called from any goroutine.
type Servers struct {
	opts   Options
	ctx    context.Context
	cancel context.CancelFunc
	room   chan struct{}
	work   background.Group

	mu    sync.Mutex // guards the fields below
	works *recent[definition]
	tried map[definition][]asker // those who wait for what comes of it
	told  *recent[toldOf]
}

// A definition is a hash of a server's, with the environment and the directory in which
// it runs: these may hold secrets.
type definition [sha256.Size]byte

// An asker is a run whose agent got a server of a name.
type asker struct {
	run, thread int64
	server      string
}

// A toldOf is what a conversation was told.
type toldOf struct {
	thread int64
	server definition
}

// New makes Servers. They have to be closed, or ctx has to end.
func New(ctx context.Context, opts Options) *Servers {
	s := &Servers{
		opts: opts, room: make(chan struct{}, atOnce),
		works: newRecent[definition](remembered), tried: make(map[definition][]asker), told: newRecent[toldOf](remembered),
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Close ends what is tried.
func (s *Servers) Close(ctx context.Context) error {
	s.cancel()
	return s.work.Close(ctx)
}

// A Gets is an agent of a run that gets servers.
type Gets struct {
	Run, Thread int64
	Dir         string
	Environment map[string]string // the agent's own, without keys
	Servers     []catalog.MCPServer
}

// Try tries those servers of an agent of which it is not known that they work. It
// returns at once.
func (s *Servers) Try(g Gets) {
	if len(g.Servers) == 0 || !s.opts.Enabled() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range g.Servers {
		d, err := hash(server, g)
		waiting, isTried := s.tried[d]
		if err != nil || s.works.has(d) || s.told.has(toldOf{g.Thread, d}) || !isTried && len(s.tried) >= most {
			continue
		}
		s.tried[d] = append(waiting, asker{g.Run, g.Thread, server.Name})
		if !isTried {
			s.work.Go(func() { s.try(d, server, g) })
		}
	}
}

// Unanswered are the names of the servers of a run's agent that are tried and have not
// answered yet.
func (s *Servers) Unanswered(run int64) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, askers := range s.tried {
		for _, who := range askers {
			if who.run == run {
				names = append(names, who.server)
			}
		}
	}
	slices.Sort(names)
	return names
}

func hash(server catalog.MCPServer, g Gets) (d definition, err error) {
	text, err := json.Marshal([]any{server, g.Dir, g.Environment})
	return sha256.Sum256(text), err
}

// try tries a server, and tells those who wait for it if it does not work.
func (s *Servers) try(d definition, server catalog.MCPServer, g Gets) {
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	case <-s.ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, cmp.Or(s.opts.Patience, defaultPatience))
	_, problem := mcpprobe.Try(ctx, server, g.Dir, process.NewEnvironment(g.Environment))
	cancel()
	if s.ctx.Err() != nil {
		return
	}
	text := ""
	if problem != nil && !problem.NoProgram { // of a program that is not there the executor tells
		text = WithoutSecrets(problem.Of(server.Name), server, g.Environment)
	}
	for _, who := range s.tells(d, problem == nil, text != "") {
		s.opts.Tell(s.ctx, who.run, text)
	}
}

// tells notes what came of a server, and returns those who are to be told that.
func (s *Servers) tells(d definition, works, tell bool) (askers []asker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waited := s.tried[d]
	delete(s.tried, d)
	if works {
		s.works.add(d)
	}
	for _, who := range waited {
		if key := (toldOf{who.thread, d}); tell && !s.told.has(key) {
			s.told.add(key)
			askers = append(askers, who)
		}
	}
	return askers
}
