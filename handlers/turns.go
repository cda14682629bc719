package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerTurns registers the methods of the noun turn.
func registerTurns(reg *server.Registry, d Domain, s sessions) {
	f := nativeFamily
	handle(reg, d, f, "turn.list", s.listTurns,
		server.Doc("Lists turns of all sessions or of one, the newest first. If not all fit, pass next_before as before to get more."))
	handle(reg, d, f, "turn.get", s.getTurn, server.Doc("Returns a turn, without the items of the session."))
	handle(reg, d, f, "turn.wait", s.waitTurn, server.LongRunning(),
		server.Doc("Waits until the work on a turn has ended, and returns the turn. With gates this is the last turn that worked for them. "+
			"$/cancelRequest ends only the waiting."))
	handle(reg, d, f, "turn.interrupt", s.interruptTurn,
		server.Doc("Interrupts a turn, also while it waits for input; a queued one is cancelled. The session can be continued. For a turn that "+
			"has ended, this stops the background work of its agent. With background, it stops only that task, whether or not the turn has ended."))
	handle(reg, d, f, "turn.edit", editTurn, server.Doc("Changes the text of a queued prompt; its content blocks stay. A prompt that has "+
		"started is refused (`bad_state`). All clients get the event queue.changed."))
	handle(reg, d, f, "turn.move", moveTurn, server.Doc("Moves a queued prompt within the queue of its session. A prompt that has started "+
		"is refused (`bad_state`). All clients get the event queue.changed."))
}

// waitingPrompts converts queued turns to at most most bytes.
func waitingPrompts(turns []domain.TurnInSession, most int) []*protocol.WaitingPrompt {
	prompts := make([]*protocol.WaitingPrompt, 0, len(turns))
	for _, t := range turns {
		prompts = append(prompts, &protocol.WaitingPrompt{
			Turn: t.Turn.Name(), TurnUUID: t.HumanLayerSession, Prompt: t.Prompt, CreatedAt: t.Turn.Created, Editable: t.IsWritten(),
		})
	}
	prompts = protocol.Fit(prompts, most)
	for n, p := range prompts {
		p.Truncated = p.Prompt != turns[n].Prompt
	}
	return prompts
}

func (s sessions) listTurns(ctx context.Context, h *hub.Hub, p protocol.ListTurnsParams) (protocol.TurnList, error) {
	f := domain.TurnFilter{Agent: p.Agent, Archived: p.Archived, Limit: protocol.PageSize(p.Limit, sessionsByDefault, sessionsAtMost)}
	for _, state := range p.States {
		f.States = append(f.States, domain.State(state))
	}
	if f.States == nil {
		f.States = domain.Listed()
	}
	if p.Session != "" {
		of, err := h.Query().Turn(ctx, string(p.Session))
		if err != nil {
			return protocol.TurnList{}, err
		}
		f.Session = of.Session.ID
	}
	turns, err := s.turns(ctx, h, string(p.Before), f)
	if err != nil {
		return protocol.TurnList{}, err
	}
	r := protocol.TurnList{Turns: protocol.Fit(turns, protocol.Room(ctx))}
	if n := len(r.Turns); mayHaveMore(n, len(turns), f) {
		r.NextBefore = r.Turns[n-1].Name
	}
	return r, nil
}

func (s sessions) getTurn(ctx context.Context, h *hub.Hub, p protocol.TurnParams) (protocol.TurnResult, error) {
	t, err := s.whole(ctx, h, string(p.Turn))
	if err != nil {
		return protocol.TurnResult{}, err
	}
	protocol.Fit([]*protocol.Turn{t}, protocol.Room(ctx))
	return protocol.TurnResult{Turn: *t}, nil
}

func (s sessions) waitTurn(ctx context.Context, h *hub.Hub, p protocol.TurnParams) (protocol.TurnResult, error) {
	of, err := h.Query().Turn(ctx, string(p.Turn))
	if err != nil {
		return protocol.TurnResult{}, err
	}
	loop, gated, err := h.Gates().Await(ctx, of.Turn.ID)
	switch {
	case err != nil:
	case gated:
		of, err = h.Query().ByTurn(ctx, loop.Turn)
	default:
		of, err = h.Await(ctx, of.HumanLayerSession)
	}
	if err != nil {
		return protocol.TurnResult{}, err
	}
	t := currentTurn(h, of)
	t.Gates, err = gatesOf(ctx, h, of)
	protocol.Fit([]*protocol.Turn{t}, protocol.Room(ctx))
	return protocol.TurnResult{Turn: *t}, err
}

func (sessions) interruptTurn(ctx context.Context, h *hub.Hub, p protocol.InterruptTurnParams) (protocol.InterruptTurnResult, error) {
	t, err := interrupted(ctx, h, string(p.Turn), p.Background, p.Reason)
	if err != nil {
		return protocol.InterruptTurnResult{}, err
	}
	return protocol.InterruptTurnResult{Turn: t.Turn.Name(), State: t.State, Of: t}, nil
}

// interrupted interrupts a turn, or one of its agent's background tasks.
func interrupted(ctx context.Context, h *hub.Hub, id, background, reason string) (domain.TurnInSession, error) {
	if background != "" {
		return h.StopBackgroundTask(ctx, id, background)
	}
	return h.Interrupt(ctx, id, reason) // it also takes a turn that has not been started
}

func editTurn(ctx context.Context, h *hub.Hub, p protocol.EditTurnParams) (protocol.QueuedTurns, error) {
	if err := h.EditQueued(ctx, string(p.Turn), p.Prompt); err != nil {
		return protocol.QueuedTurns{}, err
	}
	return queuedWith(ctx, h, p.Turn)
}

