package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Turns is the inbox's access to turns. Its methods may be called from any goroutine, except that
// those with a store.Tx belong to the store's writer.
type Turns interface {
	// Write runs a transaction. Its error is safe to show to clients.
	Write(ctx context.Context, change func(store.Tx) error) error
	// Find returns the turn that an id of any kind names. The error is of domain.KindTurnNotFound if
	// none exists.
	Find(ctx context.Context, r store.Reader, id string) (domain.Turn, error)
	// AwaitInput makes a running turn wait for a person, and GoOn lets it continue.
	AwaitInput(t store.Tx, turn *domain.Turn) error
	GoOn(t store.Tx, turn *domain.Turn) error
	// Resume adds a turn that continues an interrupted turn with a prompt, unless the session
	// has continued already. restrict says that the client does not trust the workspace.
	Resume(t store.Tx, interrupted domain.Turn, prompt string, restrict bool) error
	// Tell queues a turn with a prompt at the end of a turn's session. restrict is as in Resume.
	Tell(t store.Tx, in domain.Turn, prompt string, restrict bool) (domain.Turn, error)
	// ConfirmsAnswers reports whether a turn's executor reports which answers its agent has taken.
	// Third-party executors do not.
	ConfirmsAnswers(turn domain.Turn) bool
	// AgentEnded returns a channel that is closed when a turn's agent has ended, or nil if the turn
	// has none.
	AgentEnded(turn int64) <-chan struct{}
	// PlaceOf returns where a client asks. Its error is safe to show to clients.
	PlaceOf(ctx context.Context, t store.Tx, q Inquiry) (Place, error)
	// BeginQuestion creates the turn of a client's question, for a place without one.
	BeginQuestion(ctx context.Context, t store.Tx, in *Place, q Inquiry) error
	// EndQuestion ends such a turn when no client waits for it. With kept, the question stays open.
	EndQuestion(t store.Tx, turn *domain.Turn, kept bool) error
	// KeepsQuestions reports whether a turn is being ended without a client's request, so that its
	// questions stay open for the turn that continues it.
	KeepsQuestions(turn int64) bool
}

// Transcript shows questions and answers to the readers of the session.
type Transcript interface {
	// CloseMessage ends the message that a turn's agent is writing, and updates the turn.
	CloseMessage(t store.Tx, turn *domain.Turn) error
	// BeginTool adds the tool call of an approval that the agent has not reported yet.
	BeginTool(t store.Tx, turn domain.Turn, a domain.Approval) error
	// RefuseTool notes at the approval's tool call who denied it and why.
	RefuseTool(t store.Tx, turn domain.Turn, a domain.Approval, why string) error
	// EditTool shows the input with which the user allowed the tool call of an approval.
	EditTool(t store.Tx, turn domain.Turn, a domain.Approval) error
	// NoteApproval notes in the transcript what became of an approval, and replaces its earlier
	// note. note is for programs.
	NoteApproval(t store.Tx, turn domain.Turn, id, text string, note domain.ApprovalNote) error
}

// Options configure an Inbox. All of them are required, except Since.
type Options struct {
	Store      store.Reader
	Policy     *Policy
	Turns      Turns
	Transcript Transcript
	Logger     *slog.Logger
	// Since, if set, returns a time. Waiting answers and allow rules from before it do not count.
	// The zero time means that all count.
	Since func() time.Time
}

// Inbox stores questions of agents and clients to people, and delivers the answers. Its methods may
// be called from any goroutine, except that those with a store.Tx are part of the caller's
// transaction and belong to the store's writer.
type Inbox struct {
	ctx        context.Context // ends with the hub
	store      store.Reader
	policy     *Policy
	turns      Turns
	transcript Transcript
	log        *slog.Logger
	since      func() time.Time

	mu      sync.Mutex                 // guards the fields below
	waiting map[string]chan resolution // agents waiting in Ask, by approval
	asked   map[int64]map[string]asked // by turn and question_id: the latest request
}

// New returns an inbox. When ctx ends, waiting calls return.
func New(ctx context.Context, opts Options) *Inbox {
	return &Inbox{
		ctx: ctx, store: opts.Store, policy: opts.Policy, turns: opts.Turns, transcript: opts.Transcript, log: opts.Logger, since: opts.Since,
		waiting: make(map[string]chan resolution), asked: make(map[int64]map[string]asked),
	}
}

// Pending lists open questions, the oldest first: those of the turn that an id of any kind names, or
// all if id is "".
func (in *Inbox) Pending(ctx context.Context, id string) ([]domain.Approval, error) {
	var turn int64
	if id != "" {
		r, err := in.turns.Find(ctx, in.store, id)
		if err != nil {
			return nil, store.Explain(err)
		}
		turn = r.ID
	}
	list, err := in.store.PendingApprovals(ctx, turn)
	return list, store.Explain(err)
}

// shownID is the length, in bytes, of approval ids in tables and logs.
const shownID = 8

