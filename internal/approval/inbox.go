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

// Runs is the inbox's access to runs. Its methods may be called from any goroutine, except that
// those with a store.Tx belong to the store's writer.
type Runs interface {
	// Write runs a transaction. Its error is safe to show to clients.
	Write(ctx context.Context, change func(store.Tx) error) error
	// Find returns the run that an id of any kind names. The error is of domain.KindRunNotFound if
	// none exists.
	Find(ctx context.Context, r store.Reader, id string) (domain.Run, error)
	// AwaitInput makes a running run wait for a person, and GoOn lets it continue.
	AwaitInput(t store.Tx, run *domain.Run) error
	GoOn(t store.Tx, run *domain.Run) error
	// Resume adds a run that continues an interrupted run with a prompt, unless the conversation
	// has continued already. restrict says that the client does not trust the workspace.
	Resume(t store.Tx, interrupted domain.Run, prompt string, restrict bool) error
	// Tell queues a run with a prompt at the end of a run's conversation. restrict is as in Resume.
	Tell(t store.Tx, in domain.Run, prompt string, restrict bool) (domain.Run, error)
	// ConfirmsAnswers reports whether a run's executor reports which answers its agent has taken.
	// Third-party executors do not.
	ConfirmsAnswers(run domain.Run) bool
	// AgentEnded returns a channel that is closed when a run's agent has ended, or nil if the run
	// has none.
	AgentEnded(run int64) <-chan struct{}
	// PlaceOf returns where a client asks. Its error is safe to show to clients.
	PlaceOf(ctx context.Context, t store.Tx, q Inquiry) (Place, error)
	// BeginQuestion creates the run of a client's question, for a place without one.
	BeginQuestion(ctx context.Context, t store.Tx, in *Place, q Inquiry) error
	// EndQuestion ends such a run when no client waits for it. With kept, the question stays open.
	EndQuestion(t store.Tx, run *domain.Run, kept bool) error
	// KeepsQuestions reports whether a run is being ended without a client's request, so that its
	// questions stay open for the run that continues it.
	KeepsQuestions(run int64) bool
}

// Transcript shows questions and answers in the conversation.
type Transcript interface {
	// CloseMessage ends the message that a run's agent is writing, and updates run.
	CloseMessage(t store.Tx, run *domain.Run) error
	// BeginTool adds the tool call of an approval that the agent has not reported yet.
	BeginTool(t store.Tx, run domain.Run, a domain.Approval) error
	// RefuseTool notes at the approval's tool call who denied it and why.
	RefuseTool(t store.Tx, run domain.Run, a domain.Approval, why string) error
	// NoteApproval notes in the conversation what became of an approval, and replaces its earlier
	// note. note is for programs.
	NoteApproval(t store.Tx, run domain.Run, id, text string, note domain.ApprovalNote) error
}

// Options configure an Inbox. All of them are required, except Since.
type Options struct {
	Store      store.Reader
	Policy     *Policy
	Runs       Runs
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
	runs       Runs
	transcript Transcript
	log        *slog.Logger
	since      func() time.Time

	mu      sync.Mutex                 // guards the fields below
	waiting map[string]chan resolution // agents waiting in Ask, by approval
	asked   map[int64]map[string]asked // by run and question_id: the latest request
}

// New returns an inbox. When ctx ends, waiting calls return.
func New(ctx context.Context, opts Options) *Inbox {
	return &Inbox{
		ctx: ctx, store: opts.Store, policy: opts.Policy, runs: opts.Runs, transcript: opts.Transcript, log: opts.Logger, since: opts.Since,
		waiting: make(map[string]chan resolution), asked: make(map[int64]map[string]asked),
	}
}

// Pending lists open questions, the oldest first: those of the run that an id of any kind names, or
// all if id is "".
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

// Spec describes a client's question to a person.
type Spec struct {
	Run     string // any id of the waiting run
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

// Propose asks a person whether the program itself may do something. run is a draft: no rule
// answers its question, and no agent waits for it.
func (in *Inbox) Propose(t store.Tx, run *domain.Run, a domain.Approval) error {
	a.Thread, a.Run, a.Created = run.Thread, run.ID, t.Now()
	return in.ask(t, &a, run)
}

// Create stores a client's question to a person, unless the policy answers it. The error is of
// domain.KindRunNotFound or domain.KindBadState if no run can ask.
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
		if run.State.Ended() || run.State == domain.Interrupting { // nothing would ever close it
			return domain.Errorf(domain.KindBadState, "%s is %s: it cannot ask questions; continue it first", domain.TaskName(run.Task), run.State)
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
	if err != nil { // the transaction may still run if ctx has ended
		return domain.Approval{}, err
	}
	return a, nil
}

// awaitAnswer waits for a human's answer.
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
		// The agent would take any answer for a human's and continue without permission before it
		// is ended.
		<-ctx.Done()
		return catalog.RequestPermissionResult{}, domain.ErrEnding
	case <-ctx.Done():
		in.abandon(a.Run, a.ID)
		return catalog.RequestPermissionResult{}, ctx.Err()
	}
}

