package demoagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"
)

// slowPause is what the word "slow" puts between steps.
const slowPause = 300 * time.Millisecond

// contextSize is the context window that the usage tells, in tokens.
const contextSize = 200_000

// turn is one prompt being answered. It belongs to one goroutine.
type turn struct {
	*agent
	session   *session
	id        acp.SessionId
	cwd       string
	number    int // in its session, from 1
	script    script
	blocks    []acp.ContentBlock // of the prompt
	planned   bool               // the plan and the edit belong to it
	rec       *turnRecord        // guarded by the session's lock
	continued bool
	calls     int                        // tool calls so far
	said      int                        // bytes
	task      *acp.SessionUpdateToolCall // the background task that it has started, while that runs
}

func (t *turn) mode() (mode string) {
	t.session.look(func(r *record) { mode = r.Mode })
	return mode
}

func (t *turn) update(ctx context.Context, u acp.SessionUpdate) error {
	return t.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: t.id, Update: u})
}

// say streams text word by word.
func (t *turn) say(ctx context.Context, text string) error {
	for word := range strings.SplitAfterSeq(text, " ") {
		if word == "" {
			continue
		}
		if err := t.update(ctx, acp.UpdateAgentMessageText(word)); err != nil {
			return err
		}
		t.wrote(word, false)
		if err := pause(ctx, t.opts.Delay); err != nil {
			return err
		}
	}
	return nil
}

// wrote remembers what was said.
func (t *turn) wrote(text string, thought bool) {
	t.said += len(text)
	t.session.look(func(*record) { t.rec.addText(text, thought) })
}

func (t *turn) greet(ctx context.Context) error {
	if err := t.plan(ctx, 0); err != nil {
		return err
	}
	if err := t.say(ctx, fmt.Sprintf("Hello from the demo agent. You asked: %s ", quote(t.rec.Asked))); err != nil {
		return err
	}
	return t.plan(ctx, 1)
}

var planEntries = []string{"Read the request", "Edit " + demoFile, "Sum up"}

// plan tells the plan with the first done entries completed and the next one
// in progress, if the turn has a plan.
func (t *turn) plan(ctx context.Context, done int) error {
	if !t.planned {
		return nil
	}
	if done == 0 {
		if err := t.sendPlan(ctx, 0, false); err != nil {
			return err
		}
	}
	return t.sendPlan(ctx, done, t.mode() != modePlan || done == 0)
}

func (t *turn) sendPlan(ctx context.Context, done int, working bool) error {
	entries := make([]acp.PlanEntry, len(planEntries))
	for i, content := range planEntries {
		entries[i] = acp.PlanEntry{Content: content, Priority: acp.PlanEntryPriorityMedium, Status: acp.PlanEntryStatusPending}
		switch {
		case i < done:
			entries[i].Status = acp.PlanEntryStatusCompleted
		case i == done && working:
			entries[i].Status = acp.PlanEntryStatusInProgress
		}
	}
	return t.update(ctx, acp.UpdatePlan(entries...))
}

func (t *turn) pauseIfSlow(ctx context.Context) error {
	if err := t.heed(ctx); err != nil {
		return err
	}
	if t.script.has("slow") {
		return pause(ctx, slowPause)
	}
	return ctx.Err()
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var (
	errCancelled = errors.New("the turn was cancelled")
	errRefused   = errors.New("the turn was refused")
)

// Prompt runs one turn. A second prompt of a session waits for the first one
// to end. The SDK's context is not used: the SDK ends it when a second prompt
// comes.
func (a *agent) Prompt(_ context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	var resp acp.PromptResponse
	registered := sync.OnceFunc(func() {
		select {
		case a.registered <- struct{}{}:
		default:
		}
	})
	defer registered() // also a prompt that is refused
	s, err := a.open(p.SessionId)
	if err != nil {
		return resp, err
	}
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	t := &turn{agent: a, session: s, id: p.SessionId}
	s.mu.Lock()
	s.cancels[t] = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.cancels, t)
		s.mu.Unlock()
	}()
	if !a.beginTurn() {
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}
	defer a.turns.Done()
	registered()
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // also where the turn before has ended for the same reason
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}
	text := promptText(p.Prompt)
	t.blocks = p.Prompt
	if err := t.begin(text); err != nil {
		return resp, err
	}
	a.v2.begin(p.SessionId, t.number, &p)
	t.takesMessages(true)
	ran := t.run(ctx)
	t.takesMessages(false)
	if ran == nil {
		ran = t.heed(ctx)
	}
	resp, err = t.finish(ctx, len(text), ran)
	if err == nil && resp.StopReason == acp.StopReasonEndTurn {
		t.goOnLater()
	} else {
		t.endTask(ctx, acp.ToolCallStatusFailed, "The background task was cancelled.")
	}
	a.v2.end(p.SessionId, resp, err)
	return resp, err
}

