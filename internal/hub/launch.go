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
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// LaunchSpec describes a turn in a new session, or in the one that SessionAlias names. Only Prompt is
// required.
type LaunchSpec struct {
	Prompt   string
	Content  []domain.Content // attachments
	Title    string
	Agent    string // configured name; "": the default agent
	CWD      string // "": the project root; ~ is expanded; must be a directory
	Source   string
	Model    string
	Mode     string // Duet's or the agent's; "": the session's, or default in a new one
	Settings domain.Settings
	Priority int
	Timeout  time.Duration // 0: as configured
	Tools    []string      // allowed; empty: all
	Quiet    bool          // no deltas
	Worktree *bool         // the new session works in a git worktree of its own; nil: as configured
	Base     string        // the commit or branch that the worktree begins with; "": the user's
	Draft    bool          // store only, do not queue
	Metadata json.RawMessage
	Gates    gate.Spec

	SessionUUID  string // id of a new session, chosen by the caller; "": generated
	SessionAlias string // the caller's id of the session; prompts with the same id share it
	CallerID     string // the caller's id of this turn; must be new
	Once         bool   // a launch whose CallerID has a turn returns that turn
	// Waiting, if set, is called before the launch waits for git, for bwrap or for another launch.
	Waiting func()

	Chat bool // in the project's chat, which SessionAlias and SessionUUID cannot name
}

// Launch creates a turn and starts it as soon as a slot is free. It returns the turn as committed.
func (h *Hub) Launch(ctx context.Context, spec LaunchSpec) (domain.TurnInSession, error) {
	if strings.TrimSpace(spec.Prompt) == "" {
		return domain.TurnInSession{}, domain.Invalid("prompt", "a text that is not empty", "an empty string")
	}
	if err := spec.Gates.Check(ctx); err != nil {
		return domain.TurnInSession{}, err
	}
	agent, err := h.configured.AgentFor(clientenv.IsRestricted(ctx), spec.Agent)
	if err != nil {
		return domain.TurnInSession{}, err
	}
	if spec.CWD, err = h.directory(spec.CWD); err != nil {
		return domain.TurnInSession{}, err
	}
	spec.Settings.Sandbox = domain.StrongerSandbox(spec.Settings.Sandbox, agent.Sandbox)
	if spec.Settings.Sandbox != "" {
		spec.wait() // the first use of a sandbox runs a program
	}
	if _, _, err := h.findSandbox(ctx, spec.Settings, agent); err != nil {
		return domain.TurnInSession{}, err
	}
	if spec.Once {
		done, err := h.launches.begin(ctx, spec.CallerID, spec.wait)
		if err != nil {
			return domain.TurnInSession{}, err
		}
		defer done()
		if was, err := h.launched(ctx, spec); err != nil || was.ID != 0 {
			return was, err
		}
	}
	undo, without, err := h.createWorktree(ctx, &spec)
	if err != nil {
		return domain.TurnInSession{}, err
	}
	turn := newTurn(spec, agent.Name)
	clientenv.Carry(ctx, &turn)
	err = h.write(ctx, func(t store.Tx) error {
		if spec.CallerID != "" {
			if _, err := t.FindID(h.ctx, spec.CallerID); err == nil {
				return domain.Invalid("task_id", "an id that is new", "the id of another turn")
			}
			if domain.IsReserved(spec.CallerID) {
				return domain.Invalid("task_id", "an id of another form than those that are given out here",
					fmt.Sprintf("%q", spec.CallerID))
			}
		}
		session, err := h.sessionFor(t, spec, agent.Name)
		if err != nil {
			return err
		}
		if spec.Worktree != nil && *spec.Worktree && session.CWD != spec.CWD {
			return domain.Invalid("worktree", "false for a session that exists", "true")
		}
		if spec.Agent != "" && spec.Agent != session.Agent {
			return domain.Invalid("agent", "the agent of this session, or none",
				fmt.Sprintf("%q", spec.Agent), session.Agent)
		}
		if level := domain.StrongerSandbox(session.Settings.Sandbox, spec.Settings.Sandbox); level != session.Settings.Sandbox {
			session.Settings.Sandbox = level
			if err := t.UpdateSession(session); err != nil {
				return err
			}
		}
		turn.Agent = session.Agent
		if clientenv.IsRestricted(ctx) && session.Agent != agent.Name {
			if _, err := h.configured.AgentFor(true, session.Agent); err != nil {
				return err
			}
		}
		if err := h.settings.Check(h.ctx, t, session.ID, session.Agent, spec.Mode, spec.Model, spec.Settings.Options); err != nil {
			return err
		}
		if err := h.attach(t, session, spec.Content); err != nil {
			return err
		}
		if err := h.add(t, &turn, session, spec.Draft); err != nil {
			return err
		}
		if without != "" {
			if err := h.transcript.Note(t, turn, transcript.NoteWorktree, noWorktree(without)); err != nil {
				return err
			}
		}
		return h.gates.Begin(t, turn, spec.Gates)
	})
	if err != nil {
		undo()
		return domain.TurnInSession{}, err
	}
	return h.query.ByTurn(ctx, turn.ID)
}

