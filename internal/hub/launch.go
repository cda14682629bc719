package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// chatThread is the meta value that names the project's chat.
const chatThread = "chat_thread"

// Launch makes a run and starts it as soon as there is a slot. What it
// returns is the run as it was committed.
func (h *Hub) Launch(ctx context.Context, spec LaunchSpec) (Session, error) {
	if strings.TrimSpace(spec.Prompt) == "" {
		return Session{}, invalid("prompt", "a text that is not empty", "an empty string")
	}
	agent, err := h.resolve(spec.Agent)
	if err != nil {
		return Session{}, err
	}
	if spec.CWD, err = h.directory(spec.CWD); err != nil {
		return Session{}, err
	}
	if spec.Mode, err = checkMode(spec.Mode); err != nil {
		return Session{}, err
	}
	run := newRun(spec, agent.Name)
	err = h.write(ctx, func(t *store.Tx) error {
		if spec.CallerID != "" {
			if _, err := t.Find(h.ctx, spec.CallerID); err == nil {
				return invalid("task_id", "an id that is new", "the id of another run")
			}
		}
		thread, err := h.threadFor(t, spec, agent.Name)
		if err != nil {
			return err
		}
		if spec.Agent != "" && spec.Agent != thread.Agent {
			return invalid("agent", "the agent of this conversation, or none", fmt.Sprintf("%q", spec.Agent), thread.Agent)
		}
		run.Agent = thread.Agent
		return h.add(t, &run, thread, spec.Draft)
	})
	if err != nil {
		return Session{}, err
	}
	return h.session(ctx, run.ID)
}

// Chat is Launch in the project's one chat.
func (h *Hub) Chat(ctx context.Context, message string, priority int) (Session, error) {
	return h.Launch(ctx, LaunchSpec{
		Prompt: message, Priority: priority, Source: SourceChat, ThreadAlias: chatThread, Title: "Chat",
		Metadata: encode(map[string]string{"source": "ipc-chat"}),
	})
}

// newRun is a run that is not kept yet.
func newRun(spec LaunchSpec, agent string) Run {
	id := uuid.Must(uuid.NewV7())
	return Run{
		UUID: id.String(), SessionID: uuid.NewString(), RunID: uuid.NewString(), CallerID: spec.CallerID,
		Prompt: spec.Prompt, Title: spec.Title, Agent: agent, Source: spec.Source, Priority: spec.Priority, Mode: spec.Mode,
		Tools: spec.Tools, Timeout: spec.Timeout, Quiet: spec.Quiet, Metadata: spec.Metadata,
	}
}

// threadFor is the thread that spec names, or a new one.
func (h *Hub) threadFor(t *store.Tx, spec LaunchSpec, agent string) (Thread, error) {
	if spec.ThreadAlias != "" {
		id, err := t.FindThread(h.ctx, spec.ThreadAlias)
		if err == nil {
			return t.Thread(h.ctx, id)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return Thread{}, err
		}
	}
	thread := Thread{
		UUID: uuid.Must(uuid.NewV7()).String(), Title: spec.Title, CWD: spec.CWD, Agent: agent, Mode: spec.Mode, Model: spec.Model,
		Settings: spec.Settings, Created: t.Now, Active: t.Now,
	}
	return thread, h.addThread(t, &thread, spec.ThreadAlias)
}

