// Package approval is the inbox of approvals: agents and clients ask, people answer, and the inbox
// delivers the answers.
//
// A question is a stored row and independent of connections. The first answer wins, even after the
// asking agent is gone. The answer then waits until the question is asked again.
//
// The states of an answer that lets an agent continue:
//
//	asked     AwaitedBy is the turn that waits
//	answered  the row has the answer; from here on the agent may have it
//	taken     its executor has seen the agent continue: AwaitedBy is 0, Taken is set
//
// If the turn ends before "taken", it is unknown whether the agent acted on the answer. The answer
// is final, so another question asks the person again and says why.
//
// Read ask.go, policy.go, question.go and decide.go in this order: an agent asks and waits, a mode or
// a rule decides, a question is stored, a person decides. call.go and rules.go say what a tool call
// is and which rules match it. settle.go handles what a turn leaves behind. How turns continue and end
// is behind [Turns].
package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// unconfirmedPatience is how long a third-party executor waits for an answer. It is just under the
// 30 s of the executor catalog.
const unconfirmedPatience = 29 * time.Second

// Ask decides whether a tool of a turn may run: the policy first, then a person. It waits for the
// answer until ctx ends, because the agent then asks no more. p has no secrets of the agent.
func (in *Inbox) Ask(ctx context.Context, turn int64, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	if p.Elicitation != nil {
		if err := checkElicitation(domain.Elicitation(*p.Elicitation), p.Title); err != nil {
			return catalog.RequestPermissionResult{}, err
		}
	} else if strings.TrimSpace(p.ToolName) == "" {
		return catalog.RequestPermissionResult{}, domain.Invalid("tool_name", "the name of a tool", "an empty string")
	}
	if p.ToolInput != nil && p.ToolParams != nil && !toolinput.Same(p.ToolInput, p.ToolParams) {
		return catalog.RequestPermissionResult{}, domain.Invalid("tool_params", "nothing beside tool_input, or the same", "another input")
	}
	a := approvalOf(p)
	a.Turn, a.AwaitedBy = turn, turn
	answered := make(chan resolution, 1)
	defer in.forget(a.ID)
	var found answer
	err := in.turns.Write(ctx, func(t store.Tx) (err error) {
		earlier, latest := in.latest(turn, p, a.ID)
		if !latest {
			found = answer{ended: true}
			return nil
		}
		old, err := in.changed(t, earlier, &a)
		if err != nil {
			return err
		}
		if found, err = in.answerOrAsk(t, &a, answered); err != nil || old == nil {
			return err
		}
		return in.replace(t, *old, a, found)
	})
	switch {
	case err != nil:
		if ctx.Err() != nil { // the question may be stored although no agent waits
			in.abandon(turn, a.ID)
		}
		return catalog.RequestPermissionResult{}, err
	case found.ended:
		return cancelled(), nil
	case found.ruling.IsSettled():
		return catalog.RequestPermissionResult{Approved: found.ruling.Approved, Reason: found.ruling.Reason}, nil
	case found.carried != nil:
		return resultOf(*found.carried), nil
	}
	return in.awaitAnswer(ctx, a, answered)
}

// answer is what is already known about a question. The zero value means that a person must be
// asked.
type answer struct {
	ended   bool             // the turn may ask nothing more
	ruling  Ruling           // the policy's ruling
	carried *domain.Approval // a person's earlier answer
}

// answerOrAsk finds the answer to a question of a turn. Without one, it stores the question and
// sends its resolution to answered.
func (in *Inbox) answerOrAsk(t store.Tx, a *domain.Approval, answered chan resolution) (answer, error) {
	turn, err := t.Turn(in.ctx, a.Turn)
	if err != nil {
		return answer{}, err
	}
	if !canAsk(turn) {
		return answer{ended: true}, nil
	}
	a.Session, a.Created = turn.Session, t.Now()
	if a.Type == domain.FunctionCall {
		situation, err := in.situationOf(t, turn)
		if err != nil {
			return answer{}, err
		}
		if ruling := in.policy.Judge(callOf(*a), situation); ruling.IsSettled() {
			if err := in.answeredByPolicy(t, *a); err != nil || ruling.Approved {
				return answer{ruling: ruling}, err
			}
			return answer{ruling: ruling}, in.recordRuling(t, a, turn, ruling)
		}
	}
	if carried, err := in.handOverCarried(t, *a); err != nil || carried != nil {
		return answer{carried: carried}, err
	}
	if !in.turns.ConfirmsAnswers(turn) {
		a.Deadline = t.Now().Add(unconfirmedPatience)
	}
	t.AfterCommit(func() {
		in.mu.Lock()
		in.waiting[a.ID] = answered
		in.mu.Unlock()
	})
	return answer{}, in.askReplacing(t, a, &turn)
}

