package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// following returns a turn after another turn of a session, with the same permissions.
func following(session domain.Session, from domain.Turn, prompt, agent string) domain.Turn {
	turn := newTurn(LaunchSpec{
		Prompt: prompt, Mode: session.ModeAfter(from), Tools: from.Tools, Timeout: from.Timeout, Quiet: from.Quiet,
	}, agent)
	turn.Parent, turn.AgentMode = from.ID, session.AgentModeAfter(from)
	return turn
}

// ContinueSpec describes a turn that follows another one. It runs in the same session if From is its
// last turn or has not ended; otherwise, or with Fork, in a fork. If From is a draft, that turn
// itself is launched.
type ContinueSpec struct {
	From        string           // any id
	CallerID    string           // the caller's id of the turn; if a turn of the session has it, Continue returns that turn; "": none
	Prompt      string           // may be empty for a draft, which keeps its own
	Content     []domain.Content // attachments; for a draft, replaces its own if not empty
	Fork        bool             // fork even from the last turn
	SessionUUID string           // with Fork: id of the new session, chosen by the caller; "": generated
	Choice      AgentChoice      // with Fork
	Source      string
	Settings    func(*domain.Settings) // changes the session's settings; nil: keeps them
	Tools       []string               // allowed from now on; empty: unchanged
	Timeout     time.Duration          // from now on; 0: unchanged
	Priority    int
	Metadata    json.RawMessage
	Gates       gate.Spec // replaces the inherited gates
}

// An AgentChoice chooses the agent of a fork, and its settings. What is empty is as in the
// session that is forked, if the agent is the same. No mode that grants permissions carries over.
type AgentChoice struct {
	Agent   string // configured name
	Mode    string
	Model   string
	Options map[string]string // the agent's options by id; "" removes one
}

// apply changes a session that is to be forked. The models and options of another agent do not apply.
func (c AgentChoice) apply(session *domain.Session) {
	if c.Agent != "" && c.Agent != session.Agent {
		session.Agent, session.Model, session.Settings.Options = c.Agent, "", nil
	}
	session.Model = cmp.Or(c.Model, session.Model)
	session.Settings.Options = domain.WithOptions(session.Settings.Options, c.Options)
}

// Continue creates a turn that follows another one. If that is the session's last turn or has not
// ended, the new turn is queued in the session. Otherwise it starts a fork of the session, as with
// Fork. A draft has no history to follow, so Continue launches it.
func (h *Hub) Continue(ctx context.Context, spec ContinueSpec) (domain.TurnInSession, error) {
	if err := spec.Gates.Check(ctx); err != nil {
		return domain.TurnInSession{}, err
	}
	if err := h.checkSandbox(ctx, spec); err != nil {
		return domain.TurnInSession{}, err
	}
	var turn domain.Turn
	err := h.write(ctx, func(t store.Tx) error {
		from, err := query.Find(h.ctx, t, spec.From)
		if err != nil {
			return err
		}
		if turn, err = h.continued(t, from, spec.CallerID); err != nil || turn.ID != 0 {
			return err
		}
		if from.State == domain.Draft {
			if spec.CallerID != "" {
				return domain.Invalid("prompt_id", "no id for a draft, which has one", "an id")
			}
			turn = from
			if err := h.gates.Begin(t, turn, spec.Gates); err != nil {
				return err
			}
			return h.launchDraft(ctx, t, &turn, spec)
		}
		if from.IsQuestion() {
			return domain.Errorf(domain.KindBadState,
				"%s is a question of a program, not of an agent: there is nothing to continue",
				from.Label())
		}
		if strings.TrimSpace(spec.Prompt) == "" {
			return domain.Invalid("query", "a text that is not empty", "nothing")
		}
		if from.State == domain.Discarded {
			return domain.Errorf(domain.KindBadState, "%s is %s: there is nothing to continue",
				from.Label(), from.State.Words())
		}
		if spec.Fork && !from.State.Ended() { // its output is not known yet
			return domain.Errorf(domain.KindBadState, "%s is %s: it can be forked when it has ended",
				from.Label(), from.State.Words())
		}
		session, err := t.Session(h.ctx, from.Session)
		if err != nil {
			return err
		}
		agent, err := h.configured.AgentFor(clientenv.IsRestricted(ctx), cmp.Or(spec.Choice.Agent, session.Agent))
		if err != nil {
			return err
		}
		if err := h.settings.Check(h.ctx, t, session.ID, agent.Name, spec.Choice.Mode, spec.Choice.Model, spec.Choice.Options); err != nil {
			return err
		}
		spec.Choice.apply(&session)
		session.Agent = agent.Name // an imported history may not name its agent
		last, err := t.LastTurn(h.ctx, session.ID)
		if err != nil {
			return err
		}
		if spec.Settings != nil {
			spec.Settings(&session.Settings)
		}
		session.Settings.Sandbox = domain.StrongerSandbox(session.Settings.Sandbox, agent.Sandbox)
		isLast, err := h.isLast(t, from, last)
		if err != nil {
			return err
		}
		if !spec.Fork && (isLast || !from.State.Ended()) {
			from = last // others may be queued behind the named turn
			err = t.UpdateSession(session)
		} else {
			session, err = h.fork(t, session, from, spec.SessionUUID, spec.Choice.Mode)
		}
		if err != nil {
			return err
		}
		turn = following(session, from, spec.Prompt, agent.Name)
		turn.CallerID, turn.Content = spec.CallerID, domain.BlocksOf(spec.Content)
		if err := h.attach(t, session, spec.Content); err != nil {
			return err
		}
		turn.Source, turn.Priority, turn.Metadata, turn.Timeout = spec.Source, spec.Priority, spec.Metadata, cmp.Or(spec.Timeout, turn.Timeout)
		if len(spec.Tools) > 0 {
			turn.Tools = spec.Tools
		}
		if session.ID != from.Session {
			forkMode(&turn, spec.Choice.Mode)
		}
		clientenv.Carry(ctx, &turn)
		if err := h.add(t, &turn, session, false); err != nil {
			return err
		}
		return h.gates.Begin(t, turn, spec.Gates)
	})
	if err != nil {
		return domain.TurnInSession{}, err
	}
	return h.query.ByTurn(ctx, turn.ID)
}

