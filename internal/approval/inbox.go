package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
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
	Find(ctx context.Context, r store.Reader, id string) (domain.Run, error)
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

// Spec asks a person something on behalf of a client.
type Spec struct {
	Run     string // any id of the run that waits
	Type    string // function_call or human_contact; "": function_call
	Tool    string // of a function call
	Input   json.RawMessage
	CallID  string // the agent's own id of the tool call; "": none
	Title   string // of a human contact: the message
	Subject string
	Options []domain.Option // the answers to choose from; none: any words will do
	Channel json.RawMessage // is given back

	Elicitation domain.Elicitation // of a human contact; zero: none
}

// Propose asks a person whether something that is about to be done is wanted, on behalf
// of the program itself. run is a draft: its question is never answered by a rule, and no
// agent waits for it.
func (in *Inbox) Propose(t store.Tx, run *domain.Run, a domain.Approval) error {
	a.Thread, a.Run, a.Created = run.Thread, run.ID, t.Now()
	return in.ask(t, &a, run)
}

// Create asks a person something on behalf of a client, unless the policy has an
// answer. The error is of domain.KindRunNotFound or domain.KindBadState if there is
// no run that could ask.
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
		Elicitation: spec.Elicitation, Options: spec.Options, Channel: spec.Channel, Status: domain.ApprovalPending, Question: inputHash(spec.Tool, callIdentity(spec.Input, spec.CallID)),
	}
	a.CallID = cmp.Or(a.CallID, a.ID)
	err := in.runs.Write(ctx, func(t store.Tx) error {
		run, err := in.runs.Find(in.ctx, t, spec.Run)
		if err != nil {
			return err
		}
		if run.State.Ended() || run.State == domain.Interrupting { // nobody would ever close it
			return domain.Errorf(domain.KindBadState, "%s is %s: it can ask nothing any more; continue it first", domain.TaskName(run.Task), run.State)
		}
		a.Thread, a.Run, a.Created = run.Thread, run.ID, t.Now()
		if a.Type == domain.FunctionCall {
			situation, err := in.situationOf(t, run)
			if err != nil {
				return err
			}
			if ruling := in.policy.Judge(callOf(a), situation); ruling.IsSettled() {
				return in.recordRuling(t, &a, run, ruling)
			}
		}
		return in.ask(t, &a, &run)
	})
	if err != nil { // the change may still be under way, if ctx has ended
		return domain.Approval{}, err
	}
	return a, nil
}

// awaitAnswer waits for a human.
func (in *Inbox) awaitAnswer(ctx context.Context, a domain.Approval, answered chan resolution) (catalog.RequestPermissionResult, error) {
	var late <-chan time.Time
	if !a.Deadline.IsZero() {
		timer := time.NewTimer(time.Until(a.Deadline))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case v := <-answered:
		if v.cancelled {
			r := cancelled()
			r.Dismissed = v.approval.DecidedBy == domain.DecidedByUser
			return r, nil
		}
		return resultOf(v.approval), nil
	case <-late:
		in.closeUnawaited(a.ID, domain.ApprovalExpired, domain.DecidedByTimeout)
		return catalog.RequestPermissionResult{Reason: "timeout"}, nil
	case <-in.ctx.Done():
		// Any answer would be taken for a human's: the agent would go on without
		// what it asked for, before it is ended.
		<-ctx.Done()
		return catalog.RequestPermissionResult{}, domain.ErrEnding
	case <-ctx.Done():
		in.abandon(a.Run, a.ID)
		return catalog.RequestPermissionResult{}, ctx.Err()
	}
}

// abandon closes a question whose agent asks no more. If it has gone, the question is
// kept with the end of its run.
func (in *Inbox) abandon(run int64, id string) {
	in.awaitEnd(run)
	if in.ctx.Err() == nil {
		in.closeUnawaited(id, domain.ApprovalCancelled, domain.DecidedByEnd)
	}
}

// forget forgets who waits for the answer to a question.
func (in *Inbox) forget(id string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.waiting, id)
}

// linkPatience is how long the end of a run may take to be known after its
// link broke. If the run ends, its question is kept.
const linkPatience = time.Second

