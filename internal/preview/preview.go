// Package preview shows the pages that a project makes, and keeps what they say: files of one
// directory for clients that have a browser, and their messages for the agent that works on
// them.
package preview

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Options are what a Preview needs. All are required.
type Options struct {
	Root string // of the project, absolute
	// Configured is what the configuration says now, to whoever asks with ctx.
	Configured func(ctx context.Context) (config.Preview, error)
	Store      store.Reader
	Write      func(context.Context, func(store.Tx) error) error
	// Run finds the run that an id of a session, a conversation or a task means: the last
	// of a conversation, and the last of all for "". The zero value is none.
	Run func(ctx context.Context, id string) (domain.Session, error)
	// Scope is what such an id stands for: a run or a conversation; the other one is 0.
	Scope func(ctx context.Context, id string) (run, thread int64, err error)
	// WithoutKeys takes the API keys of a conversation out of a text.
	WithoutKeys func(thread int64, text string) string
}

// A Preview shows pages. Its methods may be called from any goroutine.
type Preview struct {
	opts    Options
	reading chan struct{} // has one in it for each file that is being read
	audience
	limiter limiter
}

// readers is how many files are read at a time.
const readers = 4

// New makes a Preview.
func New(opts Options) *Preview {
	return &Preview{opts: opts, reading: make(chan struct{}, readers)}
}

// Navigate has all clients that show the preview go to an address, and tells how many those
// are. The error is one of [Preview.Fetch]; an address that has nothing is one, too.
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
	return path, p.tell(Told{Navigate: path}), nil
}

// Refresh has all clients that show the preview load it again, and tells how many those are.
func (p *Preview) Refresh() (shown int) { return p.tell(Told{Refresh: true}) }
