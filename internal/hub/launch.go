package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/restricted"
	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

// Launch makes a run and starts it as soon as there is a slot. What it
// returns is the run as it was committed.
func (h *Hub) Launch(ctx context.Context, spec LaunchSpec) (domain.Session, error) {
	if strings.TrimSpace(spec.Prompt) == "" {
		return domain.Session{}, domain.Invalid("prompt", "a text that is not empty", "an empty string")
	}
	agent, err := h.agentFor(restricted.Is(ctx), spec.Agent)
	if err != nil {
		return domain.Session{}, err
	}
	if spec.CWD, err = h.directory(spec.CWD); err != nil {
		return domain.Session{}, err
	}
	if spec.Mode != "" { // else the conversation's
		if spec.Mode, err = checkMode(spec.Mode); err != nil {
			return domain.Session{}, err
		}
	}
	run := newRun(spec, agent.Name)
	restricted.Carry(ctx, &run)
	err = h.write(ctx, func(t store.Tx) error {
		if spec.CallerID != "" {
			if _, err := t.Find(h.ctx, spec.CallerID); err == nil {
				return domain.Invalid("task_id", "an id that is new", "the id of another run")
			}
			if domain.IsTaskName(spec.CallerID) {
				return domain.Invalid("task_id", "an id of another form than those that are given out here", fmt.Sprintf("%q", spec.CallerID))
			}
		}
		thread, err := h.threadFor(t, spec, agent.Name)
		if err != nil {
			return err
		}
		if spec.Agent != "" && spec.Agent != thread.Agent {
			return domain.Invalid("agent", "the agent of this conversation, or none", fmt.Sprintf("%q", spec.Agent), thread.Agent)
		}
		run.Agent = thread.Agent
		if restricted.Is(ctx) && thread.Agent != agent.Name {
			if _, err := h.agentFor(true, thread.Agent); err != nil {
				return err
			}
		}
		return h.add(t, &run, thread, spec.Draft)
	})
	if err != nil {
		return domain.Session{}, err
	}
	return h.query.ByRun(ctx, run.ID)
}

// newRun is a run that is not kept yet.
func newRun(spec LaunchSpec, agent string) domain.Run {
	id := uuid.Must(uuid.NewV7())
	return domain.Run{
		UUID: id.String(), SessionID: uuid.NewString(), RunID: uuid.NewString(), CallerID: spec.CallerID,
		Prompt: spec.Prompt, Title: spec.Title, Agent: agent, Source: spec.Source, Priority: spec.Priority, Mode: spec.Mode,
		Tools: spec.Tools, Timeout: spec.Timeout, Quiet: spec.Quiet, Metadata: spec.Metadata,
	}
}

// following is a run after another one of a thread that may do what that one might.
func following(thread domain.Thread, from domain.Run, prompt, agent string) domain.Run {
	run := newRun(LaunchSpec{Prompt: prompt, Mode: thread.ModeAfter(from), Tools: from.Tools, Timeout: from.Timeout, Quiet: from.Quiet}, agent)
	run.Parent = from.ID
	return run
}

// threadFor is the thread that spec names, or a new one.
func (h *Hub) threadFor(t store.Tx, spec LaunchSpec, agent string) (domain.Thread, error) {
	if spec.chat {
		return h.chatThread(t, spec, agent)
	}
	if spec.ThreadAlias != "" {
		id, err := t.FindThread(h.ctx, spec.ThreadAlias)
		if err == nil {
			thread, err := t.Thread(h.ctx, id)
			if err == nil && thread.Agent == "" {
				thread.Agent = agent
				err = t.UpdateThread(thread)
			}
			return thread, err
		}
		if !errors.Is(err, store.ErrNotFound) {
			return domain.Thread{}, err
		}
		if domain.IsTaskName(spec.ThreadAlias) {
			return domain.Thread{}, domain.Invalid("session_id", "an id of another form than those that are given out here, or one that there is", fmt.Sprintf("%q", spec.ThreadAlias))
		}
	}
	return h.newThread(t, spec, agent)
}

func (h *Hub) newThread(t store.Tx, spec LaunchSpec, agent string) (domain.Thread, error) {
	thread := domain.Thread{
		UUID: uuid.Must(uuid.NewV7()).String(), Title: spec.Title, CWD: spec.CWD, Agent: agent, Mode: cmp.Or(spec.Mode, catalog.ModeDefault), Model: spec.Model,
		Settings: spec.Settings, Created: t.Now(), Active: t.Now(),
	}
	return thread, h.addThread(t, &thread, spec.ThreadAlias)
}

