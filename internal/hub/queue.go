package hub

import (
	"cmp"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
)

// add keeps a run in its thread and queues it, unless it is a draft.
func (h *Hub) add(t store.Tx, run *domain.Run, thread domain.Thread, draft bool) error {
	if run.Source != domain.SourceDecision { // an answer is not refused
		if err := h.checkRoom(t); err != nil {
			return err
		}
		if !draft {
			if err := h.budget.Admit(t); err != nil {
				return err
			}
		}
	}
	if run.Parent == 0 {
		run.Parent = thread.ForkRun
		if last, err := t.LastRun(h.ctx, thread.ID); err == nil {
			run.Parent = last.ID
			if run.Mode == "" && last.Mode == thread.Mode {
				run.AgentMode = thread.AgentModeAfter(last)
			}
		}
	}
	run.Thread, run.State = thread.ID, domain.New
	if draft {
		run.State = domain.Draft
	}
	run.Agent = thread.Agent // a conversation keeps its agent
	run.Created, run.Active = t.Now(), t.Now()
	run.Mode = cmp.Or(run.Mode, thread.Mode)
	if run.Mode == catalog.ModePlan { // also one that it would go on in
		if err := h.settings.Check(h.ctx, t, thread.ID, run.Agent, run.Mode, "", nil); err != nil {
			return err
		}
	}
	run.Title = cmp.Or(run.Title, thread.Title)
	if err := t.InsertRun(run); err != nil {
		return err
	}
	if draft {
		return nil
	}
	if err := h.gates.Follow(t, *run); err != nil {
		return err
	}
	return h.enqueue(t, run, thread)
}

// attach keeps what goes with a prompt, unless its agent is known not to take it.
func (h *Hub) attach(t store.Tx, thread domain.Thread, list []domain.Content) error {
	reported, err := threadsettings.ReportedBy(h.ctx, t, thread.ID, thread.Agent)
	if err == nil {
		err = threadsettings.CheckContent(thread.Agent, reported, list)
	}
	if err != nil {
		return err
	}
	return conversation.Attach(t, list)
}

// checkRoom refuses a run for which the queue has no room.
func (h *Hub) checkRoom(t store.Tx) error {
	counts, err := t.Load(h.ctx)
	if err != nil {
		return err
	}
	if counts[domain.Queued] >= h.opts.Limits.QueueCap {
		return domain.Errorf(domain.KindQueueFull, "the queue is full: %d runs wait; cancel some, wait, or raise limits.queue_cap", counts[domain.Queued])
	}
	return nil
}

// enqueue puts what the user says into the conversation and queues its run. A
// conversation that goes on is not put away.
func (h *Hub) enqueue(t store.Tx, run *domain.Run, thread domain.Thread) error {
	archived := thread.Archived
	if archived {
		thread.Archived = false
		if err := t.UpdateThread(thread); err != nil {
			return err
		}
	}
	err := h.noteAnotherAgent(t, *run)
	if err != nil {
		return err
	}
	if run.Source == domain.SourceAgent {
		err = h.conversation.WentOn(t, *run, ownTurnOf(*run).trigger())
	} else {
		err = h.conversation.Prompt(t, *run, thread)
		h.environments.keep(t, run.ID, h.client)
		queued := *run
		t.AfterCommit(func() { h.yieldTo(queued) })
	}
	if err != nil {
		return err
	}
	arranged, err := h.arrangeBefore(t, run)
	if err != nil {
		return err
	}
	// The thread is touched by the transition.
	if err = h.transition(t, run, domain.Queued, outcome{}); err != nil {
		return err
	}
	if arranged {
		if err := h.announceQueue(t, *run, domain.QueueChanged{}); err != nil {
			return err
		}
	}
	if !archived {
		return nil
	}
	return h.announce(t, *run, domain.SettingsChanged{Archived: &thread.Archived, Reason: "continued"})
}

// noteAnotherAgent says in the conversation of a run that another agent goes on there.
func (h *Hub) noteAnotherAgent(t store.Tx, run domain.Run) error {
	if run.Parent == 0 {
		return nil
	}
	before, err := t.Run(h.ctx, run.Parent)
	if err != nil || before.Thread != run.Thread || before.Agent == run.Agent || before.Agent == "" {
		return err
	}
	return h.conversation.AnotherAgent(t, run, before.Agent)
}
