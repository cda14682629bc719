package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Approvals returns the inbox of open approvals and their decisions.
func (h *Hub) Approvals() *approval.Inbox { return h.approvals }

// newInbox returns the hub's inbox. The store must be open.
func (h *Hub) newInbox() *approval.Inbox {
	policy := approval.NewPolicy(h.opts.Root, h.opts.Rules)
	policy.Worktree = h.projectIn
	return approval.New(h.ctx, approval.Options{
		Store: h.store, Policy: policy, Runs: runsOfHub{h}, Transcript: h.conversation, Logger: h.log, Since: h.opts.Replaced,
	})
}

// runsOfHub gives the inbox access to runs.
type runsOfHub struct{ hub *Hub }

func (r runsOfHub) Write(ctx context.Context, change func(store.Tx) error) error {
	return r.hub.write(ctx, change)
}

func (r runsOfHub) Find(ctx context.Context, reader store.Reader, id string) (domain.Run, error) {
	return query.Find(ctx, reader, id)
}

func (r runsOfHub) AwaitInput(t store.Tx, run *domain.Run) error {
	return r.hub.transition(t, run, domain.WaitingInput, outcome{reason: "approval"})
}

func (r runsOfHub) GoOn(t store.Tx, run *domain.Run) error {
	if run.IsQuestion() {
		return r.hub.transition(t, run, domain.Completed, outcome{reason: "approval"})
	}
	return r.hub.transition(t, run, domain.Running, outcome{reason: "approval"})
}

func (r runsOfHub) Resume(t store.Tx, interrupted domain.Run, prompt string, restrict bool) error {
	if interrupted.IsQuestion() { // the caller gets the answer when it asks again
		return nil
	}
	last, err := t.LastRun(r.hub.ctx, interrupted.Thread)
	if err != nil || !last.State.Ended() {
		return err
	}
	_, err = r.goOn(t, interrupted, last, domain.SourceDecision, prompt, restrict)
	return err
}

func (r runsOfHub) Tell(t store.Tx, in domain.Run, prompt string, restrict bool) (domain.Run, error) {
	last, err := t.LastRun(r.hub.ctx, in.Thread)
	if err != nil {
		return domain.Run{}, err
	}
	return r.goOn(t, last, last, domain.SourceSession, prompt, restrict)
}

// goOn adds a run after the last run of a thread, with the permissions of from.
func (r runsOfHub) goOn(t store.Tx, from, last domain.Run, source, prompt string, restrict bool) (domain.Run, error) {
	thread, err := t.Thread(r.hub.ctx, from.Thread)
	if err != nil {
		return domain.Run{}, err
	}
	run := following(thread, from, prompt, thread.Agent)
	run.Source, run.Parent = source, last.ID
	if restrict || from.Restricted {
		if _, err := r.hub.configured.AgentFor(true, thread.Agent); err != nil {
			return domain.Run{}, err
		}
		run.Restricted = true
	}
	err = r.hub.add(t, &run, thread, false)
	return run, err
}

func (r runsOfHub) ConfirmsAnswers(run domain.Run) bool {
	return r.hub.configured.ConfirmsAnswers(run.Agent)
}

func (r runsOfHub) AgentEnded(run int64) <-chan struct{} {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	if live := r.hub.live[run]; live != nil {
		return live.ended
	}
	return nil
}

func (r runsOfHub) KeepsQuestions(run int64) bool { return r.hub.cutShort.Has(run) }

// questionsThread is the alias of the conversation for clients that name none.
const questionsThread = "duet:questions"

// questionGone is the reason for ending the run of a question whose client has gone.
const questionGone = "the client that asked this has gone"

// PlaceOf finds the active run, or the conversation for standalone questions. BeginQuestion creates
// a conversation that does not exist yet.
func (r runsOfHub) PlaceOf(ctx context.Context, t store.Tx, q approval.Inquiry) (approval.Place, error) {
	h := r.hub
	cwd, err := h.directory(q.CWD)
	if err != nil {
		return approval.Place{}, err
	}
	none := approval.Place{Thread: domain.Thread{CWD: cwd, Mode: catalog.ModeDefault}}
	name := cmp.Or(q.Run, questionsThread)
	run, err := query.Find(h.ctx, t, name)
	var refused *domain.Error
	switch {
	case errors.As(err, &refused) && refused.Kind == domain.KindRunNotFound:
		if domain.IsTaskName(name) {
			return approval.Place{}, err
		}
		return none, nil
	case err != nil:
		return approval.Place{}, err
	case run.IsQuestion():
		none.Thread, err = t.Thread(h.ctx, run.Thread)
		return none, err
	case run.State.Ended() || run.State == domain.Interrupting || run.State == domain.Draft || run.State == domain.Queued:
		return approval.Place{}, domain.Errorf(domain.KindBadState, "%s is %s: nothing can be asked in it; name a session that works, or none", domain.TaskName(run.Task), run.State.Words())
	}
	thread, err := t.Thread(h.ctx, run.Thread)
	return approval.Place{Thread: thread, Run: run}, err
}

// BeginQuestion creates a run that consists of one question. The run has no agent, holds no slot,
// and ends with its answer.
func (r runsOfHub) BeginQuestion(ctx context.Context, t store.Tx, in *approval.Place, q approval.Inquiry) error {
	h := r.hub
	if in.Thread.ID == 0 {
		in.Thread.UUID, in.Thread.Title = uuid.Must(uuid.NewV7()).String(), "Questions"
		if name := askerName(q.Run); name != "" {
			in.Thread.Title += " of " + name
		}
		in.Thread.Created, in.Thread.Active = t.Now(), t.Now()
		if err := h.addThread(t, &in.Thread, cmp.Or(q.Run, questionsThread)); err != nil {
			return err
		}
	}
	text := cmp.Or(q.Title, q.Tool+" "+string(q.Input))
	spec := LaunchSpec{Prompt: strings.TrimSpace(text), Title: questionTitle(cmp.Or(q.Subject, text)), Source: domain.SourceQuestion, Mode: in.Thread.Mode}
	if q.Keep != nil {
		spec.Source = domain.SourceKeptQuestion
	}
	if q.CallID != "" {
		spec.Metadata, _ = json.Marshal(map[string]string{"tool_use_id": q.CallID}) // strings
	}
	run := newRun(spec, askerName(q.Run))
	clientenv.Carry(ctx, &run)
	run.Thread, run.State, run.Created, run.Started, run.Active = in.Thread.ID, domain.New, t.Now(), t.Now(), t.Now()
	if err := t.InsertRun(&run); err != nil {
		return err
	}
	in.Run = run
	return h.transition(t, &in.Run, domain.Running, outcome{})
}

// askerName returns the name that lists show for the client of a question: the conversation's alias
// without its kind prefix. It returns "" if the alias is the id of a run.
func askerName(conversation string) string {
	if _, err := uuid.Parse(conversation); err == nil || domain.IsTaskName(conversation) {
		return ""
	}
	return strings.TrimPrefix(conversation, "mcp:")
}

// EndQuestion ends the run of a question whose client has gone.
func (r runsOfHub) EndQuestion(t store.Tx, run *domain.Run, kept bool) error {
	return r.hub.transition(t, run, domain.Interrupted, outcome{reason: "caller_gone", message: questionGone, leaveApprovals: kept})
}

// questionTitle returns the beginning of a text as one line.
func questionTitle(text string) string {
	const most = 80
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > most {
		text = fmt.Sprintf("%s…", string([]rune(text)[:most-1]))
	}
	return text
}
