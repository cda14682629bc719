package store

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A ReviewReader finds what was decided about changes of files.
type ReviewReader interface {
	// ChangeDecisions lists what was decided about the changes of a run.
	ChangeDecisions(ctx context.Context, run int64) ([]domain.ChangeDecision, error)
}

// A ReviewWriter keeps what was decided about changes of files.
type ReviewWriter interface {
	// PutChangeDecision keeps a decision in the place of the one before. One that is open
	// is forgotten.
	PutChangeDecision(d domain.ChangeDecision) error
}