// canAsk reports whether the agent of a turn may still ask.
func canAsk(turn domain.Turn) bool { return turn.State.Active() && turn.State != domain.Interrupting }

// situationOf returns the situation for judging the calls of a turn.
func (in *Inbox) situationOf(t store.Tx, turn domain.Turn) (Situation, error) {
	session, err := t.Session(in.ctx, turn.Session)
	if err != nil {
		return Situation{}, err
	}
	seen, err := t.AgentSession(in.ctx, turn.Session)
	if err != nil {
		return Situation{}, err
	}
	rules, err := in.standingRules(t, turn.Session)
	situation := Situation{Session: session, Turn: turn, Rules: rules, Now: t.Latest()}
	if seen.Modes != nil && seen.Agent == turn.Agent {
		situation.AgentModes = domain.IDs(seen.Modes.Choices)
	}
	return situation, err
}

// DeniesReading returns whether a mode or rule denies the agent of a turn to read a file. It judges
// by the rules of this moment.
func (in *Inbox) DeniesReading(ctx context.Context, turn domain.Turn) (func(path string) bool, error) {
	var situation Situation
	err := in.turns.Write(ctx, func(t store.Tx) (err error) {
		situation, err = in.situationOf(t, turn)
		return err
	})
	situation.Turn.Tools = nil // they are about tools, not about files
	known := make(map[string]bool)
	return func(path string) bool {
		denied, ok := known[path]
		if !ok {
			input, _ := json.Marshal(map[string]string{"file_path": path}) // texts can be encoded
			ruling := in.policy.Judge(
				callOf(domain.Approval{Type: domain.FunctionCall, Tool: "Read", ToolKind: "read", Input: input, Paths: []string{path}}), situation,
			)
			denied = ruling.IsSettled() && !ruling.Approved
			known[path] = denied
		}
		return denied
	}, err
}

// decideBy stores a ruling in a as the decision.
func decideBy(a *domain.Approval, r Ruling) {
	a.Status, a.DecidedBy, a.Explanation = statusOf(r), r.Reason, r.Explanation
}

// statusOf returns the approval status for a ruling.
func statusOf(r Ruling) string {
	if r.Approved {
		return domain.ApprovalApproved
	}
	return domain.ApprovalDenied
}

// recordRuling stores and announces a question that the policy has answered.
func (in *Inbox) recordRuling(t store.Tx, a *domain.Approval, turn domain.Turn, r Ruling) error {
	decideBy(a, r)
	a.Decided, a.AwaitedBy = t.Now(), 0
	if err := t.InsertApproval(a); err != nil {
		return err
	}
	if err := in.announce(t, turn, resolvedOf(*a)); err != nil {
		return err
	}
	return in.noteAnswer(t, turn, *a, "")
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
		in.abandon(a.Turn, a.ID)
		return catalog.RequestPermissionResult{}, ctx.Err()
	}
}

