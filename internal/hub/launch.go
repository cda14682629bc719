package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// LaunchSpec describes a run in a new thread, or in the one that ThreadAlias names. Only Prompt is
// required.
type LaunchSpec struct {
	Prompt   string
	Content  []domain.Content // attachments
	Title    string
	Agent    string // configured name; "": the default agent
	CWD      string // "": the project root; ~ is expanded; must be a directory
	Source   string
	Model    string
	Mode     string // Duet's or the agent's; "": the thread's, or default in a new one
	Settings domain.Settings
	Priority int
	Timeout  time.Duration // 0: as configured
	Tools    []string      // allowed; empty: all
	Quiet    bool          // no deltas
	Worktree *bool         // the new conversation works in a git worktree of its own; nil: as configured
	Draft    bool          // store only, do not queue
	Metadata json.RawMessage
	Gates    gate.Spec

	ThreadUUID  string // id of a new thread, chosen by the caller; "": generated
	ThreadAlias string // the caller's id of the conversation; prompts with the same id share it
	CallerID    string // the caller's id of this run; must be new
	Once        bool   // a launch whose CallerID has a run returns that run
	// Waiting, if set, is called before the launch waits for git or for another launch.
	Waiting func()

	chat bool   // in the project's chat
	base string // the commit of the worktree; "": the user's
}

// Launch creates a run and starts it as soon as a slot is free. It returns the run as committed.
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
	if spec.Once {
		done, err := h.launches.begin(ctx, spec.CallerID, spec.wait)
		if err != nil {
			return domain.Session{}, err
		}
		defer done()
		if was, err := h.launched(ctx, spec); err != nil || was.ID != 0 {
			return was, err
		}
	}
	undo, without, err := h.createWorktree(ctx, &spec)
	if err != nil {
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
		if spec.Worktree != nil && *spec.Worktree && thread.CWD != spec.CWD {
			return domain.Invalid("worktree", "false for a conversation that exists", "true")
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
		if without != "" {
			if err := h.conversation.Note(t, run, conversation.NoteWorktree, noWorktree(without)); err != nil {
				return err
			}
		}
		return h.gates.Begin(t, run, spec.Gates)
	})
	if err != nil {
		undo()
		return domain.Session{}, err
	}
	return h.query.ByRun(ctx, run.ID)
}

func (s LaunchSpec) wait() {
	if s.Waiting != nil {
		s.Waiting()
	}
}

// launched returns the session of an earlier launch with the same CallerID, or the zero one.
func (h *Hub) launched(ctx context.Context, spec LaunchSpec) (domain.Session, error) {
	var run domain.Run
	err := h.write(ctx, func(t store.Tx) error {
		id, err := t.Find(h.ctx, spec.CallerID)
		if err == nil {
			run, err = t.Run(h.ctx, id)
		}
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return domain.Session{}, nil
	case err != nil:
		return domain.Session{}, err
	case run.CallerID != spec.CallerID || run.Prompt != spec.Prompt:
		return domain.Session{}, domain.Invalid("launch_id", "an id that is new, or that of a launch with the same prompt", "the id of another run")
	}
	return h.query.ByRun(ctx, run.ID)
}

// launches are the launches under way, by their ids.
type launches struct {
	mu   sync.Mutex
	byID map[string]chan struct{} // closed when the launch has ended
}

// begin waits until no other launch with the id is under way, and calls waiting before. done must be
// called at the end.
func (l *launches) begin(ctx context.Context, id string, waiting func()) (done func(), err error) {
	for {
		l.mu.Lock()
		other := l.byID[id]
		if other == nil {
			break
		}
		l.mu.Unlock()
		waiting()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = make(map[string]chan struct{})
	}
	ended := make(chan struct{})
	l.byID[id] = ended
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.byID, id)
		close(ended)
	}, nil
}

// newRun returns a run that is not stored yet.
func newRun(spec LaunchSpec, agent string) domain.Run {
	id := uuid.Must(uuid.NewV7())
	return domain.Run{
		UUID: id.String(), SessionID: uuid.NewString(), RunID: uuid.NewString(), CallerID: spec.CallerID,
		Prompt: spec.Prompt, Content: domain.BlocksOf(spec.Content), Title: spec.Title, Agent: agent, Source: spec.Source, Priority: spec.Priority, Mode: spec.Mode,
		Tools: spec.Tools, Timeout: spec.Timeout, Quiet: spec.Quiet, Metadata: spec.Metadata,
	}
}

// directory resolves a caller's directory to an absolute path.
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

