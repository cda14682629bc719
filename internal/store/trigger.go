package store

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// MostTriggerExecutions is how many executions of triggers are kept, beside those that
// are not over.
const MostTriggerExecutions = 500

// A TriggerReader finds what triggers have done.
type TriggerReader interface {
	// TriggerExecutions lists the last executions, of one trigger or of all where trigger
	// is "", the newest first.
	TriggerExecutions(ctx context.Context, trigger string, limit int) ([]domain.TriggerExecution, error)
	// OpenTriggerExecutions lists those that wait for a person, or are being sent, the
	// oldest first.
	OpenTriggerExecutions(ctx context.Context) ([]domain.TriggerExecution, error)
	// HasTriggerExecution reports whether a trigger has an execution for an event.
	HasTriggerExecution(ctx context.Context, trigger, key string) (bool, error)
	// TriggerState is what is remembered of a trigger; nothing, where it has done nothing.
	TriggerState(ctx context.Context, trigger string) (domain.TriggerState, error)
}

// A TriggerWriter keeps what triggers have done.
type TriggerWriter interface {
	// InsertTriggerExecution adds an execution, sets its ID, and forgets the oldest. It
	// fails if there is one of the same trigger and key.
	InsertTriggerExecution(e *domain.TriggerExecution) error
	// UpdateTriggerExecution writes everything of an execution that can change.
	UpdateTriggerExecution(e domain.TriggerExecution) error
	// PutTriggerState writes all that is remembered of a trigger.
	PutTriggerState(s domain.TriggerState) error
}