func (h *Hub) addThread(t *store.Tx, thread *Thread, alias string) error {
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
func (h *Hub) add(t *store.Tx, run *Run, thread Thread, draft bool) error {
	counts, err := t.Load(h.ctx)
	if err != nil {
		return err
	}
	if counts[store.Queued] >= h.opts.Limits.QueueCap {
		return errorf(KindQueueFull, "the queue is full: %d runs wait; cancel some, wait, or raise limits.queue_cap", counts[store.Queued])
	}
	if last, err := t.LastRun(h.ctx, thread.ID); err == nil && run.Parent == 0 {
		run.Parent = last.ID
	}
	run.Thread, run.State = thread.ID, store.Draft
	run.Agent = thread.Agent // a conversation keeps its agent
	run.Created, run.Active = t.Now, t.Now
	if run.Mode == "" {
		run.Mode = thread.Mode
	}
	if err := h.checkHeld(run.Agent, run.Mode); err != nil {
		return err
	}
	if run.Title == "" {
		run.Title = thread.Title
	}
	if err := t.InsertRun(run); err != nil {
		return err
	}
	if draft {
		return nil
	}
	if err := h.addPrompt(t, *run, thread); err != nil {
		return err
	}
	// The thread is touched by the transition.
	return h.transition(t, run, store.Queued, outcome{})
}

// Continue makes a run that follows another one: in its thread if that is the
// thread's last run, else in a fork of the thread, as with Fork.
func (h *Hub) Continue(ctx context.Context, spec ContinueSpec) (Session, error) {
	if strings.TrimSpace(spec.Prompt) == "" {
		return Session{}, invalid("query", "a text that is not empty", "an empty string")
	}
	var run Run
	err := h.write(ctx, func(t *store.Tx) error {
		from, err := h.find(t, spec.From)
		if err != nil {
			return err
		}
		if from.State == store.Draft || from.State == store.Discarded {
			return errorf(KindBadState, "%s is %s: there is nothing to continue", store.TaskName(from.Task), from.State)
		}
		if spec.Fork && !from.State.Ended() { // what it will have said is not known yet
			return errorf(KindBadState, "%s is %s: it can be forked when it has ended", store.TaskName(from.Task), from.State)
		}
		thread, err := t.Thread(h.ctx, from.Thread)
		if err != nil {
			return err
		}
		agent, err := h.resolve(thread.Agent)
		if err != nil {
			return err
		}
		last, err := t.LastRun(h.ctx, thread.ID)
		if err != nil {
			return err
		}
		if spec.Settings != nil {
			spec.Settings(&thread.Settings)
		}
		if last.ID == from.ID && !spec.Fork {
			err = t.UpdateThread(thread)
		} else {
			thread, err = h.fork(t, thread, from)
		}
		if err != nil {
			return err
		}
		run = newRun(LaunchSpec{Prompt: spec.Prompt, Source: spec.Source, Priority: spec.Priority, Metadata: spec.Metadata, Mode: thread.Mode}, agent.Name)
		run.Parent = from.ID
		return h.add(t, &run, thread, false)
	})
	if err != nil {
		return Session{}, err
	}
	return h.session(ctx, run.ID)
}

// fork is a new thread that shares another one up to a run. Its agent begins
// with the transcript: its own session knows more than it should.
func (h *Hub) fork(t *store.Tx, from Thread, at Run) (Thread, error) {
	fork := from
	fork.ID, fork.UUID, fork.NativeSession = 0, uuid.Must(uuid.NewV7()).String(), ""
	fork.Parent, fork.ForkRun, fork.Archived = from.ID, at.ID, false
	fork.Created, fork.Active = t.Now, t.Now
	return fork, h.addThread(t, &fork, "")
}

// resolve finds an agent, with an error that says what to do.
func (h *Hub) resolve(name string) (config.Agent, error) {
	agent, err := h.opts.Agents.Resolve(name)
	var unknown *config.UnknownAgentError
	var untrusted *config.NotTrustedError
	switch {
	case errors.As(err, &unknown):
		return agent, &Error{
			Kind: KindUnknownAgent, Param: "agent", Expected: "the name of an agent", Received: fmt.Sprintf("%q", name), Accepted: unknown.Known,
			Message: err.Error(), Err: err,
		}
	case errors.As(err, &untrusted):
		return agent, &Error{Kind: KindNotTrusted, Message: err.Error(), Err: err}
	case err != nil:
		return agent, &Error{Kind: KindExecutor, Message: err.Error(), Err: err}
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
		return "", invalid("working_dir", "a directory that exists", fmt.Sprintf("%q", path))
	case !info.IsDir():
		return "", invalid("working_dir", "a directory", fmt.Sprintf("the file %q", path))
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
	return "", invalid("permission_mode", "a permission mode", fmt.Sprintf("%q", mode),
		catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass, catalog.ModePlan)
}

// checkHeld refuses plan mode for an agent that cannot be held to it: a plain
// command asks nobody before it acts.
func (h *Hub) checkHeld(name, mode string) error {
	agent, err := h.resolve(name)
	if err != nil || agent.Driver != "command" || mode != catalog.ModePlan {
		return nil
	}
	return invalid("permission_mode", "a mode that the agent "+agent.Name+" can be held to: it is a plain command, which asks nobody before it acts", fmt.Sprintf("%q", mode),
		catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass)
}
