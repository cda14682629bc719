// Package intake receives the reports of agents and stores them.
//
// An executor reports with the token of its turn (reports.go). The [Turn] puts reports into the order
// of their sequence numbers (order.go) and redacts the agent's secrets (content.go). The queue
// passes all waiting reports to the store's writer in one transaction (queue.go). If too many wait,
// the throttle pauses executors (throttle.go). A turn with a refused report has not completed,
// whatever its executor says (reports.go).
package intake

import (
	"context"
	"log/slog"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// Turns is the intake's access to turns.
type Turns interface {
	// TurnOf returns the turn of an executor's token; task is an id of the turn, or "". The error is
	// safe to show to the executor.
	TurnOf(ctx context.Context, token, task string) (turn int64, err error)
	// GoesOn reports whether reports of the turn are still accepted.
	GoesOn(turn int64) bool
	// AgentStarted notes that a process of the turn has been recorded.
	AgentStarted(turn int64)
	// Changed drops the cached data of the turn's session, which t changes.
	Changed(t store.Tx, turn int64)
}

// Answers is the intake's access to answers.
type Answers interface {
	// Taken notes that the agent of a turn has acted on the answers to these approvals.
	Taken(t store.Tx, turn int64, approvals []string) error
	// Done notes that the action at an address is complete, as the turn's agent reports.
	Done(t store.Tx, turn domain.Turn, approval string) error
	// Reconsider applies the policy again to the open questions of a session.
	Reconsider(t store.Tx, session int64) error
}

// Budget compares the usage of a turn with its limits. Its methods are called inside transactions
// and may end the turn.
type Budget interface {
	// Called counts a tool call that begins.
	Called(t store.Tx, turn domain.Turn) error
	// CallEnded counts a tool call that has ended; tool is its id.
	CallEnded(t store.Tx, turn domain.Turn, tool string) error
	// Used checks the increased usage of a turn.
	Used(t store.Tx, turn domain.Turn) error
}

// Health records problems with storing reports. The store's writer calls its methods, which must
// not block.
type Health interface {
	// NoRoom records that the disk had no space for reports.
	NoRoom(err error)
	// ReportsLost records that reports could not be stored for another reason.
	ReportsLost(err error)
}

// Queue queues transactions without waiting for them, see [store.Store].
type Queue interface {
	Enqueue(change func(store.Tx) error, done func(error))
}

// Options configure an Intake. All but Budget and Logger are required.
type Options struct {
	Store      Queue
	Transcript *transcript.Writer
	Turns      Turns
	Answers    Answers
	Budget     Budget // nil: no limits
	Health     Health
	Keys       func(session int64) *redact.Secrets // secrets of a session's agents
	Root       func(path string) string            // the directory to which the name of a file is relative in diffs
	Logger     *slog.Logger
}

// Intake receives the reports of agents. Its methods may be called from any goroutine.
type Intake struct {
	opts     Options
	turns    turns
	recorder *recorder
	queue    *queue
	throttle *throttle
}

// New returns an Intake. When ctx ends, it records nothing more and sends executors nothing more.
// Close releases the rest.
func New(ctx context.Context, opts Options) *Intake {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	in := &Intake{opts: opts, turns: turns{byID: make(map[int64]*Turn)}, throttle: newThrottle(ctx, opts.Logger)}
	in.recorder = newRecorder(ctx, opts, &in.turns)
	in.queue = newQueue(opts.Store, in.recorder, in.throttle)
	return in
}

// Close releases waiting reporters and stops retries of failed transactions.
func (in *Intake) Close() { in.queue.close() }

// Begin accepts the reports of a turn until End. task is the turn's UUID; secrets are redacted from
// the reports.
func (in *Intake) Begin(turn int64, task string, secrets *redact.Secrets) *Turn {
	r := newTurn(in.queue, turn, task, secrets)
	in.turns.put(turn, r)
	return r
}

// End drops further reports of a turn that has ended.
func (in *Intake) End(turn int64) { in.turns.remove(turn) }

// Join lets the intake pause and resume an executor until leave is called. After leave returns, the
// executor gets no more calls.
func (in *Intake) Join(e Executor) (leave func()) { return in.throttle.join(e) }

// Silence returns the current silence of a live turn's agent. ok is false if the agent is not
// silent.
func (in *Intake) Silence(turn int64) (domain.AgentSilent, bool) {
	r := in.turns.get(turn)
	if r == nil {
		return domain.AgentSilent{}, false
	}
	s := r.silence.Load()
	if s == nil || s.Ended {
		return domain.AgentSilent{}, false
	}
	return *s, true
}

// EndMessage passes on all reports of a turn so far, so that the caller can add something after
// them. The writer has them when EndMessage returns. It waits for missing reports as long as they
// may still arrive, or until ctx ends.
func (in *Intake) EndMessage(ctx context.Context, turn int64) {
	if r := in.turns.get(turn); r != nil {
		r.endMessage(ctx)
	}
}

// Answered notes that an executor got the answer to an approval but does not confirm answers. Its
// next report shows that the agent has taken the answer.
func (in *Intake) Answered(turn int64, approval string) {
	if r := in.turns.get(turn); r != nil {
		r.answered(approval)
	}
}

// turns holds the live turns by row id.
type turns struct {
	mu   sync.Mutex // guards byID
	byID map[int64]*Turn
}

// get returns a live turn, or nil.
func (r *turns) get(id int64) *Turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *turns) put(id int64, turn *Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[id] = turn
}

func (r *turns) remove(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// withTask returns the turns with a UUID: one or none.
func (r *turns) withTask(task string) (found []*Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, turn := range r.byID {
		if turn.task == task {
			found = append(found, turn)
		}
	}
	return found
}