// begin writes the turn down, before anything of it is seen.
func (t *turn) begin(text string) error {
	var err error
	t.session.change(func(r *record) {
		rec := &turnRecord{Prompt: cut(text, keptPrompt), Asked: cut(text, keptPrompt)}
		request, repeated := requestOf(text)
		if last := r.toContinue(text, request, repeated); last != nil {
			rec.Asked, rec.Script, rec.Step, rec.Index, rec.Input = last.Asked, last.Script, last.Step, last.Index, last.Input
			text, t.continued = last.Script, true
		} else if repeated {
			text, rec.Asked = request, cut(request, keptPrompt)
		}
		if t.script, err = parseScript(text); err != nil {
			err = refusal(-32602, err.Error())
			return
		}
		t.planned = t.script.edits()
		rec.Script = t.script.String()
		r.Count++
		t.number, t.rec, t.cwd = r.Count, rec, r.Cwd
		r.Turns = append(r.Turns, rec)
		if extra := len(r.Turns) - keptTurns; extra > 0 {
			r.Turns = r.Turns[extra:]
		}
	})
	return err
}

func (t *turn) run(ctx context.Context) error {
	from := ""
	if t.continued {
		t.session.look(func(*record) { from = t.rec.Step })
		if err := t.say(ctx, fmt.Sprintf("Continuing what was cut short: %s ", quote(t.rec.Asked))); err != nil {
			return err
		}
		if err := t.plan(ctx, 1); err != nil {
			return err
		}
	}
	for _, s := range t.script.steps(t.continued, from) {
		if s.name != from {
			t.session.change(func(*record) { t.rec.Step, t.rec.Index = s.name, 0 })
		}
		if err := t.pauseIfSlow(ctx); err != nil {
			return err
		}
		if err := s.run(ctx, t); err != nil {
			return err
		}
	}
	t.session.change(func(*record) { t.rec.Step, t.rec.Index, t.rec.Input = closing, 0, nil })
	if err := t.pauseIfSlow(ctx); err != nil {
		return err
	}
	if err := t.say(ctx, "That is all. "); err != nil {
		return err
	}
	if t.mode() == modePlan {
		return nil // what was planned stays to be done
	}
	return t.plan(ctx, len(planEntries))
}

// finish tells how the turn ended, in the record and to the client.
func (t *turn) finish(ctx context.Context, prompted int, err error) (acp.PromptResponse, error) {
	if t.ctx.Err() != nil {
		return acp.PromptResponse{}, errClosed // the record stays open: the turn was cut short
	}
	var resp acp.PromptResponse
	switch {
	case err == nil:
		resp.StopReason = acp.StopReasonEndTurn
	case ctx.Err() != nil, errors.Is(err, errCancelled):
		resp.StopReason, err = acp.StopReasonCancelled, nil
	case errors.Is(err, errRefused):
		resp.StopReason, err = acp.StopReasonRefusal, nil
	}
	usage := &acp.Usage{InputTokens: prompted/4 + 1, OutputTokens: t.said/4 + 1}
	usage.TotalTokens = usage.InputTokens + usage.OutputTokens
	used := 0
	t.session.change(func(r *record) {
		t.rec.Outcome = string(resp.StopReason)
		if err != nil {
			t.rec.Outcome = "failed"
		}
		r.Used += usage.TotalTokens
		used = r.Used
	})
	if err != nil {
		return resp, err
	}
	resp.Usage = usage
	if resp.StopReason == acp.StopReasonEndTurn {
		err = t.update(ctx, acp.SessionUpdate{UsageUpdate: &acp.SessionUsageUpdate{Used: min(used, contextSize), Size: contextSize}})
		if ctx.Err() != nil {
			err = nil // a cancel that came too late
		}
	}
	return resp, err
}

// beginTurn counts a turn, unless the agent is ending.
func (a *agent) beginTurn() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.leaving {
		a.turns.Add(1)
	}
	return !a.leaving
}

// endTurns has no turn begin any more, and waits for the end of those that
// have.
func (a *agent) endTurns() {
	a.mu.Lock()
	a.leaving = true
	a.mu.Unlock()
	a.turns.Wait()
}

const (
	// backgroundTime is how long the task of "background" takes, slowBackgroundTime that of
	// "slow background".
	backgroundTime     = 300 * time.Millisecond
	slowBackgroundTime = 5 * time.Second
	// goalTurns is how many turns "goal" begins.
	goalTurns = 20
)

// background starts a task that ends after the turn. Its tool call stays open until then.
func (t *turn) background(ctx context.Context, _ argument) error {
	command := fmt.Sprintf("sleep %v", t.backgroundTime().Seconds())
	call := t.newCall("Bash", command, acp.ToolKindExecute, map[string]any{"command": command, "run_in_background": true})
	call.Status = acp.ToolCallStatusInProgress
	if err := t.update(ctx, acp.SessionUpdate{ToolCall: &call}); err != nil {
		return err
	}
	t.task = &call
	t.v2.detach(t.id, call.ToolCallId)
	return t.say(ctx, "It runs in the background, and my turn ends. ")
}

// endTask ends the tool call of the background task, if there is one.
func (t *turn) endTask(ctx context.Context, status acp.ToolCallStatus, output string) {
	if t.task == nil || t.ctx.Err() != nil || t.session.isClosed() {
		return
	}
	t.task.RawOutput = output
	_ = t.end(ctx, *t.task, status)
	t.task = nil
	t.v2.detachedEnded(t.id)
}

