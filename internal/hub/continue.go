package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
)

// following returns a run after another run of a thread, with the same permissions.
func following(thread domain.Thread, from domain.Run, prompt, agent string) domain.Run {
	run := newRun(LaunchSpec{Prompt: prompt, Mode: thread.ModeAfter(from), Tools: from.Tools, Timeout: from.Timeout, Quiet: from.Quiet}, agent)
	run.Parent, run.AgentMode = from.ID, thread.AgentModeAfter(from)
	return run
}

// ContinueSpec describes a run that follows another one. It runs in the same thread if From is its
// last run or has not ended; otherwise, or with Fork, in a fork. If From is a draft, that run
// itself is launched.
type ContinueSpec struct {
	From       string           // any id
	Prompt     string           // may be empty for a draft, which keeps its own
	Content    []domain.Content // attachments; for a draft, replaces its own if not empty
	Fork       bool             // fork even from the last run
	ThreadUUID string           // with Fork: id of the new thread, chosen by the caller; "": generated
	Choice     AgentChoice      // with Fork
	Source     string
	Settings   func(*domain.Settings) // changes the thread's settings; nil: keeps them
	Tools      []string               // allowed from now on; empty: unchanged
	Timeout    time.Duration          // from now on; 0: unchanged
	Priority   int
	Metadata   json.RawMessage
	Gates      gate.Spec // replaces the inherited gates
}

// An AgentChoice chooses the agent of a fork, and its settings. What is empty is as in the
// conversation that is forked, if the agent is the same. No mode that grants permissions carries over.
type AgentChoice struct {
	Agent   string // configured name
	Mode    string
	Model   string
	Options map[string]string // the agent's options by id; "" removes one
}

// apply changes a thread that is to be forked. The models and options of another agent do not apply.
func (c AgentChoice) apply(thread *domain.Thread) {
	if c.Agent != "" && c.Agent != thread.Agent {
		thread.Agent, thread.Model, thread.Settings.Options = c.Agent, "", nil
	}
	thread.Model = cmp.Or(c.Model, thread.Model)
	thread.Settings.Options = threadsettings.WithOptions(thread.Settings.Options, c.Options)
}

