// Package adoption takes in conversations that an agent has had without Duet.
package adoption

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Options say whom an Adoption works with. All are needed.
type Options struct {
	Store        store.Store
	Query        *query.Queries
	Conversation *conversation.Writer
	Intake       *intake.Intake
	Root         string // of the project
	// Write makes a change, with errors for users; Note is told how another one went.
	Write func(ctx context.Context, change func(store.Tx) error) error
	Note  func(error) error
	// Directory is the directory that a caller means, absolute.
	Directory func(path string) (string, error)
	// Begin keeps a new conversation, and Complete ends a run that nobody has started.
	Begin    func(store.Tx, *domain.Thread) error
	Complete func(store.Tx, *domain.Run) error
}

// An Adoption takes conversations in. Its methods may be called from any goroutine.
type Adoption struct {
	opts Options
}

// New makes an Adoption.
func New(opts Options) *Adoption { return &Adoption{opts: opts} }