// abandon closes a question whose agent stopped asking. If the agent has ended, the end of its run
// keeps the question.
func (in *Inbox) abandon(run int64, id string) {
	in.awaitEnd(run)
	if in.ctx.Err() == nil {
		in.closeUnawaited(id, domain.ApprovalCancelled, domain.DecidedByEnd)
	}
}

// forget removes the waiting call of a question.
func (in *Inbox) forget(id string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.waiting, id)
}

// linkPatience is how long to wait for a run's end after its link broke. If the run ends, its
// question is kept.
const linkPatience = time.Second

// awaitEnd waits up to linkPatience until a run has no agent.
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

// resultOf returns a decision as an executor's result.
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

// closeUnawaited closes a question for which no agent or client waits.
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

// cancelled returns the result for an agent whose run is ending.
func cancelled() catalog.RequestPermissionResult {
	return catalog.RequestPermissionResult{Reason: "cancelled", Cancelled: true}
}

// resume continues the conversation of a question that was answered after its agent ended. The
// agent asks again and then gets the answer.
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

// request returns the prompt that a run works for: its own, or for an agent-initiated run the one
// before.
func (in *Inbox) request(t store.Tx, run domain.Run) (string, error) {
	for run.Source == domain.SourceAgent && run.Parent != 0 {
		var err error
		if run, err = t.Run(in.ctx, run.Parent); err != nil {
			return "", err
		}
	}
	return run.Prompt, nil
}

// maxPromptInput limits, in bytes, the input that a prompt repeats.
const maxPromptInput = 4096

// resumePrompt asks an agent to continue where it was interrupted. It describes the turn, because
// the agent's own session may have lost it.
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
		next = "You were asked to continue once before, and it is unknown whether you did it. Check first: if it is done, continue from there; if it is not, ask the same question again to receive the answer."
	}
	return domain.GoOnPrompt(fmt.Sprintf("Before you were interrupted, %s %s", asked, next), domain.RequestOf(request))
}

// close stores a question's end, announces it, wakes the waiting call, and lets its run continue if
// nothing else blocks it.
func (in *Inbox) close(t store.Tx, a domain.Approval) error { return in.closeIn(t, a, "") }

// closeIn is close for the decision of a user, in a client of this name.
func (in *Inbox) closeIn(t store.Tx, a domain.Approval, client string) error {
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
	resolved := resolvedOf(a)
	resolved.DecidedIn = client
	if err := in.announce(t, run, resolved); err != nil {
		return err
	}
	if err := in.noteAnswer(t, run, a, client); err != nil {
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

// noteOf returns the conversation's note of an answer.
func noteOf(a domain.Approval) domain.ApprovalNote {
	return domain.ApprovalNote{ApprovalID: a.ID, Type: a.Type, Decision: a.Status, Title: cmp.Or(a.Title, a.Subject, a.Tool), Response: cmp.Or(a.Response, a.Comment), Explanation: a.Explanation, Edited: a.UpdatedInput != nil}
}

// noteAnswer records an answer in the conversation if it says more than the tool call shows
// already. It also records denials by the policy. client names the client of the user who decided.
func (in *Inbox) noteAnswer(t store.Tx, run domain.Run, a domain.Approval, client string) error {
	if a.Status != domain.ApprovalDenied && (a.DecidedBy != domain.DecidedByUser || a.Status == domain.ApprovalApproved && a.UpdatedInput == nil) {
		return nil
	}
	if a.Status == domain.ApprovalDenied && a.Type == domain.FunctionCall {
		if err := in.transcript.RefuseTool(t, run, a, cmp.Or(a.Explanation, a.Comment)); err != nil {
			return err
		}
	}
	n := noteOf(a)
	n.DecidedIn = client
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

// CancelQuestions closes the questions of a run that has ended or is about to. Those kept by
// KeepQuestions stay open.
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

// KeepQuestions marks a run's questions as stale: they stay open when the run ends.
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

// resolution is the end of a question.
type resolution struct {
	approval  domain.Approval
	cancelled bool // the run is ending, without a decision
}

// wake passes the end of an approval to the waiting call.
func (in *Inbox) wake(a domain.Approval) {
	in.mu.Lock()
	answered := in.waiting[a.ID]
	delete(in.waiting, a.ID)
	in.mu.Unlock()
	if answered != nil {
		answered <- resolution{approval: a, cancelled: a.Status == domain.ApprovalCancelled}
	}
}

// mustBeTaken reports whether a question has a human's answer that lets its agent continue, so that
// delivery to the agent matters.
func mustBeTaken(a domain.Approval) bool {
	return a.DecidedBy == domain.DecidedByUser && (a.Status == domain.ApprovalApproved || a.Status == domain.ApprovalResponded)
}

// Done notes in the conversation that the action at an address is complete, as the run's agent
// reports. It ignores questions that the run did not ask.
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