func (t *turn) backgroundTime() time.Duration {
	if t.script.has("slow") {
		return slowBackgroundTime
	}
	return backgroundTime
}

// goOnLater has the agent go on by itself when the prompt of the turn is answered, if the
// prompt has asked for that.
func (t *turn) goOnLater() {
	work := t.ownWork()
	if work == nil || !t.beginTurn() {
		return
	}
	answered := t.lines.promptAnswered()
	go func() {
		defer t.turns.Done()
		ctx, cancel := context.WithCancel(t.ctx)
		defer cancel()
		t.session.mu.Lock()
		t.session.cancels[t] = cancel
		t.session.mu.Unlock()
		defer func() {
			t.session.mu.Lock()
			delete(t.session.cancels, t)
			t.session.mu.Unlock()
		}()
		select {
		case <-answered:
		case <-ctx.Done():
			return
		}
		work(ctx)
	}()
}

// ownWork is what the agent does by itself after the turn, or nil.
func (t *turn) ownWork() func(context.Context) {
	switch {
	case t.script.has("background"):
		return func(ctx context.Context) {
			if pause(ctx, t.backgroundTime()) != nil {
				t.endTask(ctx, acp.ToolCallStatusFailed, "The background task was cancelled.")
				return
			}
			t.endTask(ctx, acp.ToolCallStatusCompleted, "The background task is over.")
			t.ownTurn(ctx, "edit", "The background task has finished. ")
		}
	case t.script.has("late"):
		return func(ctx context.Context) { t.ownTurn(ctx, fmt.Sprintf("quiet stream:%d", t.script["late"].n), "") }
	case t.script.has("goal"):
		return func(ctx context.Context) {
			for n := 1; n <= goalTurns && pause(ctx, slowPause) == nil; n++ {
				t.ownTurn(ctx, "quiet slow", fmt.Sprintf("Turn %d towards the goal. ", n))
			}
		}
	}
	return nil
}

// ownTurn is a turn without a prompt, and what these words ask for. The end of it is told.
func (t *turn) ownTurn(ctx context.Context, words, opening string) {
	select {
	case t.session.running <- struct{}{}:
		defer func() { <-t.session.running }()
	case <-ctx.Done():
		return
	}
	own := &turn{agent: t.agent, session: t.session, id: t.id, cwd: t.cwd, continued: true}
	own.script, _ = parseScript(words) // they are ours
	own.planned = own.script.edits()
	t.session.change(func(r *record) {
		r.Count++
		own.number = r.Count
		own.rec = &turnRecord{Asked: t.rec.Asked, Script: own.script.String()}
		r.Turns = append(r.Turns, own.rec)
	})
	t.v2.begin(t.id, own.number, nil)
	err := own.say(ctx, opening)
	for _, s := range own.script.steps(true, "") {
		if err == nil {
			t.session.change(func(*record) { own.rec.Step = s.name })
			err = s.run(ctx, own)
		}
	}
	if err == nil {
		err = own.pauseIfSlow(ctx)
	}
	if err == nil && own.mode() != modePlan {
		err = own.plan(ctx, len(planEntries))
	}
	if t.ctx.Err() != nil {
		return // the record stays open: the turn was cut short
	}
	outcome := acp.StopReasonEndTurn
	if err != nil {
		outcome = acp.StopReasonCancelled
	}
	t.session.change(func(*record) { own.rec.Outcome = string(outcome) })
	if t.v2.end(t.id, acp.PromptResponse{StopReason: outcome}, nil) {
		return
	}
	_ = own.raw(t.ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"_session/turn_ended","params":{"sessionId":%q,"stopReason":%q}}`+"\n", t.id, outcome))
}

// methodSteering is the extension by which a client gives the agent a message while it works.
const methodSteering = "_session/steering"

// HandleExtensionMethod takes a message while a turn runs; the turn repeats it at its next
// step.
func (a *agent) HandleExtensionMethod(_ context.Context, method string, params json.RawMessage) (any, error) {
	if method != methodSteering {
		return nil, acp.NewMethodNotFound(method)
	}
	var p struct {
		SessionID acp.SessionId      `json:"sessionId"`
		Prompt    []acp.ContentBlock `json:"prompt"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, acp.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	s, err := a.open(p.SessionID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.heeds {
		return map[string]any{"outcome": "promptRequired", "reason": "noRunningTurn"}, nil
	}
	s.meanwhile = append(s.meanwhile, promptText(p.Prompt))
	return map[string]any{"outcome": "injected"}, nil
}

// heed repeats what the human has said meanwhile.
func (t *turn) heed(ctx context.Context) error {
	t.session.mu.Lock()
	said := t.session.meanwhile
	t.session.meanwhile = nil
	t.session.mu.Unlock()
	for _, text := range said {
		if err := t.say(ctx, fmt.Sprintf("You said meanwhile: %s ", quote(text))); err != nil {
			return err
		}
	}
	return nil
}

// takesMessages notes whether the turn takes messages from now on.
func (t *turn) takesMessages(takes bool) {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.session.heeds = takes
}
