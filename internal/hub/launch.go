package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Launch makes a run and starts it as soon as there is a slot. What it
// returns is the run as it was committed.
func (h *Hub) Launch(ctx context.Context, spec LaunchSpec) (domain.Session, error) {
	if strings.TrimSpace(spec.Prompt) == "" {
		return domain.Session{}, domain.Invalid("prompt", "a text that is not empty", "an empty string")
	}
	if err := spec.Gates.Check(ctx); err != nil {
		return domain.Session{}, err
	}
	agent, err := h.configured.AgentFor(clientenv.IsRestricted(ctx), spec.Agent)
	if err != nil {
		return domain.Session{}, err
	}
	if spec.CWD, err = h.directory(spec.CWD); err != nil {
		return domain.Session{}, err
	}
	run := newRun(spec, agent.Name)
	clientenv.Carry(ctx, &run)
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
		if clientenv.IsRestricted(ctx) && thread.Agent != agent.Name {
			if _, err := h.configured.AgentFor(true, thread.Agent); err != nil {
				return err
			}
		}
		if err := h.settings.Check(h.ctx, t, thread.ID, thread.Agent, spec.Mode, spec.Model, spec.Settings.Options); err != nil {
			return err
		}
		if err := h.attach(t, thread, spec.Content); err != nil {
			return err
		}
		if err := h.add(t, &run, thread, spec.Draft); err != nil {
			return err
		}
		return h.gates.Begin(t, run, spec.Gates)
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
		Prompt: spec.Prompt, Content: domain.BlocksOf(spec.Content), Title: spec.Title, Agent: agent, Source: spec.Source, Priority: spec.Priority, Mode: spec.Mode,
		Tools: spec.Tools, Timeout: spec.Timeout, Quiet: spec.Quiet, Metadata: spec.Metadata,
	}
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

// Chat is Launch in the project's one chat.
func (h *Hub) Chat(ctx context.Context, message string, priority int) (domain.Session, error) {
	return h.Launch(ctx, LaunchSpec{
		Prompt: message, Priority: priority, Source: domain.SourceChat, Title: "Chat", chat: true,
		Metadata: json.RawMessage(`{"source":"ipc-chat"}`),
	})
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
