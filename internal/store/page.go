package store

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// MostPageMessages is how much of what pages of a preview have said is kept.
const MostPageMessages = 1000

// A PageReader finds what pages of a preview have said.
type PageReader interface {
	// PageMessages lists the last messages of a filter, the oldest first.
	PageMessages(ctx context.Context, f domain.PageFilter) ([]domain.PageMessage, error)
}

// A PageWriter keeps what pages of a preview have said.
type PageWriter interface {
	// PutPageMessage adds a message, sets its ID, and forgets the oldest; of one that has
	// an ID, it writes how often and when it was said.
	PutPageMessage(m *domain.PageMessage) error
}
