// Package preview shows the pages of a project, and stores their console messages. Clients with a
// browser get the files of one directory; the agent gets the messages.
package preview

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Options configure a Preview. All are required.
type Options struct {
	Root string // project root, absolute
	// Configured returns the current configuration for the client of ctx.
	Configured func(ctx context.Context) (config.Preview, error)
	Store      store.Reader
	Write      func(context.Context, func(store.Tx) error) error
	// Run finds the turn that an id names: of a session the last one, and the
	// last of all for "". Zero means none.
	Run func(ctx context.Context, id string) (domain.TurnInSession, error)
	// Scope resolves such an id to a turn or a session; the other one is 0.
	Scope func(ctx context.Context, id string) (turn, session int64, err error)
	// WithoutKeys redacts the API keys of a session in a text.
	WithoutKeys func(session int64, text string) string
}

// A Preview shows pages. Its methods may be called from any goroutine.
type Preview struct {
	opts    Options
	reading chan struct{} // holds a value per file being read
	audience
	limiter limiter
}

// readers limits concurrent file reads.
const readers = 4

// New makes a Preview.
func New(opts Options) *Preview {
	return &Preview{opts: opts, reading: make(chan struct{}, readers)}
}

// Navigate sends all clients that show the preview to an address, and returns their number. Its
// errors are those of [Preview.Fetch]; a missing file is an error too.
func (p *Preview) Navigate(ctx context.Context, url, origin string) (path string, shown int, err error) {
	address, err := Parse(url, origin)
	if err != nil {
		return "", 0, err
	}
	s, done, err := p.open(ctx)
	if err != nil {
		return "", 0, err
	}
	defer done()
	switch name, redirect, err := s.find(address); {
	case err != nil:
		return "", 0, err
	case name == "" && redirect == "":
		return "", 0, refuse("there is no such file in the preview")
	}
	path = address.String()
	return path, p.tell(Update{Navigate: path}), nil
}

// Refresh makes all clients that show the preview reload it, and returns their number.
func (p *Preview) Refresh() (shown int) { return p.tell(Update{Refresh: true}) }
