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

// This file tests the MCP servers of agents and reports failing ones in the session, because
// agents do not report servers that do not start.

// recent is a set of the last added values, limited in number.
type recent[T comparable] struct {
	most  int
	known map[T]struct{}
	order []T // a ring once full
	next  int
}

func newRecent[T comparable](most int) *recent[T] {
	return &recent[T]{most: most, known: make(map[T]struct{})}
}

func (r *recent[T]) has(value T) bool {
	_, ok := r.known[value]
	return ok
}

// add adds a value and drops the oldest beyond the limit.
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

// secretName matches the names of flags, variables and headers with secrets.
var secretName = lazyregexp.New(`(?i)key|token|secret|passw|pwd|auth|credential|bearer|cookie`)

// withoutSecrets redacts a server definition's secrets in a text: its variables, its headers, the
// user and query of its URL, and arguments with secret names.
func withoutSecrets(text string, server catalog.MCPServer, environment map[string]string) string {
	var secrets definitionSecrets
	for _, values := range []map[string]string{server.Env, server.Headers, environment} {
		for name, value := range values {
			if !clientenv.IsPublic(name) && !filepath.IsAbs(value) { // paths help to explain the problem
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
			// as in --header "Authorization: Bearer …", which is one argument
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

// definitionSecrets are the secrets of a server definition.
type definitionSecrets struct{ redact.Secrets }

// add makes a value secret, and also the part after its first word, as in "Bearer …".
func (s *definitionSecrets) add(value string) {
	value = strings.TrimSpace(value)
	s.Add(value)
	if _, word, ok := strings.Cut(value, " "); ok {
		s.Add(strings.TrimSpace(word))
	}
	s.address(value)
}

// address makes the user and the query of a URL secret, both escaped and unescaped. For an invalid
// URL it uses their positions.
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
	if meant, err := url.PathUnescape(escaped); err == nil { // keeps a plus unchanged
		s.Add(meant)
	}
}

// cutAny cuts a text at the first of several characters.
func cutAny(text, chars string) (before, after string, found bool) {
	i := strings.IndexAny(text, chars)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

const (
	defaultPatience = 15 * time.Second // some download themselves first
	atOnce          = 4                // concurrent tests
	most            = 100              // servers in test or waiting
	remembered      = 4096             // remembered results; a dropped one is tested and reported again
)

// ServersOptions configure Servers.
type ServersOptions struct {
	// Enabled reports whether to test servers; it is called each time.
	Enabled func() bool
	// Tell adds a notice to the session of a turn. Goroutines of Servers call it.
	Tell func(ctx context.Context, turn int64, text string)
	// Patience limits the time for an answer. Default 15 s.
	Patience time.Duration
}

// Servers tests MCP servers. A working server is tested once per definition. A session gets
// one notice per failing server, as long as the notice is remembered. Methods may be called from
// any goroutine.
type Servers struct {
	opts   ServersOptions
	ctx    context.Context
	cancel context.CancelFunc
	room   chan struct{}
	work   background.Group

	mu       sync.Mutex // guards the fields below
	works    *recent[mcpserversDefinition]
	tried    map[mcpserversDefinition][]asker // turns that wait for the result
	notified *recent[noticeKey]
}

// mcpserversDefinition is a hash of a server definition with its environment and directory, which
// may contain secrets.
type mcpserversDefinition [sha256.Size]byte

// asker is a turn whose agent got a server under a name.
type asker struct {
	turn, session int64
	server        string
}

// noticeKey identifies a notice to a session.
type noticeKey struct {
	session int64
	server  mcpserversDefinition
}

// NewServers returns Servers. They end by Close or with ctx.
func NewServers(ctx context.Context, opts ServersOptions) *Servers {
	s := &Servers{
		opts: opts, room: make(chan struct{}, atOnce),
		works: newRecent[mcpserversDefinition](remembered), tried: make(map[mcpserversDefinition][]asker),
		notified: newRecent[noticeKey](remembered),
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Close ends running tests.
func (s *Servers) Close(ctx context.Context) error {
	s.cancel()
	return s.work.Close(ctx)
}

// Gets is a turn's agent with its servers.
type Gets struct {
	Turn, Session int64
	Dir           string
	Environment   map[string]string // the agent's own, without secrets
	Servers       []catalog.MCPServer
}

// Try tests those servers of an agent that are not known to work. It returns at once.
func (s *Servers) Try(g Gets) {
	if len(g.Servers) == 0 || !s.opts.Enabled() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range g.Servers {
		d, err := hash(server, g)
		waiting, isTried := s.tried[d]
		if err != nil || s.works.has(d) || s.notified.has(noticeKey{g.Session, d}) || !isTried && len(s.tried) >= most {
			continue
		}
		s.tried[d] = append(waiting, asker{g.Turn, g.Session, server.Name})
		if !isTried {
			s.work.Go(func() { s.try(d, server, g) })
		}
	}
}

// Unanswered lists the servers of a turn's agent that are being tested.
func (s *Servers) Unanswered(turn int64) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, askers := range s.tried {
		for _, who := range askers {
			if who.turn == turn {
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

// try tests a server and notifies the waiting turns if it fails.
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
	if problem != nil && !problem.NoProgram { // the executor reports a missing program
		text = withoutSecrets(problem.Of(server.Name), server, g.Environment)
	}
	for _, who := range s.tells(d, problem == nil, text != "") {
		s.opts.Tell(s.ctx, who.turn, text)
	}
}

// tells records the result of a server, and returns the turns to notify.
func (s *Servers) tells(d mcpserversDefinition, works, tell bool) (askers []asker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waited := s.tried[d]
	delete(s.tried, d)
	if works {
		s.works.add(d)
	}
	for _, who := range waited {
		if key := (noticeKey{who.session, d}); tell && !s.notified.has(key) {
			s.notified.add(key)
			askers = append(askers, who)
		}
	}
	return askers
}