// awaitEnd waits until a run has no agent any more, but not for long.
func (in *Inbox) awaitEnd(run int64) {
	ended := in.runs.AgentEnded(run)
	if ended == nil {
		return
	}
	timer := time.NewTimer(linkPatience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// resultOf is a decision as an executor is told it.
func resultOf(a domain.Approval) catalog.RequestPermissionResult {
	r := catalog.RequestPermissionResult{Approved: a.Status == domain.ApprovalApproved, Reason: a.DecidedBy, Comment: a.Comment, OptionID: a.Option, UpdatedInput: a.UpdatedInput}
	if mustBeTaken(a) {
		r.ApprovalID = a.ID
	}
	switch a.Status {
	case domain.ApprovalResponded:
		r.Approved, r.Reason, r.Comment, r.Content = true, "user_responded", a.Response, a.Content
	case domain.ApprovalApproved:
		if a.DecidedBy == domain.DecidedByUser {
			r.Reason = "user_approved"
		}
	case domain.ApprovalDenied:
		if a.DecidedBy == domain.DecidedByUser {
			r.Reason = "user_denied"
		}
	}
	return r
}

// closeUnawaited closes a question that nobody waits for any more.
func (in *Inbox) closeUnawaited(id, status, by string) {
	err := in.runs.Write(in.ctx, func(t store.Tx) error {
		a, err := t.Approval(in.ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil || a.Status != domain.ApprovalPending || a.Stale || in.runs.KeepsQuestions(a.Run) {
			return err
		}
		a.Status, a.DecidedBy = status, by
		return in.close(t, a)
	})
	if err != nil && in.ctx.Err() == nil {
		in.log.Warn("a question could not be closed", "err", err)
	}
}

// cancelled is the result for an agent whose run is ending.
func cancelled() catalog.RequestPermissionResult {
	return catalog.RequestPermissionResult{Reason: "cancelled", Cancelled: true}
}

// resume continues the conversation of a question that was answered after its
// agent had gone. The agent asks again, and is given the answer then.
func (in *Inbox) resume(t store.Tx, a domain.Approval, restrict bool) error {
	asked, err := t.Run(in.ctx, a.Run)
	if err != nil {
		return err
	}
	request, err := in.request(t, asked)
	if err != nil {
		return err
	}
	return in.runs.Resume(t, asked, resumePrompt(a, request), restrict)
}

// request is the prompt that a run works for: its own, or where its agent went on by
// itself, the one before.
func (in *Inbox) request(t store.Tx, run domain.Run) (string, error) {
	for run.Source == domain.SourceAgent && run.Parent != 0 {
		var err error
		if run, err = t.Run(in.ctx, run.Parent); err != nil {
			return "", err
		}
	}
	return run.Prompt, nil
}

// maxPromptInput is how long an input may be that a prompt repeats, in bytes.
const maxPromptInput = 4096

// resumePrompt asks an agent to go on where it was interrupted. The agent's own
// session may have lost the turn, so it says what that was about.
func resumePrompt(a domain.Approval, request string) string {
	asked := fmt.Sprintf("you asked the user %q, and the user has answered.", cmp.Or(a.Title, a.Tool))
	if a.Type == domain.FunctionCall {
		asked = fmt.Sprintf("you asked for permission to run %s (%s), and the user has granted it.", a.Tool, cmp.Or(a.Title, a.Tool))
		switch n := len(a.Input); {
		case n > 0 && n < maxPromptInput:
			asked += " Its input was: " + string(a.Input) + "."
		case n == 0 && a.Details != "" && len(a.Details) < maxPromptInput:
			asked += fmt.Sprintf(" You described it as %q.", a.Details)
		}
	}
	next := "Ask the same question again to receive the answer."
	if a.Reopens != "" {
		next = "You were told to go on once before, and nobody knows whether you did it. Check first: if it is done, go on from there; if it is not, ask the same question again to receive the answer."
	}
	return domain.GoOnPrompt(fmt.Sprintf("Before you were interrupted, %s %s", asked, next), domain.RequestOf(request))
}

// close keeps a question's end, announces it, wakes whoever waits for
// it, and lets its run go on if that waits for nothing else.
func (in *Inbox) close(t store.Tx, a domain.Approval) error {
	a.Decided = t.Now()
	if !mustBeTaken(a) {
		a.AwaitedBy = 0
	}
	if err := t.UpdateApproval(a); err != nil {
		return err
	}
	run, err := t.Run(in.ctx, a.Run)
	if err != nil {
		return err
	}
	if err := in.announce(t, run, resolvedOf(a)); err != nil {
		return err
	}
	if err := in.noteAnswer(t, run, a); err != nil {
		return err
	}
	t.AfterCommit(func() { in.wake(a) })
	if run.State != domain.WaitingInput {
		return nil
	}
	pending, err := t.PendingApprovals(in.ctx, run.ID)
	if err != nil || len(pending) > 0 {
		return err
	}
	return in.runs.GoOn(t, &run)
}

// noteOf is what the conversation holds of an answer.
func noteOf(a domain.Approval) domain.ApprovalNote {
	return domain.ApprovalNote{ApprovalID: a.ID, Type: a.Type, Decision: a.Status, Title: cmp.Or(a.Title, a.Subject, a.Tool), Response: cmp.Or(a.Response, a.Comment), Explanation: a.Explanation, Edited: a.UpdatedInput != nil}
}

// noteAnswer keeps what a human has said in the conversation, where it is more
// than leave for what a tool call shows already, and what the policy has denied.
func (in *Inbox) noteAnswer(t store.Tx, run domain.Run, a domain.Approval) error {
	if a.Status != domain.ApprovalDenied && (a.DecidedBy != domain.DecidedByUser || a.Status == domain.ApprovalApproved && a.UpdatedInput == nil) {
		return nil
	}
	if a.Status == domain.ApprovalDenied && a.Type == domain.FunctionCall {
		if err := in.transcript.RefuseTool(t, run, a, cmp.Or(a.Explanation, a.Comment)); err != nil {
			return err
		}
	}
	n := noteOf(a)
	text := n.Title + " — " + n.Decision
	if a.DecidedBy != domain.DecidedByUser {
		n.DecidedBy = a.DecidedBy
		text += " by " + a.DecidedBy
	}
	if n.Explanation != "" {
		text += " (" + n.Explanation + ")"
	}
	if n.Response != "" {
		text += ": " + n.Response
	}
	return in.transcript.NoteApproval(t, run, a.ID, text, n)
}

// CancelQuestions closes what a run has asked that ends, or is about to. What is kept
// by KeepQuestions stays open.
func (in *Inbox) CancelQuestions(t store.Tx, run domain.Run) error {
	pending, err := t.PendingApprovals(in.ctx, run.ID)
	if err != nil {
		return err
	}
	for _, a := range pending {
		if a.Stale {
			continue
		}
		a.Status, a.DecidedBy, a.Decided, a.AwaitedBy = domain.ApprovalCancelled, domain.DecidedByEnd, t.Now(), 0
		if err := t.UpdateApproval(a); err != nil {
			return err
		}
		if err := in.announce(t, run, domain.ApprovalResolved{
			ApprovalID: a.ID, CallID: a.CallID, ToolUseID: a.ToolUseID(), Type: a.Type, Status: a.Status, DecidedBy: a.DecidedBy, Tool: a.Tool,
		}); err != nil {
			return err
		}
		t.AfterCommit(func() { in.wake(a) })
	}
	return nil
}

// KeepQuestions marks a run's questions as those of an agent that is gone: they stay open
// when the run ends.
func (in *Inbox) KeepQuestions(t store.Tx, run domain.Run) error {
	pending, err := t.PendingApprovals(in.ctx, run.ID)
	if err != nil {
		return err
	}
	for _, a := range pending {
		a.Stale, a.AwaitedBy = true, 0
		if err := t.UpdateApproval(a); err != nil {
			return err
		}
	}
	return nil
}

// A resolution is how a question ended.
type resolution struct {
	approval  domain.Approval
	cancelled bool // the run is ending: nobody decided
}

// wake tells the agent that waits for an approval how that ended.
func (in *Inbox) wake(a domain.Approval) {
	in.mu.Lock()
	answered := in.waiting[a.ID]
	delete(in.waiting, a.ID)
	in.mu.Unlock()
	if answered != nil {
		answered <- resolution{approval: a, cancelled: a.Status == domain.ApprovalCancelled}
	}
}

// mustBeTaken reports whether a question has a human's answer that lets its agent
// go on, so that it matters whether the agent takes it.
func mustBeTaken(a domain.Approval) bool {
	return a.DecidedBy == domain.DecidedByUser && (a.Status == domain.ApprovalApproved || a.Status == domain.ApprovalResponded)
}

// Done notes in the conversation that what a person agreed to do at an address is
// done, as the agent of the run has it. Of what that run did not ask nothing is said.
func (in *Inbox) Done(t store.Tx, run domain.Run, id string) error {
	a, err := t.Approval(in.ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && (a.Run != run.ID || a.Elicitation.Mode != domain.ElicitURL) {
		return nil
	}
	if err != nil {
		return err
	}
	return in.noteDelivery(t, a, run, "the agent says that this is done")
}
