package hub

import (
	"fmt"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// codeOutputMissing is the error code of a run that would have completed, but
// of which not everything is there that its agent said.
const codeOutputMissing = "OUTPUT_MISSING"

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
	result.Error = &catalog.ExecutionError{Code: codeOutputMissing, Message: fmt.Sprintf(
		"the agent came to its end, but %s of it could not be taken, so output is missing here (%s); what it did is done: look at the files, or continue it and ask", reports, r.first)}
	return result
}

// ReportRefused notes that something which an executor had to say of one of its
// runs was lost on the way: task is the run's UUID. It is for who knows whose
// executor that is; of a run that has ended nothing is noted.
func (h *Hub) ReportRefused(task string, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, live := range h.live {
		if live.task == task {
			live.refusals.add(why)
		}
	}
}

// refused notes that a report of a run was not taken.
func (h *Hub) refused(run int64, why error) {
	h.mu.Lock()
	live := h.live[run]
	h.mu.Unlock()
	if live != nil {
		live.refusals.add(why)
	}
}
