package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Approvals are the questions that wait for people, and their answers.
func (h *Hub) Approvals() *approval.Inbox { return h.approvals }

// newInbox makes the hub's inbox. The store is open.
func (h *Hub) newInbox() *approval.Inbox {
	return approval.New(h.ctx, approval.Options{
		Store: h.store, Policy: approval.NewPolicy(h.opts.Root, h.opts.Rules), Runs: runsOfHub{h}, Transcript: h.conversation, Logger: h.log, Since: h.opts.Replaced,
	})
}

// runsOfHub is the life of runs as the inbox needs it.
type runsOfHub struct{ hub *Hub }

func (r runsOfHub) Write(ctx context.Context, change func(store.Tx) error) error {
	return r.hub.write(ctx, change)
}

func (r runsOfHub) Find(ctx context.Context, reader store.RunReader, id string) (domain.Run, error) {
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
	if interrupted.IsQuestion() { // who asked it takes the answer when it asks again
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

// goOn adds a run behind the last one of a thread, which may do what from might.
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
