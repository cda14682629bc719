package intake

import (
	"context"
	"log/slog"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Runs is what is asked of the life of runs.
type Runs interface {
	// RunOf is the run for which an executor with this token speaks; task is an
	// id of it, or "". The error is for the executor.
	RunOf(ctx context.Context, token, task string) (run int64, err error)
	// GoesOn reports whether what the agent of a run says is still wanted.
	GoesOn(run int64) bool
	// Changed is told that t changes the thread of a run, so that nobody goes on
	// with what is remembered of it.
	Changed(t store.Tx, run int64)
}

// Answers is what is asked of the answers to questions.
type Answers interface {
	// Taken notes that the agent of a run was seen to go on from the answers to
	// these approvals.
	Taken(t store.Tx, run int64, approvals []string) error
	// Done notes that what a person agreed to do at an address is done, as the agent
	// of the run has it.
	Done(t store.Tx, run domain.Run, approval string) error
	// Reconsider applies the policy again to what waits in a thread.
	Reconsider(t store.Tx, thread int64) error
}

// Budget holds what a run uses against what it may. Its methods are called inside
// changes; what they do there may end the run.
type Budget interface {
	// Called is told that a tool call begins.
	Called(t store.Tx, run domain.Run) error
	// CallEnded is told the id of a tool call that has ended.
	CallEnded(t store.Tx, run domain.Run, tool string) error
	// Used is told that a run has used more.
	Used(t store.Tx, run domain.Run) error
}

// Health is told what is wrong with keeping reports, by the store's writer: its
// methods must not block.
type Health interface {
	// NoRoom is told that there was no room for reports.
	NoRoom(err error)
	// ReportsLost is told that reports could not be kept, for another reason.
	ReportsLost(err error)
}

// A Queue takes changes without waiting for them, as of [store.Store].
type Queue interface {
	Enqueue(change func(store.Tx) error, done func(error))
}

// Options say whom an Intake works with. All but the Budget and
// the Logger are needed.
type Options struct {
	Store        Queue
	Conversation *conversation.Writer
	Runs         Runs
	Answers      Answers
	Budget       Budget // nil: nothing is limited
	Health       Health
	Keys         func(thread int64) *redact.Secrets // those that the agents of a thread were given
	Root         string                             // of the project: diffs name files relative to it
	Logger       *slog.Logger
}

// An Intake takes in what agents report. Its methods may be called from any
// goroutine.
type Intake struct {
	opts     Options
	runs     runs
	recorder *recorder
	queue    *queue
	throttle *throttle
}

// New makes an Intake. When ctx ends nothing is recorded, and executors are told
// nothing any more; Close ends the rest.
func New(ctx context.Context, opts Options) *Intake {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	in := &Intake{opts: opts, runs: runs{byID: make(map[int64]*Run)}, throttle: newThrottle(ctx, opts.Logger)}
	in.recorder = newRecorder(ctx, opts, &in.runs)
	in.queue = newQueue(opts.Store, in.recorder, in.throttle)
	return in
}

// Close keeps nobody waiting any more who reports, and tries no more to keep what
// could not be kept so far.
func (in *Intake) Close() { in.queue.close() }

// Begin takes in what the agent of a run says from now on, until End. task is the
// run's UUID; secrets are taken out of its reports.
func (in *Intake) Begin(run int64, task string, secrets *redact.Secrets) *Run {
	r := newRun(in.queue, run, task, secrets)
	in.runs.put(run, r)
	return r
}

// End drops what the agent of a run says from now on: the run has ended.
func (in *Intake) End(run int64) { in.runs.remove(run) }

// Join lets an executor be told to pause, and to go on, until leave is called:
// when that returns it is told nothing more.
func (in *Intake) Join(e Executor) (leave func()) { return in.throttle.join(e) }

// Silence is how the agent of a run has been silent up to now, if it is, and its run
// goes on.
func (in *Intake) Silence(run int64) (domain.AgentSilent, bool) {
	r := in.runs.get(run)
	if r == nil {
		return domain.AgentSilent{}, false
	}
	s := r.silence.Load()
	if s == nil || s.Ended {
		return domain.AgentSilent{}, false
	}
	return *s, true
}

// EndMessage lets all go on that a run has reported so far, before something else than a
// report comes behind it: the writer knows of it when EndMessage returns. For what is
// missing in between it waits as long as that may come, or until ctx ends.
func (in *Intake) EndMessage(ctx context.Context, run int64) {
	if r := in.runs.get(run); r != nil {
		r.endMessage(ctx)
	}
}

// Answered notes that an executor which does not tell what its agent takes was
// given the answer to an approval: whatever it reports next shows that the agent
// has taken it.
func (in *Intake) Answered(run int64, approval string) {
	if r := in.runs.get(run); r != nil {
		r.answered(approval)
	}
}

// runs are the runs that go on, by their row.
type runs struct {
	mu   sync.Mutex // guards byID
	byID map[int64]*Run
}

// get is a run that goes on, or nil.
func (r *runs) get(id int64) *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *runs) put(id int64, run *Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[id] = run
}

func (r *runs) remove(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// withTask are the runs with that UUID: one, or none.
func (r *runs) withTask(task string) (found []*Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.byID {
		if run.task == task {
			found = append(found, run)
		}
	}
	return found
}
