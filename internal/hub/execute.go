package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// executeStarted runs each started turn in its own goroutine until the hub ends.
func (h *Hub) executeStarted() {
	for {
		select {
		case <-h.toExecute.due:
		case <-h.ctx.Done():
			return
		}
		for _, live := range h.toExecute.take() {
			h.active.Go(func() { h.execute(live) })
		}
	}
}

// limit ends a turn when its time limit is reached.
func (h *Hub) limit(live *liveTurn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live[live.turn.ID] == live { // else it has ended already
		live.clock = newClock(h.limitOf(live.turn), func() { h.active.Go(func() { h.expire(live.turn.ID) }) })
	}
}

// execute takes a turn from starting to its end.
func (h *Hub) execute(live *liveTurn) {
	turn := live.turn
	defer live.cancel()
	defer close(live.ended)
	defer h.keys.Release(turn.Session)
	defer h.tokens.Revoke(turn.ID)
	h.limit(live)
	result, agent, err := h.attempt(turn, live)
	h.reportSignIn(agent, result, err)
	live.reports.Finish()
	close(live.answered)
	if live.files != nil { // a stop that comes meanwhile must not wait for it, and end the executor
		h.checkpoints.recordCommands(turn, live.files)
	}
	if h.ctx.Err() != nil {
		return // Close has marked it as interrupted
	}
	for full := false; ; full = true {
		werr := h.write(h.ctx, func(t store.Tx) error {
			if full { // output at the end is lost
				return h.finishFull(t, turn.ID)
			}
			return h.finish(t, turn.ID, live.reports.Judge(result), err)
		})
		if !store.IsFull(werr) {
			if werr != nil && h.ctx.Err() == nil {
				h.log.Error("the end of a turn could not be kept", "turn", turn.UUID, "err", werr)
			}
			return
		}
		if h.health.AwaitRoom(h.ctx) != nil {
			return
		}
	}
}

// finishFull ends a turn whose end could not be stored at first.
func (h *Hub) finishFull(t store.Tx, id int64) error {
	turn, err := t.Turn(h.ctx, id)
	if err != nil || turn.State.Ended() {
		return err
	}
	return h.cutShort.Fail(t, turn)
}

// attempt runs a prompt with an executor of the session's agent. It returns an error if no executor
// could be started, or if it was lost.
func (h *Hub) attempt(
	turn domain.Turn, live *liveTurn,
) (result catalog.ExecutePromptResult, agent config.Agent, err error) {
	session, err := h.store.Session(live.ctx, turn.Session)
	if err == nil {
		session, err = h.startInWorktree(live.ctx, turn, session)
	}
	if err == nil {
		agent, err = h.configured.AgentFor(turn.Restricted, session.Agent)
	}
	if err == nil {
		result, err = h.attemptWith(turn, live, session, agent)
	}
	return result, agent, err
}