func (s LaunchSpec) wait() {
	if s.Waiting != nil {
		s.Waiting()
	}
}

// launched returns the session of an earlier launch with the same CallerID, or the zero one.
func (h *Hub) launched(ctx context.Context, spec LaunchSpec) (domain.TurnInSession, error) {
	var turn domain.Turn
	err := h.write(ctx, func(t store.Tx) error {
		id, err := t.FindID(h.ctx, spec.CallerID)
		if err == nil {
			turn, err = t.Turn(h.ctx, id)
		}
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return domain.TurnInSession{}, nil
	case err != nil:
		return domain.TurnInSession{}, err
	case turn.CallerID != spec.CallerID || turn.Prompt != spec.Prompt:
		return domain.TurnInSession{}, domain.Invalid("launch_id",
			"an id that is new, or that of a launch with the same prompt", "the id of another turn")
	}
	return h.query.ByTurn(ctx, turn.ID)
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

// newTurn returns a turn that is not stored yet.
func newTurn(spec LaunchSpec, agent string) domain.Turn {
	id := uuid.Must(uuid.NewV7())
	return domain.Turn{
		UUID: id.String(), HumanLayerSession: uuid.NewString(), HumanLayerRun: uuid.NewString(),
		CallerID: spec.CallerID,
		Prompt:   spec.Prompt, Content: domain.BlocksOf(spec.Content), Title: spec.Title, Agent: agent,
		Source: spec.Source, Priority: spec.Priority, Mode: spec.Mode,
		Tools: spec.Tools, Timeout: spec.Timeout, Quiet: spec.Quiet, Metadata: spec.Metadata,
	}
}

// directory resolves a caller's directory to an absolute path.
func (h *Hub) directory(path string) (string, error) {
	if path == "" {
		return h.opts.Root, nil
	}
	full := path
	if rest, ok := strings.CutPrefix(path, "~"); ok &&
		(rest == "" || strings.HasPrefix(rest, string(filepath.Separator))) {
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

// sessionFor returns the session that spec names, or a new one.
func (h *Hub) sessionFor(t store.Tx, spec LaunchSpec, agent string) (domain.Session, error) {
	if spec.Chat {
		return h.chatSession(t, spec, agent)
	}
	if spec.SessionAlias != "" {
		id, err := t.FindSessionID(h.ctx, spec.SessionAlias)
		if err == nil {
			session, err := t.Session(h.ctx, id)
			if err == nil && session.Agent == "" {
				session.Agent = agent
				err = t.UpdateSession(session)
			}
			return session, err
		}
		if !errors.Is(err, store.ErrNotFound) {
			return domain.Session{}, err
		}
		if domain.IsReserved(spec.SessionAlias) {
			return domain.Session{}, domain.Invalid("session_id",
				"an id of another form than those that are given out here, or one that there is",
				fmt.Sprintf("%q", spec.SessionAlias))
		}
	}
	return h.newSession(t, spec, agent)
}

func (h *Hub) newSession(t store.Tx, spec LaunchSpec, agent string) (domain.Session, error) {
	session := domain.Session{
		UUID: cmp.Or(spec.SessionUUID, uuid.Must(uuid.NewV7()).String()), Title: spec.Title, CWD: spec.CWD,
		Agent: agent, Mode: cmp.Or(spec.Mode, catalog.ModeDefault), Model: spec.Model,
		Settings: spec.Settings, Created: t.Now(), Active: t.Now(),
	}
	return session, h.addSession(t, &session, spec.SessionAlias)
}

func (h *Hub) addSession(t store.Tx, session *domain.Session, alias string) error {
	if err := t.InsertSession(session); err != nil {
		return err
	}
	if alias != "" && alias != session.UUID {
		if err := t.SetAlias(alias, 0, session.ID); err != nil {
			return err
		}
	}
	return t.SetAlias(session.UUID, 0, session.ID)
}

// fork creates a session that shares the history of another one up to a turn. Its agent gets the
// transcript, because the agent's own session may contain later turns. mode is that of the fork, or
// "".
func (h *Hub) fork(t store.Tx, from domain.Session, at domain.Turn, id, mode string) (domain.Session, error) {
	fork := from
	fork.ID, fork.UUID, fork.NativeSession = 0, cmp.Or(id, uuid.Must(uuid.NewV7()).String()), ""
	fork.Parent, fork.ForkTurn, fork.Archived = from.ID, at.ID, false
	fork.Title = forkTitle(from)
	if h.lostWorktree(from) { // a fork shares the worktree otherwise
		fork.CWD = h.opts.Root
	}
	fork.Created, fork.Active = t.Now(), t.Now()
	// Permissions of one session do not apply to another.
	fork.Mode = cmp.Or(mode, asking(fork.Mode))
	fork.Settings.SkipPermissions, fork.Settings.SkipPermissionsUntil, fork.Settings.AutoAcceptEdits = false, nil, false
	fork.Settings.Attempts = ""
	return fork, h.addSession(t, &fork, "")
}

// forkMark ends the title of a fork.
var forkMark = lazyregexp.New(` \(fork of \d+\)$`)

// forkTitle returns the title of a fork, which lists tell from that of the other session. Without a title
// a session is called by its first prompt, which the fork has of its own.
func forkTitle(from domain.Session) string {
	if from.Title == "" {
		return ""
	}
	return fmt.Sprintf("%s (fork of %d)", forkMark().ReplaceAllString(from.Title, ""), from.ID)
}

// forkMode sets the mode of a fork's first turn, or resets it to one that grants no permission of the
// other session.
func forkMode(turn *domain.Turn, mode string) {
	if mode != "" {
		turn.AgentMode, turn.Mode = "", mode
		return
	}
	if turn.AgentMode != "" && turn.AgentMode != catalog.ModePlan {
		turn.AgentMode, turn.Mode = "", catalog.ModeDefault
	}
	turn.Mode = asking(turn.Mode)
}

// asking returns plan for plan, and default for any other mode, which may let tools run unasked. The hub
// does not know which of an agent's own modes do.
func asking(mode string) string {
	if mode == catalog.ModePlan {
		return mode
	}
	return catalog.ModeDefault
}

// chatSession is the meta key for the row id of the project's chat session. No caller's id can name
// it.
const chatSession = "chat_thread"

// chatSession returns the session of the project's chat. It is created with the first message. If the
// default agent has changed, the chat continues in a fork and the new agent gets the transcript,
// because a session keeps its agent.
func (h *Hub) chatSession(t store.Tx, spec LaunchSpec, agent string) (domain.Session, error) {
	known, err := t.Meta(h.ctx, chatSession)
	if err != nil {
		return domain.Session{}, err
	}
	if known != "" {
		id, err := strconv.ParseInt(known, 10, 64)
		if err != nil {
			return domain.Session{}, fmt.Errorf("finding the chat: %w", err)
		}
		session, err := t.Session(h.ctx, id)
		if err != nil || session.Agent == agent {
			return session, err
		}
		return h.chatWith(t, session, agent)
	}
	session, err := h.newSession(t, spec, agent)
	if err != nil {
		return session, err
	}
	return session, h.setChat(t, session.ID)
}

// chatWith makes a session the chat that continues another one with a different agent.
func (h *Hub) chatWith(t store.Tx, from domain.Session, agent string) (domain.Session, error) {
	last, err := t.LastTurn(h.ctx, from.ID)
	if err != nil {
		return domain.Session{}, err
	}
	from.Agent, from.Model, from.Settings.Options = agent, "", nil // the other agent does not know these names
	session, err := h.fork(t, from, last, "", "")
	if err != nil {
		return session, err
	}
	return session, h.setChat(t, session.ID)
}

func (h *Hub) setChat(t store.Tx, session int64) error {
	return t.SetMeta(chatSession, strconv.FormatInt(session, 10))
}
