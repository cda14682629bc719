package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Runs is what an [Inbox] asks of the life of runs. Its methods are called by
// any goroutine; those with a store.Tx by the store's writer.
type Runs interface {
	// Write makes a change of the store. Its error can be told.
	Write(ctx context.Context, change func(store.Tx) error) error
	// Find is the run that an id of any kind names. The error is of
	// domain.KindRunNotFound if there is none.
	Find(ctx context.Context, r store.RunReader, id string) (domain.Run, error)
	// AwaitInput makes a running run wait for a person, GoOn lets it go on.
	AwaitInput(t store.Tx, run *domain.Run) error
	GoOn(t store.Tx, run *domain.Run) error
	// Resume adds a run that goes on with a prompt where another one was
	// interrupted, unless its conversation goes on already. restrict says that it
	// is for somebody who does not trust the workspace.
	Resume(t store.Tx, interrupted domain.Run, prompt string, restrict bool) error
	// Tell adds a run that gives a prompt to the conversation of a run, behind what
	// waits there. restrict is as of Resume.
	Tell(t store.Tx, in domain.Run, prompt string, restrict bool) (domain.Run, error)
	// ConfirmsAnswers reports whether a run's executor tells which answers its
	// agent has taken. One that somebody else wrote does not.
	ConfirmsAnswers(run domain.Run) bool
	// AgentEnded is closed when a run has no agent any more. It is nil if it has
	// none.
	AgentEnded(run int64) <-chan struct{}
	// PlaceOf is where a client asks something. Its error can be told.
	PlaceOf(ctx context.Context, t store.Tx, q Inquiry) (Place, error)
	// BeginQuestion makes the run in which a client asks something, for a place that
	// has none.
	BeginQuestion(ctx context.Context, t store.Tx, in *Place, q Inquiry) error
	// EndQuestion ends such a run whose question nobody waits for any more; with kept,
	// the question stays open.
	EndQuestion(t store.Tx, run *domain.Run, kept bool) error
	// KeepsQuestions reports whether a run is being ended without anybody's wish,
	// so that its questions stay open for whoever continues it.
	KeepsQuestions(run int64) bool
}

// A Transcript is where questions and answers are shown beside what was said.
type Transcript interface {
	// CloseMessage ends the message that a run's agent is writing, and changes run
	// to what is known then.
	CloseMessage(t store.Tx, run *domain.Run) error
	// BeginTool adds the tool call that an approval is about, of which the agent
	// has not told yet.
	BeginTool(t store.Tx, run domain.Run, a domain.Approval) error
	// RefuseTool notes at the tool call that an approval is about who has not let it
	// run, and why.
	RefuseTool(t store.Tx, run domain.Run, a domain.Approval, why string) error
	// NoteApproval says in the conversation what became of an approval, in the place
	// of what was said of it before. data is for programs.
	NoteApproval(t store.Tx, run domain.Run, id, text string, note domain.ApprovalNote) error
}

// Options say what an Inbox stands on. All of them are required.
type Options struct {
	Store      store.Reader
	Policy     *Policy
	Runs       Runs
	Transcript Transcript
	Logger     *slog.Logger
	// Since, if set, returns the time before which answers that wait, and rules that allow
	// something, do not count; the zero time: all count.
	Since func() time.Time
}

// An Inbox keeps what agents and clients ask people, and sees to the answers. Its
// methods may be called from any goroutine. Those that take a store.Tx are part of
// the caller's change, and belong to the store's writer as that does.
type Inbox struct {
	ctx        context.Context // ends with the program's work on the store
	store      store.Reader
	policy     *Policy
	runs       Runs
	transcript Transcript
	log        *slog.Logger
	since      func() time.Time

	mu      sync.Mutex                 // guards the fields below
	waiting map[string]chan resolution // agents that wait in Ask, by approval
	asked   map[int64]map[string]asked // by run and question_id: the latest request
}

// New makes an inbox. When ctx ends, nobody waits for an answer any more.
func New(ctx context.Context, opts Options) *Inbox {
	return &Inbox{
		ctx: ctx, store: opts.Store, policy: opts.Policy, runs: opts.Runs, transcript: opts.Transcript, log: opts.Logger, since: opts.Since,
		waiting: make(map[string]chan resolution), asked: make(map[int64]map[string]asked),
	}
}

// Pending lists the questions that wait for a person, the oldest first: of the
// run that an id of any kind names, or of all where id is "".
func (in *Inbox) Pending(ctx context.Context, id string) ([]domain.Approval, error) {
	var run int64
	if id != "" {
		r, err := in.runs.Find(ctx, in.store, id)
		if err != nil {
			return nil, store.Explain(err)
		}
		run = r.ID
	}
	list, err := in.store.PendingApprovals(ctx, run)
	return list, store.Explain(err)
}

// shownID is how much of an approval's id tables and logs show, in bytes.
const shownID = 8

// Find finds a question by its id, or by its call's, or by a beginning of its id
// that is at least as long as what is shown of it and that no other one has. The
// error is of domain.KindApprovalNotFound if there is none, and of
// domain.KindInvalid if several calls have the id.
func (in *Inbox) Find(ctx context.Context, id string) (domain.Approval, error) {
	a, err := find(ctx, in.store, id)
	return a, store.Explain(err)
}

// find is Find, also inside a change.
func find(ctx context.Context, r store.ApprovalReader, id string) (domain.Approval, error) {
	a, err := r.Approval(ctx, id)
	if errors.Is(err, store.ErrNotFound) && len(id) >= shownID {
		a, err = r.ApprovalBeginning(ctx, id)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return a, domain.Errorf(domain.KindApprovalNotFound, "approval not found: %s", id)
	case errors.Is(err, store.ErrAmbiguous):
		return a, domain.Invalid("call_id", "the id of one approval, or approval_id", fmt.Sprintf("%q, which several have", id))
	}
	return a, err
}