// attemptWith is attempt with a given agent.
func (h *Hub) attemptWith(
	turn domain.Turn, live *liveTurn, session domain.Session, agent config.Agent,
) (result catalog.ExecutePromptResult, err error) {
	client := h.environments.of(turn.ID)
	box, err := h.sandboxOf(live.ctx, session.Settings, agent, client)
	if err != nil {
		return result, err
	}
	h.configs.TurnStarted(turn.ID, agent.FromProject)
	defer h.configs.TurnEnded(turn.ID)
	live.files = h.checkpoints.begin(h.ctx, turn, agent, session.CWD)
	lease, err := h.executors.Acquire(live.ctx, leaseFor(session.UUID, agent))
	if err != nil {
		return result, err
	}
	defer lease.Release()
	defer h.intake.Join(lease)()
	if agent.Driver == config.DriverExecutor { // Duet's executors also run other agents and are not agents themselves
		h.configs.AgentIsExecutor(turn.ID, lease.Kill)
	}
	// A power cut undoes this with all that the agent does then: the turn is starting, as it is on the disk.
	err = h.apply(live.ctx, func(t store.Tx) error {
		var err error
		if turn, err = t.Turn(h.ctx, turn.ID); err != nil { // its mode may have changed
			return err
		}
		t.AfterCommit(func() {
			h.mu.Lock()
			live.lease = lease
			toStop := live.toStop
			h.mu.Unlock()
			if toStop {
				h.stopAgent(live)
			}
		})
		if turn.Source != domain.SourceAgent { // only a prompt supersedes open questions
			if err := h.approvals.CloseOvertaken(t, turn); err != nil {
				return err
			}
		}
		if turn.State == domain.Interrupting && turn.Source == domain.SourceAgent { // its agent is to be stopped, see liveTurn.stop
			return nil
		}
		if err := h.transition(t, &turn, domain.Running, outcome{}); err != nil {
			return err
		}
		return h.spend(t, live)
	})
	if err != nil {
		return result, err
	}
	blocks, err := transcript.PromptContent(live.ctx, h.store, turn)
	if err != nil {
		return result, err
	}
	h.linkIntoWorktree(session.CWD, blocks)
	launch := h.launchOf(agent, h.rootOf(session.CWD), client)
	if launch != nil {
		launch.Sandbox = box
		h.keys.Remember(session.ID, clientenv.Secrets(launch.Environment))
	}
	var known *catalog.GetExecutionContextResult
	if launch != nil { // third-party executors ask for it
		stands, err := h.calls.contextOf(live.ctx, turn.ID, true)
		if err != nil {
			return result, err
		}
		known = &stands
	}
	live.files.agentBegins()
	stream := !turn.Quiet
	result, err = lease.ExecutePrompt(live.ctx, catalog.ExecutePromptParams{
		SessionToken: live.token, SessionID: session.UUID, TaskID: turn.UUID, Prompt: turn.Prompt, CWD: session.CWD,
		Tools: turn.Tools, PermissionMode: turn.Mode, Agent: agent.Name, AgenticTool: agent.Name,
		Launch: launch, Context: known, TimeoutMS: h.limitOf(turn).Milliseconds(), Stream: &stream,
		Content: blocks, Meta: metaFor(turn), Unprompted: turn.Source == domain.SourceAgent,
	})
	if reported := live.reports.Completion(); err != nil && reported != nil {
		return *reported, nil
	}
	return result, err
}

// metaFor returns the _meta that an ACP editor gave with the prompt of a turn, for the agent.
func metaFor(turn domain.Turn) json.RawMessage {
	var of struct {
		Source string
		Meta   json.RawMessage `json:"_meta"`
	}
	if len(turn.Metadata) == 0 || json.Unmarshal(turn.Metadata, &of) != nil || of.Source != "acp" ||
		len(of.Meta) > catalog.MaxMeta || !bytes.HasPrefix(of.Meta, []byte("{")) {
		return nil
	}
	return of.Meta
}

// reportSignIn reports what a result or failure says about the agent's sign-in.
func (h *Hub) reportSignIn(agent config.Agent, result catalog.ExecutePromptResult, err error) {
	wanted := result.Error != nil && result.Error.Code == codeAuthRequired
	if err != nil || agent.Driver != config.DriverACP || result.Status != catalog.StatusCompleted && !wanted {
		return
	}
	h.opts.Project.SignInSeen(agent, !wanted)
}

// finish moves a turn to the end state that its executor reported.
func (h *Hub) finish(t store.Tx, id int64, result catalog.ExecutePromptResult, failure error) error {
	turn, err := t.Turn(h.ctx, id)
	if err != nil {
		return err
	}
	if turn.State.Ended() {
		return nil
	}
	if h.cutShort.Ends(turn) { // the hub ended its agent
		return h.cutShort.Fail(t, turn)
	}
	if result.TokenUsage != nil {
		u := result.TokenUsage.Bounded()
		turn.Tokens.Input, turn.Tokens.Output = u.InputTokens, u.OutputTokens
		turn.Tokens.CacheRead, turn.Tokens.CacheWrite = u.CacheReadTokens, u.CacheWriteTokens
	}
	why := outcome{stop: result.StopReason}
	if e := result.Error; e != nil {
		why.code, why.message, why.signIn = e.Code, e.Message, e.AuthMethods
	}
	if failure != nil && turn.State != domain.Starting || why.code == codeAgentExited {
		// The agent did not withdraw its question: the question stays, and its answer resumes the
		// turn.
		if err := h.approvals.KeepQuestions(t, turn); err != nil {
			return err
		}
	}
	switch {
	case turn.State == domain.Interrupting && turn.ErrorCode == codeTimeout:
		return h.transition(t, &turn, domain.TimedOut, outcome{stop: result.StopReason, reason: "timeout"})
	case turn.State == domain.Interrupting:
		return h.transition(t, &turn, domain.Interrupted, outcome{stop: result.StopReason})
	case failure != nil:
		return h.finishWithout(t, turn, failure)
	case result.Status == catalog.StatusCompleted:
		return h.transition(t, &turn, domain.Completed, why)
	case result.Status == catalog.StatusCancelled:
		return h.transition(t, &turn, domain.Interrupted, why)
	}
	if why.code == "" {
		why.code, why.message = "EXECUTOR_ERROR", "the executor reported a failure without saying which"
	}
	return h.transition(t, &turn, domain.Failed, why)
}

