package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A Place is where a client's question is asked.
type Place struct {
	Thread domain.Thread // what is asked is judged by its settings and rules; not kept yet where its ID is 0
	Run    domain.Run    // of an agent, which waits with the client; the zero value: there is none, and one is made for the question
}

// An Inquiry is what a client asks, and waits for itself.
type Inquiry struct {
	Spec // Run is any id of a run that works, or the client's own name for a conversation; "": that of all who name none
	CWD  string
	// Confirmed says that a person has allowed it where it is asked: nobody is asked
	// here, but the policy may deny it.
	Confirmed bool
	// Keep reports, when the client waits no longer, whether its question stays open
	// nevertheless: who asks the same again in the same conversation gets the answer.
	Keep func() bool
}

// Consult asks, by the policy first and then a person, on behalf of a client, and
// waits for the answer, which is approved or responded to. If it is not, the error
// is of domain.KindPermissionDenied. It is of domain.KindTaskCancelled if somebody
// has ended the question or its run, and that of ctx when the client asks no more.
func (in *Inbox) Consult(ctx context.Context, q Inquiry) (domain.Approval, error) {
	a := q.approval()
	answered := make(chan resolution, 1)
	var place Place
	var settled, asked bool // without anybody being asked; in the store
	err := in.runs.Write(ctx, func(t store.Tx) (err error) {
		settled, asked = false, false
		if place, err = in.runs.PlaceOf(ctx, t, q); err != nil {
			return err
		}
		a.Thread, a.Run, a.Created = place.Thread.ID, place.Run.ID, t.Now()
		if settled, err = in.knownAnswer(ctx, t, q, &a, place); err != nil || settled {
			return err
		}
		if place.Run.ID == 0 {
			if err := in.runs.BeginQuestion(ctx, t, &place, q); err != nil {
				return err
			}
			a.Thread, a.Run = place.Thread.ID, place.Run.ID
		}
		asked = true
		t.AfterCommit(func() {
			in.mu.Lock()
			in.waiting[a.ID] = answered
			in.mu.Unlock()
		})
		return in.askReplacing(t, &a, &place.Run)
	})
	switch {
	case err != nil:
		if asked && ctx.Err() != nil && in.ctx.Err() == nil { // it may have been asked nevertheless, and nobody waits
			in.takeBack(a, place.Run, false)
		}
		return domain.Approval{}, err
	case settled:
		return a, denialOf(a)
	}
	return in.awaitAnswerFor(ctx, q, a, place.Run, answered)
}

// answerKept is how long an answer waits for a client that went before it came.
const answerKept = time.Hour

// approval is an inquiry as a row.
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

// knownAnswer reports whether the policy has an answer, or a person has given one to
// the same question of a client that went before it came. It is put into a.
func (in *Inbox) knownAnswer(ctx context.Context, t store.Tx, q Inquiry, a *domain.Approval, place Place) (bool, error) {
	if a.Type == domain.FunctionCall {
		situation := situation{Thread: place.Thread, Run: place.Run, Now: t.Now()}
		var err error
		if place.Run.ID != 0 {
			situation, err = in.situationOf(t, place.Run)
		} else {
			situation.Rules, err = in.standingRules(t, place.Thread.ID)
		}
		if err != nil {
			return false, err
		}
		if clientenv.IsRestricted(ctx) {
			situation.Run.Restricted = true
		}
		if ruling := in.policy.Judge(callOf(*a), situation); ruling.IsSettled() {
			decideBy(a, ruling)
			if place.Run.ID == 0 { // it has no session in which that could be shown
				in.log.Info("a tool was judged for a client", "tool", a.Tool, "status", a.Status, "by", a.DecidedBy)
				return true, nil
			}
			return true, in.recordRuling(t, a, place.Run, ruling)
		}
	}
	if q.Confirmed {
		a.Status, a.DecidedBy = domain.ApprovalApproved, domain.DecidedByUser
		return true, nil
	}
	if place.Thread.ID == 0 {
		return false, nil
	}
	carried, err := in.handOverCarried(t, *a)
	if err != nil || carried == nil {
		return false, err
	}
	if t.Now().Sub(carried.Decided) > answerKept {
		return false, in.giveUp(t, *carried, givenUpLate)
	}
	carried.AwaitedBy = 0 // the client has it with the reply
	*a = *carried
	return true, t.UpdateApproval(*carried)
}

// awaitAnswerFor waits for a human on behalf of a client.
func (in *Inbox) awaitAnswerFor(ctx context.Context, q Inquiry, a domain.Approval, run domain.Run, answered chan resolution) (domain.Approval, error) {
	defer func() {
		in.mu.Lock()
		delete(in.waiting, a.ID)
		in.mu.Unlock()
	}()
	select {
	case v := <-answered:
		return v.approval, denialOf(v.approval)
	case <-in.ctx.Done():
		return domain.Approval{}, domain.ErrEnding
	case <-ctx.Done():
		if in.ctx.Err() == nil {
			in.takeBack(a, run, q.Keep != nil && q.Keep())
		}
		return domain.Approval{}, ctx.Err()
	}
}

// takeBack takes back what a client has asked that waits for it no longer, or with
// keep leaves it open for whoever asks the same again.
func (in *Inbox) takeBack(a domain.Approval, of domain.Run, keep bool) {
	err := in.runs.Write(in.ctx, func(t store.Tx) error {
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
		run, err := t.Run(in.ctx, a.Run)
		if err != nil {
			return err
		}
		if keep {
			if err := in.KeepQuestions(t, run); err != nil {
				return err
			}
		}
		return in.runs.EndQuestion(t, &run, keep)
	})
	if err != nil && in.ctx.Err() == nil {
		in.log.Warn("a question could not be taken back", "err", err)
	}
}

// denialOf is why an answer does not let a client go on, or nil.
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
	return domain.Errorf(domain.KindTaskCancelled, "the question was taken back before anybody has answered it")
}