func moveTurn(ctx context.Context, h *hub.Hub, p protocol.MoveTurnParams) (protocol.QueuedTurns, error) {
	if err := h.MoveQueued(ctx, string(p.Turn), string(p.Before)); err != nil {
		return protocol.QueuedTurns{}, err
	}
	return queuedWith(ctx, h, p.Turn)
}

func queuedWith(ctx context.Context, h *hub.Hub, turn protocol.Ref) (protocol.QueuedTurns, error) {
	turns, err := h.Queued(ctx, string(turn))
	return protocol.QueuedTurns{Queued: waitingPrompts(turns, protocol.Room(ctx))}, err
}

// setSilence adds the silence of the agent.
func setSilence(r *protocol.Turn, s domain.AgentSilent) {
	since := s.Since.UTC()
	r.SilentSince, r.SilentNote, r.SilentTool = &since, s.Note, s.Tool
}

const summaryShown = 80

// summaryOf describes a turn in lists: the user's request, or the reason why its agent continued.
func summaryOf(turn domain.Turn) string {
	if turn.Source != domain.SourceAgent {
		return domain.RequestOf(turn.Prompt)
	}
	var own struct {
		Trigger struct {
			Kind  string `json:"kind"`
			Label string `json:"label"`
		} `json:"turn_trigger"`
	}
	_ = json.Unmarshal(turn.Metadata, &own) // zero if the agent gave no reason
	return domain.TurnTrigger(own.Trigger).String()
}

// turnOf converts a turn at the time now of [hub.Hub.Latest].
func turnOf(s domain.TurnInSession, now time.Time) *protocol.Turn {
	tokens, settings := s.Tokens, s.Session.Settings
	t := &protocol.Turn{
		Name: s.Turn.Name(), Session: s.Session.ID, ID: s.HumanLayerSession, SessionUUID: s.Session.UUID,
		State: s.State, Prompt: s.Prompt, Summary: protocol.Headline(summaryOf(s.Turn), summaryShown), Title: titleOf(s),
		SessionTitle: sessionTitleOf(s),
		Agent:        s.Agent, AgentSessionID: s.Session.NativeSession, Model: cmp.Or(s.Model, s.Session.Model), Mode: modeInForce(s),
		WorkingDir: s.Session.CWD, Source: s.Source, Priority: s.Priority, CallerID: s.CallerID,
		CreatedAt: s.Created.UTC(), StartedAt: protocol.TimeOrNil(s.Started), ActiveAt: s.Active.UTC(), EndedAt: protocol.TimeOrNil(s.Ended),
		Error: protocol.ErrorText(s.Turn), ErrorCode: s.ErrorCode, StopReason: s.Stop, AuthMethods: s.SignIn,
		CostUSD: protocol.OrNil(tokens.CostUSD), InputTokens: protocol.OrNil(tokens.Input), OutputTokens: protocol.OrNil(tokens.Output),
		CacheReadTokens: protocol.OrNil(tokens.CacheRead), CacheWriteTokens: protocol.OrNil(tokens.CacheWrite),
		TotalTokens: protocol.OrNil(tokens.Input + tokens.Output), ContextTokens: protocol.OrNil(contextTokens(s.Turn)),
		ContextSize: protocol.OrNil(tokens.ContextSize), DurationMS: protocol.DurationMS(s.Turn), Messages: protocol.OrNil(s.Messages),
		AutoAcceptEdits: settings.AutoAcceptEdits, SkipPermissions: settings.SkipPermissions, Sandbox: settings.Sandbox,
		Archived: s.Session.Archived, AdditionalDirectories: settings.AdditionalDirectories,
		Progress: s.Progress, Metadata: s.Metadata,
		AgentMode: s.AgentMode, RequestedOptions: settings.Options, Attempts: settings.Attempts, Of: s,
	}
	if t.Mode != cmp.Or(s.Session.Mode, "default") {
		t.RequestedMode = s.Session.Mode
	}
	if s.Session.Agent != s.Agent {
		t.RequestedAgent = s.Session.Agent
	}
	if t.Model != s.Session.Model {
		t.RequestedModel = s.Session.Model
	}
	if until := settings.SkipPermissionsUntil; t.SkipPermissions && until != nil {
		t.SkipPermissions = until.After(now)
		t.SkipPermissionsUntil = protocol.TimeOrNil(*until)
	}
	if s.State.Ended() {
		t.Result = s.Result
	}
	return t
}

// contextTokens returns the number of tokens in the context: as the agent reports it, else the tokens
// that it used.
func contextTokens(r domain.Turn) int64 {
	if r.Tokens.ContextUsed > 0 {
		return r.Tokens.ContextUsed
	}
	return r.Tokens.Input + r.Tokens.Output
}

// modeInForce returns the permission mode in which a session's agent works after a turn. It differs
// from the user's choice if the agent has entered plan mode, or has left plan mode or a mode of its own.
func modeInForce(s domain.TurnInSession) string {
	asked, is := s.Session.Mode, s.Session.AgentModeAfter(s.Turn)
	switch {
	case is == catalog.ModePlan:
		return is
	case asked == "":
		return catalog.ModeDefault
	case is == "", asked == catalog.ModeDefault, asked == catalog.ModeAcceptEdits, asked == catalog.ModeBypass, catalog.ModeName(is) == catalog.ModeName(asked):
		return asked // Duet enforces its own modes in a mode of the agent of another name
	}
	return is
}

// currentTurn converts a turn at its current state.
func currentTurn(h *hub.Hub, of domain.TurnInSession) *protocol.Turn {
	t := turnOf(of, h.Latest())
	if silence, is := h.Intake().Silence(of.Turn.ID); is {
		setSilence(t, silence)
	}
	t.Background = h.Intake().Background(of.Session.ID)
	t.Worktree = worktreeOf(h, of.Session)
	return t
}