// Find finds a question by its id, by its call's id, or by a unique prefix of its id that is at
// least as long as the shown one. The error is of domain.KindApprovalNotFound if none exists, and
// of domain.KindInvalid if several calls have the id.
func (in *Inbox) Find(ctx context.Context, id string) (domain.Approval, error) {
	a, err := find(ctx, in.store, id)
	return a, store.Explain(err)
}

// find is Find, also inside a transaction.
func find(ctx context.Context, r store.Reader, id string) (domain.Approval, error) {
	a, err := r.Approval(ctx, id)
	if errors.Is(err, store.ErrNotFound) && len(id) >= shownID {
		a, err = r.ApprovalBeginning(ctx, id)
	}
	if errors.Is(err, store.ErrNotFound) {
		return a, domain.Errorf(domain.KindApprovalNotFound, "approval not found: %s", id)
	}
	return a, err
}

// PendingEvents returns the open questions of one turn, or of all if turn is 0, as events with the
// time of asking. A [domain.LogDamaged] event replaces those that cannot be read. The error is the
// store's own.
func (in *Inbox) PendingEvents(ctx context.Context, turn int64) ([]domain.Event, error) {
	pending, err := in.store.PendingApprovals(ctx, turn)
	var events []domain.Event
	unread := func(message string) {
		events = append(events, domain.Event{Payload: domain.LogDamaged{Message: message}})
	}
	if store.IsDamaged(err) {
		unread("not all questions that wait for an answer can be read")
	} else if err != nil {
		return nil, err
	}
	for _, a := range pending {
		turn, err := in.store.Turn(ctx, a.Turn)
		if store.IsDamaged(err) {
			unread("the session of a question that waits for an answer cannot be read")
			continue
		}
		if err != nil {
			return nil, err
		}
		session, err := in.store.Session(ctx, a.Session)
		if err != nil && !store.IsDamaged(err) { // without a directory it has no rule preview
			return nil, err
		}
		e := turn.Event(Requested(a, in.DirectoriesOf(session.CWD)))
		e.Time = a.Created
		events = append(events, e)
	}
	return events, nil
}

// Spec describes a client's question to a person.
type Spec struct {
	Turn    string // any id of the waiting turn
	Type    string // function_call or human_contact; "": function_call
	Tool    string // for a function_call
	Input   json.RawMessage
	CallID  string // the agent's id of the tool call; "": none
	Title   string // for a human_contact: the message
	Subject string
	Options []domain.Option // possible answers; none: free text
	Channel json.RawMessage // returned unchanged

	Elicitation domain.Elicitation // for a human_contact; zero: none
}

// Propose asks a person whether the program itself may do something. turn is a draft: no rule
// answers its question, and no agent waits for it.
func (in *Inbox) Propose(t store.Tx, turn *domain.Turn, a domain.Approval) error {
	a.Session, a.Turn, a.Created = turn.Session, turn.ID, t.Now()
	return in.ask(t, &a, turn)
}

// Create stores a client's question to a person, unless the policy answers it. The error is of
// domain.KindTurnNotFound or domain.KindBadState if no turn can ask.
func (in *Inbox) Create(ctx context.Context, spec Spec) (domain.Approval, error) {
	spec.Type = cmp.Or(spec.Type, domain.FunctionCall)
	if spec.Type == domain.FunctionCall && spec.Tool == "" {
		return domain.Approval{}, domain.Invalid("tool_name", "the name of a tool", "an empty string")
	}
	if spec.Elicitation.Mode != "" {
		if err := checkElicitation(spec.Elicitation, spec.Title); err != nil {
			return domain.Approval{}, err
		}
	}
	a := domain.Approval{
		ID: uuid.NewString(), Type: spec.Type, CallID: spec.CallID, Tool: spec.Tool, Input: spec.Input, Title: spec.Title, Subject: spec.Subject,
		Elicitation: spec.Elicitation, Options: spec.Options, Channel: spec.Channel, Status: domain.ApprovalPending,
		Question: inputHash(spec.Tool, callIdentity(spec.Input, spec.CallID)),
	}
	a.CallID = cmp.Or(a.CallID, a.ID)
	err := in.turns.Write(ctx, func(t store.Tx) error {
		turn, err := in.turns.Find(in.ctx, t, spec.Turn)
		if err != nil {
			return err
		}
		if turn.State.Ended() || turn.State == domain.Interrupting { // nothing would ever close it
			return domain.Errorf(domain.KindBadState, "%s is %s: it cannot ask questions; continue it first", turn.Label(), turn.State.Words())
		}
		a.Session, a.Turn, a.Created = turn.Session, turn.ID, t.Now()
		if a.Type == domain.FunctionCall {
			situation, err := in.situationOf(t, turn)
			if err != nil {
				return err
			}
			if ruling := in.policy.Judge(callOf(a), situation); ruling.IsSettled() {
				return in.recordRuling(t, &a, turn, ruling)
			}
		}
		return in.ask(t, &a, &turn)
	})
	if err != nil { // the transaction may still run if ctx has ended
		return domain.Approval{}, err
	}
	return a, nil
}