func (h *Hub) addThread(t store.Tx, thread *domain.Thread, alias string) error {
	if err := t.InsertThread(thread); err != nil {
		return err
	}
	if alias != "" {
		if err := t.SetAlias(alias, 0, thread.ID); err != nil {
			return err
		}
	}
	return t.SetAlias(thread.UUID, 0, thread.ID)
}

// add keeps a run in its thread and queues it, unless it is a draft.
func (h *Hub) add(t store.Tx, run *domain.Run, thread domain.Thread, draft bool) error {
	if run.Source != domain.SourceDecision { // an answer is not refused
		if err := h.checkRoom(t); err != nil {
			return err
		}
	}
	if run.Parent == 0 {
		run.Parent = thread.ForkRun
		if last, err := t.LastRun(h.ctx, thread.ID); err == nil {
			run.Parent = last.ID
		}
	}
	run.Thread, run.State = thread.ID, domain.New
	if draft {
		run.State = domain.Draft
	}
	run.Agent = thread.Agent // a conversation keeps its agent
	run.Created, run.Active = t.Now(), t.Now()
	run.Mode = cmp.Or(run.Mode, thread.Mode)
	if err := h.checkHeld(run.Agent, run.Mode); err != nil {
		return err
	}
	run.Title = cmp.Or(run.Title, thread.Title)
	if err := t.InsertRun(run); err != nil {
		return err
	}
	if draft {
		return nil
	}
	return h.enqueue(t, run, thread)
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
	if err := h.conversation.Prompt(t, *run, thread); err != nil {
		return err
	}
	// The thread is touched by the transition.
	if err := h.transition(t, run, domain.Queued, outcome{}); err != nil || !archived {
		return err
	}
	return h.announce(t, *run, domain.SettingsChanged{Archived: &thread.Archived, Reason: "continued"})
}

// Continue makes a run that follows another one: in its thread if that is the
// thread's last run or has not ended, where it queues behind what is there,
// else in a fork of the thread, as with Fork. A draft is launched: it has
// nothing that could be followed.
func (h *Hub) Continue(ctx context.Context, spec ContinueSpec) (domain.Session, error) {
	var run domain.Run
	err := h.write(ctx, func(t store.Tx) error {
		from, err := h.find(t, spec.From)
		if err != nil {
			return err
		}
		if from.State == domain.Draft {
			run = from
			return h.launchDraft(ctx, t, &run, spec)
		}
		if strings.TrimSpace(spec.Prompt) == "" {
			return domain.Invalid("query", "a text that is not empty", "nothing")
		}
		if from.State == domain.Discarded {
			return domain.Errorf(domain.KindBadState, "%s is %s: there is nothing to continue", domain.TaskName(from.Task), from.State)
		}
		if spec.Fork && !from.State.Ended() { // what it will have said is not known yet
			return domain.Errorf(domain.KindBadState, "%s is %s: it can be forked when it has ended", domain.TaskName(from.Task), from.State)
		}
		thread, err := t.Thread(h.ctx, from.Thread)
		if err != nil {
			return err
		}
		agent, err := h.agentFor(restricted.Is(ctx), thread.Agent)
		if err != nil {
			return err
		}
		thread.Agent = agent.Name // of a history that was taken over it is not known before
		last, err := t.LastRun(h.ctx, thread.ID)
		if err != nil {
			return err
		}
		if spec.Settings != nil {
			spec.Settings(&thread.Settings)
		}
		if !spec.Fork && (last.ID == from.ID || !from.State.Ended()) {
			from = last // others may wait behind what was named
			err = t.UpdateThread(thread)
		} else {
			thread, err = h.fork(t, thread, from)
		}
		if err != nil {
			return err
		}
		run = following(thread, from, spec.Prompt, agent.Name)
		run.Source, run.Priority, run.Metadata = spec.Source, spec.Priority, spec.Metadata
		if len(spec.Tools) > 0 {
			run.Tools = spec.Tools
		}
		if thread.ID != from.Thread {
			run.Mode = asking(run.Mode)
		}
		restricted.Carry(ctx, &run)
		return h.add(t, &run, thread, false)
	})
	if err != nil {
		return domain.Session{}, err
	}
	return h.query.ByRun(ctx, run.ID)
}

