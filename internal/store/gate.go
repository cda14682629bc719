package store

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A GateReader finds work that has gates.
type GateReader interface {
	// GateLoop is the loop that a run belongs to; ErrNotFound, where it belongs to none.
	GateLoop(ctx context.Context, run int64) (domain.GateLoop, error)
	// GateLoops are the loops of those of some runs that belong to one, by run.
	GateLoops(ctx context.Context, runs []int64) (map[int64]domain.GateLoop, error)
	// CheckedLoops are the loops whose gates are checked, the oldest first.
	CheckedLoops(ctx context.Context) ([]domain.GateLoop, error)
	// HasDenied reports whether a person has said no to something that a run asked.
	HasDenied(ctx context.Context, run int64) (bool, error)
}

// A GateWriter keeps work that has gates.
type GateWriter interface {
	// InsertGateLoop adds a loop, sets its ID, and makes its run one of it.
	InsertGateLoop(l *domain.GateLoop) error
	// UpdateGateLoop writes everything of a loop that can change, and makes its run one of it.
	UpdateGateLoop(l domain.GateLoop) error
}