// Chat is Launch in the project's single chat.
func (h *Hub) Chat(ctx context.Context, message string, priority int) (domain.Session, error) {
	return h.Launch(ctx, LaunchSpec{
		Prompt: message, Priority: priority, Source: domain.SourceChat, Title: "Chat", chat: true,
		Metadata: json.RawMessage(`{"source":"ipc-chat"}`),
	})
}

// threadFor returns the thread that spec names, or a new one.
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
		UUID: cmp.Or(spec.ThreadUUID, uuid.Must(uuid.NewV7()).String()), Title: spec.Title, CWD: spec.CWD, Agent: agent, Mode: cmp.Or(spec.Mode, catalog.ModeDefault), Model: spec.Model,
		Settings: spec.Settings, Created: t.Now(), Active: t.Now(),
	}
	return thread, h.addThread(t, &thread, spec.ThreadAlias)
}

func (h *Hub) addThread(t store.Tx, thread *domain.Thread, alias string) error {
	if err := t.InsertThread(thread); err != nil {
		return err
	}
	if alias != "" && alias != thread.UUID {
		if err := t.SetAlias(alias, 0, thread.ID); err != nil {
			return err
		}
	}
	return t.SetAlias(thread.UUID, 0, thread.ID)
}

// fork creates a thread that shares the history of another one up to a run. Its agent gets the
// transcript, because the agent's own session may contain later turns. mode is that of the fork, or
// "".
func (h *Hub) fork(t store.Tx, from domain.Thread, at domain.Run, id, mode string) (domain.Thread, error) {
	fork := from
	fork.ID, fork.UUID, fork.NativeSession = 0, cmp.Or(id, uuid.Must(uuid.NewV7()).String()), ""
	fork.Parent, fork.ForkRun, fork.Archived = from.ID, at.ID, false
	if h.lostWorktree(from) { // a fork shares the worktree otherwise
		fork.CWD = h.opts.Root
	}
	fork.Created, fork.Active = t.Now(), t.Now()
	// Permissions of one conversation do not apply to another.
	fork.Mode = cmp.Or(mode, asking(fork.Mode))
	fork.Settings.SkipPermissions, fork.Settings.SkipPermissionsUntil, fork.Settings.AutoAcceptEdits = false, nil, false
	fork.Settings.Attempts = ""
	return fork, h.addThread(t, &fork, "")
}

// forkMode sets the mode of a fork's first run, or resets it to one that grants no permission of the
// other conversation.
func forkMode(run *domain.Run, mode string) {
	if mode != "" {
		run.AgentMode, run.Mode = "", mode
		return
	}
	if run.AgentMode != "" && run.AgentMode != catalog.ModePlan {
		run.AgentMode, run.Mode = "", catalog.ModeDefault
	}
	run.Mode = asking(run.Mode)
}

// asking returns plan for plan, and default for any other mode, which may let tools run unasked. The hub
// does not know which of an agent's own modes do.
func asking(mode string) string {
	if mode == catalog.ModePlan {
		return mode
	}
	return catalog.ModeDefault
}

// chatThread is the meta key for the row id of the project's chat thread. No caller's id can name
// it.
const chatThread = "chat_thread"

// chatThread returns the thread of the project's chat. It is created with the first message. If the
// default agent has changed, the chat continues in a fork and the new agent gets the transcript,
// because a conversation keeps its agent.
func (h *Hub) chatThread(t store.Tx, spec LaunchSpec, agent string) (domain.Thread, error) {
	known, err := t.Meta(h.ctx, chatThread)
	if err != nil {
		return domain.Thread{}, err
	}
	if known != "" {
		id, err := strconv.ParseInt(known, 10, 64)
		if err != nil {
			return domain.Thread{}, fmt.Errorf("finding the chat: %w", err)
		}
		thread, err := t.Thread(h.ctx, id)
		if err != nil || thread.Agent == agent {
			return thread, err
		}
		return h.chatWith(t, thread, agent)
	}
	thread, err := h.newThread(t, spec, agent)
	if err != nil {
		return thread, err
	}
	return thread, h.setChat(t, thread.ID)
}

// chatWith makes a thread the chat that continues another one with a different agent.
func (h *Hub) chatWith(t store.Tx, from domain.Thread, agent string) (domain.Thread, error) {
	last, err := t.LastRun(h.ctx, from.ID)
	if err != nil {
		return domain.Thread{}, err
	}
	from.Agent, from.Model, from.Settings.Options = agent, "", nil // the other agent does not know these names
	thread, err := h.fork(t, from, last, "", "")
	if err != nil {
		return thread, err
	}
	return thread, h.setChat(t, thread.ID)
}

func (h *Hub) setChat(t store.Tx, thread int64) error {
	return t.SetMeta(chatThread, strconv.FormatInt(thread, 10))
}