// launchDraft queues a draft, with what spec changes of it.
func (h *Hub) launchDraft(ctx context.Context, t store.Tx, run *domain.Run, spec ContinueSpec) error {
	if spec.Fork {
		return domain.Errorf(domain.KindBadState, "%s is a draft: there is nothing to fork", domain.TaskName(run.Task))
	}
	thread, err := t.Thread(h.ctx, run.Thread)
	if err != nil {
		return err
	}
	if _, err := h.agentFor(restricted.Is(ctx), thread.Agent); err != nil {
		return err
	}
	if err := h.checkRoom(t); err != nil {
		return err
	}
	if spec.Settings != nil {
		turns := thread.Settings.MaxTurns
		spec.Settings(&thread.Settings)
		if thread.Settings.MaxTurns == 0 { // it is still the draft's own session
			thread.Settings.MaxTurns = turns
		}
		run.Tools = thread.Settings.AllowedTools
		if err := t.UpdateThread(thread); err != nil {
			return err
		}
	}
	if strings.TrimSpace(spec.Prompt) != "" {
		run.Prompt = spec.Prompt
		if err := t.SetPrompt(run.ID, run.Prompt); err != nil {
			return err
		}
	}
	if spec.Priority != 0 {
		run.Priority = spec.Priority
	}
	if len(spec.Metadata) > 0 {
		run.Metadata = spec.Metadata
	}
	restricted.Carry(ctx, run)
	h.query.Changed(t, run.ID)
	return h.enqueue(t, run, thread)
}

// fork is a new thread that shares another one up to a run. Its agent begins
// with the transcript: its own session knows more than it should.
func (h *Hub) fork(t store.Tx, from domain.Thread, at domain.Run) (domain.Thread, error) {
	fork := from
	fork.ID, fork.UUID, fork.NativeSession = 0, uuid.Must(uuid.NewV7()).String(), ""
	fork.Parent, fork.ForkRun, fork.Archived = from.ID, at.ID, false
	fork.Created, fork.Active = t.Now(), t.Now()
	// What was accepted for one conversation is not for another.
	fork.Mode = asking(fork.Mode)
	fork.Settings.SkipPermissions, fork.Settings.SkipPermissionsUntil, fork.Settings.AutoAcceptEdits = false, nil, false
	return fork, h.addThread(t, &fork, "")
}

// asking is a permission mode without what passes unasked.
func asking(mode string) string {
	if mode == catalog.ModeBypass || mode == catalog.ModeAcceptEdits {
		return catalog.ModeDefault
	}
	return mode
}

// agent finds an agent, with an error that says what to do.
func (h *Hub) agent(name string) (config.Agent, error) { return agentIn(h.opts.Agents, name) }

func agentIn(agents Agents, name string) (config.Agent, error) {
	agent, err := agents.Resolve(name)
	var unknown *config.UnknownAgentError
	var untrusted *config.NotTrustedError
	switch {
	case errors.As(err, &unknown):
		return agent, &domain.Error{
			Kind: domain.KindUnknownAgent, Param: "agent", Expected: "the name of an agent", Received: fmt.Sprintf("%q", name), Accepted: unknown.Known,
			Message: err.Error(), Err: err,
		}
	case errors.As(err, &untrusted):
		return agent, &domain.Error{Kind: domain.KindNotTrusted, Message: err.Error(), Err: err}
	case err != nil:
		return agent, &domain.Error{Kind: domain.KindExecutor, Message: err.Error(), Err: err}
	}
	return agent, nil
}

// directory is the directory that a caller means, absolute.
func (h *Hub) directory(path string) (string, error) {
	if path == "" {
		return h.opts.Root, nil
	}
	full := path
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || strings.HasPrefix(rest, string(filepath.Separator))) {
		full = filepath.Join(h.opts.Getenv("HOME"), rest)
	}
	if !filepath.IsAbs(full) {
		full = filepath.Join(h.opts.Root, full)
	}
	info, err := os.Stat(full)
	switch {
	case err != nil:
		return "", domain.Invalid("working_dir", "a directory that exists", fmt.Sprintf("%q", path))
	case !info.IsDir():
		return "", domain.Invalid("working_dir", "a directory", fmt.Sprintf("the file %q", path))
	}
	return filepath.Clean(full), nil
}

func checkMode(mode string) (string, error) {
	switch mode {
	case "":
		return catalog.ModeDefault, nil
	case catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass, catalog.ModePlan:
		return mode, nil
	}
	return "", domain.Invalid("permission_mode", "a permission mode", fmt.Sprintf("%q", mode),
		catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass, catalog.ModePlan)
}

// checkHeld refuses plan mode for an agent that cannot be held to it: a plain
// command asks nobody before it acts.
func (h *Hub) checkHeld(name, mode string) error {
	agent, err := h.agent(name)
	if err != nil || agent.Driver != "command" || mode != catalog.ModePlan {
		return nil
	}
	return domain.Invalid("permission_mode", "a mode that the agent "+agent.Name+" can be held to: it is a plain command, which asks nobody before it acts", fmt.Sprintf("%q", mode),
		catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass)
}
