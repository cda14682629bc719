package intake

import (
	"fmt"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// CodeOutputMissing is the error code of a run that would have completed, but
// of which not everything is there that its agent said.
const CodeOutputMissing = "OUTPUT_MISSING"

// refusals are the reports of a run that were not taken. Its methods may be
// called from any goroutine; the zero value has none.
type refusals struct {
	mu    sync.Mutex // guards the fields below
	count int
	first error
}

func (r *refusals) add(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == 0 {
		r.first = why
	}
	r.count++
}

// addKind is add for a report of a kind.
func (r *refusals) addKind(kind string, why error) { r.add(fmt.Errorf("%s: %w", kind, why)) }

// judge is what an executor's result comes to: a run of which something is
// missing has not completed, whatever its executor says.
func (r *refusals) judge(result catalog.ExecutePromptResult) catalog.ExecutePromptResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == 0 || result.Status != catalog.StatusCompleted {
		return result
	}
	reports := "a report"
	if r.count > 1 {
		reports = fmt.Sprintf("%d reports", r.count)
	}
	result.Status = catalog.StatusFailed
	result.Error = &catalog.ExecutionError{Code: CodeOutputMissing, Message: fmt.Sprintf(
		"the agent came to its end, but %s of it could not be taken, so output is missing here (%s); what it did is done: look at the files, or continue it and ask", reports, r.first)}
	return result
}