// continued returns the turn of an earlier prompt with the caller's id, or the zero one.
func (h *Hub) continued(t store.Tx, from domain.Turn, callerID string) (domain.Turn, error) {
	if callerID == "" {
		return domain.Turn{}, nil
	}
	id, err := t.FindID(h.ctx, callerID)
	if errors.Is(err, store.ErrNotFound) {
		return domain.Turn{}, nil
	}
	if err != nil {
		return domain.Turn{}, err
	}
	turn, err := t.Turn(h.ctx, id)
	if err != nil {
		return domain.Turn{}, err
	}
	if turn.CallerID != callerID || turn.Session != from.Session && turn.Parent != from.ID {
		return domain.Turn{}, domain.Invalid("prompt_id", "an id that is new, or that of a prompt in this session", "the id of another turn")
	}
	return turn, nil
}

// launchDraft queues a draft, with the changes in spec.
func (h *Hub) launchDraft(ctx context.Context, t store.Tx, turn *domain.Turn, spec ContinueSpec) error {
	if spec.Fork {
		return domain.Errorf(domain.KindBadState, "%s is a draft: there is nothing to fork", turn.Label())
	}
	session, err := t.Session(h.ctx, turn.Session)
	if err != nil {
		return err
	}
	if _, err := h.configured.AgentFor(clientenv.IsRestricted(ctx), session.Agent); err != nil {
		return err
	}
	if err := h.checkWorktree(t, session); err != nil {
		return err
	}
	if err := h.checkRoom(t); err != nil {
		return err
	}
	if err := h.budget.Admit(t); err != nil {
		return err
	}
	if spec.Settings != nil {
		turns := session.Settings.MaxTurns
		spec.Settings(&session.Settings)
		if session.Settings.MaxTurns == 0 { // still the draft's own session
			session.Settings.MaxTurns = turns
		}
		turn.Tools = session.Settings.AllowedTools
		if err := t.UpdateSession(session); err != nil {
			return err
		}
	}
	if strings.TrimSpace(spec.Prompt) != "" {
		turn.Prompt = spec.Prompt
	}
	if spec.Content != nil {
		turn.Content = domain.BlocksOf(spec.Content)
		if err := h.attach(t, session, spec.Content); err != nil {
			return err
		}
	}
	if strings.TrimSpace(spec.Prompt) != "" || spec.Content != nil {
		if err := t.SetPrompt(turn.ID, turn.Prompt, turn.Content); err != nil {
			return err
		}
	}
	if len(spec.Metadata) > 0 {
		turn.Metadata = spec.Metadata
	}
	turn.Priority, turn.Timeout = cmp.Or(spec.Priority, turn.Priority), cmp.Or(spec.Timeout, turn.Timeout)
	clientenv.Carry(ctx, turn)
	h.query.Changed(t, turn.ID)
	return h.enqueue(t, turn, session)
}
