package intake

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
)

// A Run takes in the reports of one run. Its methods may be called from any
// goroutine.
type Run struct {
	id       int64
	task     string // its UUID, by which its executor knows it
	queue    *queue
	refusals refusals
	silence  atomic.Pointer[domain.AgentSilent] // as it was told last; nil: it was not

	mu          sync.Mutex // guards the fields below, and keeps the order
	order       order
	redactor    redactor
	content     unpacker
	completion  *catalog.ExecutePromptResult
	unconfirmed []string // approvals whose answers the next report shows to be taken
}

func newRun(q *queue, id int64, task string, secrets *redact.Secrets) *Run {
	r := &Run{id: id, task: task, queue: q}
	r.content = unpacker{secrets: secrets, pass: q.add}
	r.redactor = redactor{stream: redact.Stream{Secrets: secrets}, pass: r.content.take}
	r.order = order{pass: r.redactor.take, refuse: r.refusals.add, late: r.skipMissing}
	return r
}

// take takes a report with its sequence number, which counts from 1; 0 is none.
func (r *Run) take(sequence int64, what report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unconfirmed) > 0 {
		r.order.take(0, report{run: r.id, kind: catalog.EventPermissionTaken, data: encode(catalog.PermissionTaken{ApprovalIDs: r.unconfirmed})})
		r.unconfirmed = nil
	}
	r.order.take(sequence, what)
}

// answered is as of [Intake.Answered].
func (r *Run) answered(approval string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unconfirmed = append(r.unconfirmed, approval)
}

// skipMissing lets reports go on that have waited long enough for those before
// them.
func (r *Run) skipMissing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order.skipMissing()
	r.redactor.flush()
}

// Finish lets everything go on that waits for other reports: the executor has
// said that it is through. What it reports nevertheless waits for nothing.
func (r *Run) Finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order.finish()
	r.redactor.flush()
	r.queue.askAgain()
}

func (r *Run) endMessage(ctx context.Context) {
	r.mu.Lock()
	inOrder := r.order.settled()
	r.mu.Unlock()
	select {
	case <-inOrder:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.redactor.flush()
	r.queue.askAgain()
}

func (r *Run) complete(result catalog.ExecutePromptResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.completion = &result
}

// Completion is the end that the executor has reported with report_completion, or
// nil.
func (r *Run) Completion() *catalog.ExecutePromptResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.completion
}

// Judge is what an executor's result comes to: a run of which something is
// missing has not completed, whatever its executor says. Why it failed is told
// without keys.
func (r *Run) Judge(result catalog.ExecutePromptResult) catalog.ExecutePromptResult {
	result.Error = withoutKeys(result.Error, r.redactor.stream.Secrets)
	return r.refusals.judge(result)
}