// finishWithout ends a turn whose executor could not be started or was lost.
func (h *Hub) finishWithout(t store.Tx, turn domain.Turn, failure error) error {
	failure = stored(failure)
	var known *domain.Error
	switch {
	case turn.State != domain.Starting:
		return h.transition(t, &turn, domain.Interrupted, outcome{
			code: codeExecutorGone, message: "the executor ended while this ran; continue it to go on where it was",
			reason: "executor_gone",
		})
	case errors.As(failure, &known):
		return h.transition(t, &turn, domain.Failed, outcome{code: codeStart, message: known.Message})
	case errors.Is(failure, context.Canceled):
		return h.transition(t, &turn, domain.Interrupted, outcome{reason: "user_cancelled"})
	}
	h.log.Error("an executor could not be started", "err", failure)
	return h.transition(t, &turn, domain.Failed,
		outcome{code: codeStart, message: "the agent could not be started: " + failure.Error()})
}

// leaseFor returns the executor request for an agent of a session.
func leaseFor(session string, agent config.Agent) catalog.LeaseRequest {
	return catalog.LeaseRequest{Session: session, Agent: agent.Name, Driver: agent.Driver, Command: agent.Command}
}

// launchOf returns how a Duet executor starts an agent for a client. A third-party executor starts
// its agent itself.
func (h *Hub) launchOf(a config.Agent, root string, client clientenv.Environment) *catalog.AgentLaunch {
	if a.Driver == config.DriverExecutor {
		return nil
	}
	return &catalog.AgentLaunch{
		Name: a.Name, Driver: a.Driver, Command: a.StartCommand(), Install: a.HowToInstall(), Prompt: a.Prompt,
		History: a.History, Files: a.Files, StartTimeoutMS: a.StartTimeout.Milliseconds(),
		SilentAfterMS: a.SilentAfter.Milliseconds(), SilentToolAfterMS: a.SilentToolAfter.Milliseconds(),
		QuietMS: a.Quiet.Milliseconds(), Protocol: a.Protocol, Env: a.Env, EnvFrom: a.EnvFrom, Keys: a.Keys, Root: root,
		StateDir: filepath.Dir(h.opts.Database), Environment: a.VariablesOf(client, h.opts.Getenv),
		Program: programFor(a, client),
	}
}

// programFor finds the program of an agent on the PATH of a client. It returns "" if the
// program of the agent's command is the one to start.
func programFor(a config.Agent, client clientenv.Environment) string {
	if client == nil {
		return ""
	}
	return a.ProgramOn(client["PATH"])
}

// turnEnvironments holds the client environments of the turns that have not ended. They are kept in
// memory only. Its methods may be called from any goroutine.
type turnEnvironments struct {
	mu     sync.Mutex
	byTurn map[int64]clientenv.Environment
	ended  map[int64]struct{} // kept for the turn that follows failed gates
}

func newTurnEnvironments() *turnEnvironments {
	return &turnEnvironments{byTurn: make(map[int64]clientenv.Environment), ended: make(map[int64]struct{})}
}

// keep gives a turn a client's environment when t commits. nil means none.
func (r *turnEnvironments) keep(t store.Tx, turn int64, e clientenv.Environment) {
	if e == nil {
		return
	}
	t.AfterCommit(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.byTurn[turn] = e
	})
}

// of returns the environment of the client that launched a turn, or nil.
func (r *turnEnvironments) of(turn int64) clientenv.Environment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byTurn[turn]
}

// end drops the environment of a turn that has ended. If its gates are checked, tidy does so
// later.
func (r *turnEnvironments) end(turn int64, checked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.byTurn[turn]; has && checked {
		r.ended[turn] = struct{}{}
		return
	}
	delete(r.byTurn, turn)
}

// tidy drops the environments of ended turns whose gates need no more checks.
func (r *turnEnvironments) tidy(checked func(turn int64) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for turn := range r.ended {
		if !checked(turn) {
			delete(r.ended, turn)
			delete(r.byTurn, turn)
		}
	}
}