// resultOf returns a decision as an executor's result.
func resultOf(a domain.Approval) catalog.RequestPermissionResult {
	r := catalog.RequestPermissionResult{
		Approved: a.Status == domain.ApprovalApproved, Reason: a.DecidedBy, Comment: a.Comment, OptionID: a.Option, UpdatedInput: a.UpdatedInput,
	}
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

// cancelled returns the result for an agent whose turn is ending.
func cancelled() catalog.RequestPermissionResult {
	return catalog.RequestPermissionResult{Reason: "cancelled", Cancelled: true}
}

// abandon closes a question whose agent stopped asking. If the agent has ended, the end of its turn
// keeps the question.
func (in *Inbox) abandon(turn int64, id string) {
	in.awaitEnd(turn)
	if in.ctx.Err() == nil {
		in.closeUnawaited(id, domain.ApprovalCancelled, domain.DecidedByEnd)
	}
}

// linkPatience is how long to wait for a turn's end after its link broke. If the turn ends, its
// question is kept.
const linkPatience = time.Second

// awaitEnd waits up to linkPatience until a turn has no agent.
func (in *Inbox) awaitEnd(turn int64) {
	ended := in.turns.AgentEnded(turn)
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

// closeUnawaited closes a question for which no agent or client waits.
func (in *Inbox) closeUnawaited(id, status, by string) {
	err := in.turns.Write(in.ctx, func(t store.Tx) error {
		a, err := t.Approval(in.ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil || a.Status != domain.ApprovalPending || a.Stale || in.turns.KeepsQuestions(a.Turn) {
			return err
		}
		a.Status, a.DecidedBy = status, by
		return in.close(t, a)
	})
	if err != nil && in.ctx.Err() == nil {
		in.log.Warn("a question could not be closed", "err", err)
	}
}

// forget removes the waiting call of a question.
func (in *Inbox) forget(id string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.waiting, id)
}

// resolution is the end of a question.
type resolution struct {
	approval  domain.Approval
	cancelled bool // the turn is ending, without a decision
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

// CheckUnasked reports whether the policy denies a tool call that an agent runs without asking. It
// judges the call under each tool name in p.Unasked. It asks no person, but a denial is recorded
// like any other.
func (in *Inbox) CheckUnasked(ctx context.Context, turn int64, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	a := approvalOf(p)
	var result catalog.RequestPermissionResult
	err := in.turns.Write(ctx, func(t store.Tx) error {
		result = catalog.RequestPermissionResult{Approved: true}
		turn, err := t.Turn(in.ctx, turn)
		if err != nil {
			return err
		}
		if !canAsk(turn) {
			result = catalog.RequestPermissionResult{Cancelled: true}
			return nil
		}
		situation, err := in.situationOf(t, turn)
		if err != nil {
			return err
		}
		var denial Ruling
		for _, name := range p.Unasked {
			a.Tool = name
			ruling := in.policy.Judge(callOf(a), situation)
			if ruling.Approved || !ruling.IsSettled() {
				return nil
			}
			denial = ruling
		}
		result = catalog.RequestPermissionResult{Reason: denial.Reason}
		a.Tool, a.Session, a.Turn, a.Created = cmp.Or(p.ToolName, a.Tool), turn.Session, turn.ID, t.Now()
		return in.recordRuling(t, &a, turn, denial)
	})
	return result, err
}

// Place is the session, and possibly the turn, in which a client's question is asked.
type Place struct {
	Session domain.Session // its settings and rules judge the question; not stored yet if its ID is 0
	Turn    domain.Turn    // an agent's turn that waits with the client; zero: the question gets its own turn
}

// Inquiry is a question of a client that waits for the answer itself.
type Inquiry struct {
	Spec // Turn is any id of an active turn, or the client's name for a session; "": the session shared by all unnamed clients
	CWD  string
	// Confirmed says that a person has already agreed in the client. No person is asked again, but
	// the policy may deny it.
	Confirmed bool
	// Keep reports, when the client stops waiting, whether its question stays open. The same
	// question in the same session then gets the answer.
	Keep func() bool
}

// Consult asks on behalf of a client, the policy first and then a person, and waits for the answer.
// It returns an approval that is approved or responded to. Otherwise the error is of
// domain.KindPermissionDenied, or of domain.KindTaskCancelled if the question or its turn was ended.
// If ctx ends, the error is that of ctx.
func (in *Inbox) Consult(ctx context.Context, q Inquiry) (domain.Approval, error) {
	a := q.approval()
	answered := make(chan resolution, 1)
	var place Place
	var settled, asked bool // settled: answered without a person; asked: stored
	defer in.forget(a.ID)
	err := in.turns.Write(ctx, func(t store.Tx) (err error) {
		settled, asked = false, false
		if place, err = in.turns.PlaceOf(ctx, t, q); err != nil {
			return err
		}
		a.Session, a.Turn, a.Created = place.Session.ID, place.Turn.ID, t.Now()
		if settled, err = in.knownAnswer(ctx, t, q, &a, place); err != nil || settled {
			return err
		}
		if place.Turn.ID == 0 {
			if err := in.turns.BeginQuestion(ctx, t, &place, q); err != nil {
				return err
			}
			a.Session, a.Turn = place.Session.ID, place.Turn.ID
		}
		asked = true
		t.AfterCommit(func() {
			in.mu.Lock()
			in.waiting[a.ID] = answered
			in.mu.Unlock()
		})
		return in.askReplacing(t, &a, &place.Turn)
	})
	switch {
	case err != nil:
		if asked && ctx.Err() != nil && in.ctx.Err() == nil { // the question may be stored although no client waits
			in.takeBack(a, place.Turn, q)
		}
		return domain.Approval{}, err
	case settled:
		return a, denialOf(a)
	}
	return in.awaitAnswerFor(ctx, q, a, place.Turn, answered)
}

// answerKept is how long an answer waits for a client that left before it came.
const answerKept = time.Hour

// approval returns an inquiry as an approval.
func (q Inquiry) approval() domain.Approval {
	a := domain.Approval{
		ID: uuid.NewString(), Type: q.Type, CallID: q.CallID, Tool: q.Tool, Input: q.Input, Title: q.Title, Subject: q.Subject,
		Options: q.Options, Status: domain.ApprovalPending, Question: inputHash(q.Tool, callIdentity(q.Input, q.CallID)),
	}
	if q.Type == domain.HumanContact {
		names, _ := json.Marshal(q.Options) // plain strings
		a.Question = inputHash(q.Subject+"\x00"+q.Title, names)
	}
	a.CallID = cmp.Or(a.CallID, a.ID)
	return a
}

// knownAnswer puts a known answer into a and reports whether there is one: the policy's, or a
// person's answer to the same question of a client that left before it came.
func (in *Inbox) knownAnswer(ctx context.Context, t store.Tx, q Inquiry, a *domain.Approval, place Place) (bool, error) {
	if a.Type == domain.FunctionCall {
		situation := Situation{Session: place.Session, Turn: place.Turn, Now: t.Latest()}
		var err error
		if place.Turn.ID != 0 {
			situation, err = in.situationOf(t, place.Turn)
		} else {
			situation.Rules, err = in.standingRules(t, place.Session.ID)
		}
		if err != nil {
			return false, err
		}
		if clientenv.IsRestricted(ctx) {
			situation.Turn.Restricted = true
		}
		if ruling := in.policy.Judge(callOf(*a), situation); ruling.IsSettled() {
			decideBy(a, ruling)
			if place.Turn.ID == 0 { // no session could show it
				in.log.Info("a tool was judged for a client", "tool", a.Tool, "status", a.Status, "by", a.DecidedBy)
				return true, nil
			}
			return true, in.recordRuling(t, a, place.Turn, ruling)
		}
	}
	if q.Confirmed {
		a.Status, a.DecidedBy = domain.ApprovalApproved, domain.DecidedByUser
		return true, nil
	}
	if place.Session.ID == 0 {
		return false, nil
	}
	carried, err := in.handOverCarried(t, *a)
	if err != nil || carried == nil {
		return false, err
	}
	if t.Latest().Sub(carried.Decided) > answerKept {
		return false, in.giveUp(t, *carried, givenUpLate)
	}
	carried.AwaitedBy = 0 // the client gets it with the reply
	*a = *carried
	return true, t.UpdateApproval(*carried)
}

// awaitAnswerFor waits for a human's answer on behalf of a client.
func (in *Inbox) awaitAnswerFor(
	ctx context.Context, q Inquiry, a domain.Approval, turn domain.Turn, answered chan resolution,
) (domain.Approval, error) {
	select {
	case v := <-answered:
		return v.approval, denialOf(v.approval)
	case <-in.ctx.Done():
		return domain.Approval{}, domain.ErrEnding
	case <-ctx.Done():
		if in.ctx.Err() == nil {
			in.takeBack(a, turn, q)
		}
		return domain.Approval{}, ctx.Err()
	}
}

// takeBack closes the question of a client that stopped waiting. With Keep it leaves the question
// open for a client that asks it again.
func (in *Inbox) takeBack(a domain.Approval, of domain.Turn, q Inquiry) {
	keep := q.Keep != nil && q.Keep()
	err := in.turns.Write(in.ctx, func(t store.Tx) error {
		a, err := t.Approval(in.ctx, a.ID)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil || a.Status != domain.ApprovalPending || a.Stale {
			return err
		}
		if !of.IsQuestion() {
			a.Status, a.DecidedBy = domain.ApprovalCancelled, domain.DecidedByEnd
			return in.close(t, a)
		}
		turn, err := t.Turn(in.ctx, a.Turn)
		if err != nil {
			return err
		}
		if keep {
			if err := in.KeepQuestions(t, turn); err != nil {
				return err
			}
		}
		return in.turns.EndQuestion(t, &turn, keep)
	})
	if err != nil && in.ctx.Err() == nil {
		in.log.Warn("cannot withdraw a question", "err", err)
	}
}

// denialOf returns the error of an answer that denies, or nil.
func denialOf(a domain.Approval) error {
	switch a.Status {
	case domain.ApprovalApproved, domain.ApprovalResponded:
		return nil
	case domain.ApprovalDenied:
		e := domain.Errorf(domain.KindPermissionDenied, "%s", cmp.Or(a.Comment, a.Explanation, "a person said no"))
		if e.Reason = a.DecidedBy; a.DecidedBy == domain.DecidedByUser {
			e.Reason = "user_denied"
		}
		return e
	}
	return domain.Errorf(domain.KindTaskCancelled, "the question was withdrawn before it was answered")
}
