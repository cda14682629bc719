package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/redact"
)

// This file tries the MCP servers that agents get, and tells the conversation
// whose agent got them which do not work: agents say nothing of servers that do not
// start.

// A recent set has the values that were added last, so many at the most.
type recent[T comparable] struct {
	most  int
	known map[T]struct{}
	order []T // a ring, once it is full
	next  int
}

func newRecent[T comparable](most int) *recent[T] {
	return &recent[T]{most: most, known: make(map[T]struct{})}
}

func (r *recent[T]) has(value T) bool {
	_, ok := r.known[value]
	return ok
}

// add adds a value, and forgets the oldest one where there are too many.
func (r *recent[T]) add(value T) {
	if r.has(value) {
		return
	}
	r.known[value] = struct{}{}
	if len(r.order) < r.most {
		r.order = append(r.order, value)
		return
	}
	delete(r.known, r.order[r.next])
	r.order[r.next] = value
	r.next = (r.next + 1) % r.most
}

// secretName is what a flag, a variable or a header is called that has a secret.
var secretName = lazyregexp.New(`(?i)key|token|secret|passw|pwd|auth|credential|bearer|cookie`)

// withoutSecrets takes out of a text what may be secret of a server's definition: its
// variables, its headers, the user and the query of its URL, and arguments that are
// called as secrets are.
func withoutSecrets(text string, server catalog.MCPServer, environment map[string]string) string {
	var secrets definitionSecrets
	for _, values := range []map[string]string{server.Env, server.Headers, environment} {
		for name, value := range values {
			if !clientenv.IsPublic(name) && !filepath.IsAbs(value) { // where things are says what is wrong
				secrets.add(value)
			}
		}
	}
	secrets.address(server.URL)
	for i, arg := range server.Args {
		secrets.address(arg)
		name, value, joined := cutAny(arg, "=:")
		switch flag := strings.HasPrefix(arg, "-"); {
		case !secretName().MatchString(name):
			// as in --header "Authorization: Bearer …", which is an argument of its own
			if inner, rest, ok := cutAny(value, "=:"); ok && secretName().MatchString(inner) {
				secrets.add(rest)
			}
		case joined:
			secrets.add(value)
		case flag && i+1 < len(server.Args):
			secrets.add(server.Args[i+1])
		}
	}
	return secrets.Text(text)
}

// definitionSecrets are the secrets of a server's definition.
type definitionSecrets struct{ redact.Secrets }

// add makes a value secret, and what follows the first word of it, as in "Bearer …".
func (s *definitionSecrets) add(value string) {
	value = strings.TrimSpace(value)
	s.Add(value)
	if _, word, ok := strings.Cut(value, " "); ok {
		s.Add(strings.TrimSpace(word))
	}
	s.address(value)
}

// address makes the user and the query of a URL secret, as they are written and as they
// are meant. What is none has what stands where a URL has them.
func (s *definitionSecrets) address(text string) {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		return
	}
	rest, fragment, _ := strings.Cut(rest, "#")
	s.value(fragment)
	rest, query, _ := strings.Cut(rest, "?")
	s.value(query)
	for _, part := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		_, value, _ := strings.Cut(part, "=")
		s.value(value)
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		s.value(rest[:at])
		_, password, _ := strings.Cut(rest[:at], ":")
		s.value(password)
	}
}

// value makes a part of a URL secret.
func (s *definitionSecrets) value(escaped string) {
	s.Add(escaped)
	if meant, err := url.QueryUnescape(escaped); err == nil {
		s.Add(meant)
	}
	if meant, err := url.PathUnescape(escaped); err == nil { // which leaves a plus as it is
		s.Add(meant)
	}
}

// cutAny cuts a text at the first of some characters.
func cutAny(text, chars string) (before, after string, found bool) {
	i := strings.IndexAny(text, chars)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

const (
	defaultPatience = 15 * time.Second // some fetch themselves first
	atOnce          = 4                // servers that are tried at once
	most            = 100              // that are tried or wait for it
	remembered      = 4096             // of what is known; what is forgotten is tried, and told, again
)

// ServersOptions say what Servers stand on.
type ServersOptions struct {
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
	opts   ServersOptions
	ctx    context.Context
	cancel context.CancelFunc
	room   chan struct{}
	work   background.Group

	mu    sync.Mutex // guards the fields below
	works *recent[mcpserversDefinition]
	tried map[mcpserversDefinition][]asker // those who wait for what comes of it
	told  *recent[toldOf]
}

// A mcpserversDefinition is a hash of a server's, with the environment and the directory in which
// it runs: these may hold secrets.
type mcpserversDefinition [sha256.Size]byte

// An asker is a run whose agent got a server of a name.
type asker struct {
	run, thread int64
	server      string
}

// A toldOf is what a conversation was told.
type toldOf struct {
	thread int64
	server mcpserversDefinition
}

// NewServers makes Servers. They have to be closed, or ctx has to end.
func NewServers(ctx context.Context, opts ServersOptions) *Servers {
	s := &Servers{
		opts: opts, room: make(chan struct{}, atOnce),
		works: newRecent[mcpserversDefinition](remembered), tried: make(map[mcpserversDefinition][]asker), told: newRecent[toldOf](remembered),
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

func hash(server catalog.MCPServer, g Gets) (d mcpserversDefinition, err error) {
	text, err := json.Marshal([]any{server, g.Dir, g.Environment})
	return sha256.Sum256(text), err
}

// try tries a server, and tells those who wait for it if it does not work.
func (s *Servers) try(d mcpserversDefinition, server catalog.MCPServer, g Gets) {
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	case <-s.ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, cmp.Or(s.opts.Patience, defaultPatience))
	_, problem := try(ctx, server, g.Dir, process.NewEnvironment(g.Environment))
	cancel()
	if s.ctx.Err() != nil {
		return
	}
	text := ""
	if problem != nil && !problem.NoProgram { // of a program that is not there the executor tells
		text = withoutSecrets(problem.Of(server.Name), server, g.Environment)
	}
	for _, who := range s.tells(d, problem == nil, text != "") {
		s.opts.Tell(s.ctx, who.run, text)
	}
}

// tells notes what came of a server, and returns those who are to be told that.
func (s *Servers) tells(d mcpserversDefinition, works, tell bool) (askers []asker) {
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