// Continue creates a run that follows another one. If that is the thread's last run or has not
// ended, the new run is queued in the thread. Otherwise it starts a fork of the thread, as with
// Fork. A draft has no history to follow, so Continue launches it.
func (h *Hub) Continue(ctx context.Context, spec ContinueSpec) (domain.Session, error) {
	if err := spec.Gates.Check(ctx); err != nil {
		return domain.Session{}, err
	}
	var run domain.Run
	err := h.write(ctx, func(t store.Tx) error {
		from, err := query.Find(h.ctx, t, spec.From)
		if err != nil {
			return err
		}
		if from.State == domain.Draft {
			run = from
			if err := h.gates.Begin(t, run, spec.Gates); err != nil {
				return err
			}
			return h.launchDraft(ctx, t, &run, spec)
		}
		if from.IsQuestion() {
			return domain.Errorf(domain.KindBadState, "%s is a question of a program, not of an agent: there is nothing to continue", domain.TaskName(from.Task))
		}
		if strings.TrimSpace(spec.Prompt) == "" {
			return domain.Invalid("query", "a text that is not empty", "nothing")
		}
		if from.State == domain.Discarded {
			return domain.Errorf(domain.KindBadState, "%s is %s: there is nothing to continue", domain.TaskName(from.Task), from.State.Words())
		}
		if spec.Fork && !from.State.Ended() { // its output is not known yet
			return domain.Errorf(domain.KindBadState, "%s is %s: it can be forked when it has ended", domain.TaskName(from.Task), from.State.Words())
		}
		thread, err := t.Thread(h.ctx, from.Thread)
		if err != nil {
			return err
		}
		agent, err := h.configured.AgentFor(clientenv.IsRestricted(ctx), cmp.Or(spec.Choice.Agent, thread.Agent))
		if err != nil {
			return err
		}
		if err := h.settings.Check(h.ctx, t, thread.ID, agent.Name, spec.Choice.Mode, spec.Choice.Model, spec.Choice.Options); err != nil {
			return err
		}
		spec.Choice.apply(&thread)
		thread.Agent = agent.Name // an imported history may not name its agent
		last, err := t.LastRun(h.ctx, thread.ID)
		if err != nil {
			return err
		}
		if spec.Settings != nil {
			spec.Settings(&thread.Settings)
		}
		isLast, err := h.isLast(t, from, last)
		if err != nil {
			return err
		}
		if !spec.Fork && (isLast || !from.State.Ended()) {
			from = last // others may be queued behind the named run
			err = t.UpdateThread(thread)
		} else {
			thread, err = h.fork(t, thread, from, spec.ThreadUUID, spec.Choice.Mode)
		}
		if err != nil {
			return err
		}
		run = following(thread, from, spec.Prompt, agent.Name)
		run.Content = domain.BlocksOf(spec.Content)
		if err := h.attach(t, thread, spec.Content); err != nil {
			return err
		}
		run.Source, run.Priority, run.Metadata, run.Timeout = spec.Source, spec.Priority, spec.Metadata, cmp.Or(spec.Timeout, run.Timeout)
		if len(spec.Tools) > 0 {
			run.Tools = spec.Tools
		}
		if thread.ID != from.Thread {
			forkMode(&run, spec.Choice.Mode)
		}
		clientenv.Carry(ctx, &run)
		if err := h.add(t, &run, thread, false); err != nil {
			return err
		}
		return h.gates.Begin(t, run, spec.Gates)
	})
	if err != nil {
		return domain.Session{}, err
	}
	return h.query.ByRun(ctx, run.ID)
}

// launchDraft queues a draft, with the changes in spec.
func (h *Hub) launchDraft(ctx context.Context, t store.Tx, run *domain.Run, spec ContinueSpec) error {
	if spec.Fork {
		return domain.Errorf(domain.KindBadState, "%s is a draft: there is nothing to fork", domain.TaskName(run.Task))
	}
	thread, err := t.Thread(h.ctx, run.Thread)
	if err != nil {
		return err
	}
	if _, err := h.configured.AgentFor(clientenv.IsRestricted(ctx), thread.Agent); err != nil {
		return err
	}
	if err := h.checkWorktree(t, thread); err != nil {
		return err
	}
	if err := h.checkRoom(t); err != nil {
		return err
	}
	if err := h.budget.Admit(t); err != nil {
		return err
	}
	if spec.Settings != nil {
		turns := thread.Settings.MaxTurns
		spec.Settings(&thread.Settings)
		if thread.Settings.MaxTurns == 0 { // still the draft's own session
			thread.Settings.MaxTurns = turns
		}
		run.Tools = thread.Settings.AllowedTools
		if err := t.UpdateThread(thread); err != nil {
			return err
		}
	}
	if strings.TrimSpace(spec.Prompt) != "" {
		run.Prompt = spec.Prompt
	}
	if spec.Content != nil {
		run.Content = domain.BlocksOf(spec.Content)
		if err := h.attach(t, thread, spec.Content); err != nil {
			return err
		}
	}
	if strings.TrimSpace(spec.Prompt) != "" || spec.Content != nil {
		if err := t.SetPrompt(run.ID, run.Prompt, run.Content); err != nil {
			return err
		}
	}
	if len(spec.Metadata) > 0 {
		run.Metadata = spec.Metadata
	}
	run.Priority, run.Timeout = cmp.Or(spec.Priority, run.Priority), cmp.Or(spec.Timeout, run.Timeout)
	clientenv.Carry(ctx, run)
	h.query.Changed(t, run.ID)
	return h.enqueue(t, run, thread)
}
