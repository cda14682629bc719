package demoagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/sourcegraph/jsonrpc2"
)

// slowPause is the pause between steps with the word "slow".
const slowPause = 300 * time.Millisecond

// contextSize is the size of the context window in the usage, in tokens.
const contextSize = 200_000

// turn is one prompt and its answer. It must not be used concurrently.
type turn struct {
	*agent
	session   *session
	id        string
	cwd       string
	number    int // in its session, from 1
	script    script
	part      int           // number of tool calls shown
	blocks    []acp.Content // of the prompt
	planned   bool          // the turn has the plan and the edit
	rec       *turnRecord   // guarded by the session's lock
	continued bool
	calls     int           // tool calls so far
	said      int           // bytes
	task      *acp.ToolCall // the running background task that it has started, or nil
}

func (t *turn) mode() string { return t.session.mode() }

// update sends an update to the client. To a client with states each message has an id.
func (t *turn) update(ctx context.Context, u any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch update := u.(type) {
	case acp.MessageChunk:
		if t.served().HasStates() {
			update.MessageID = t.messageID(update)
			u = update
		}
	case acp.ToolCall:
		if update.Kind == acp.KindToolCall {
			t.part++
		}
	}
	t.send(t.id, u)
	return nil
}

// messageID returns the id of a chunk's message. A tool call ends a message.
func (t *turn) messageID(c acp.MessageChunk) string {
	if c.Kind == acp.KindUserMessageChunk {
		return fmt.Sprintf("prompt-%d", t.number)
	}
	kind := strings.TrimSuffix(strings.TrimPrefix(c.Kind, "agent_"), "_chunk")
	id := fmt.Sprintf("%s-%d-%d", kind, t.number, t.part)
	if claude, ok := c.Meta["claudeCode"].(map[string]any); ok && claude["parentToolUseId"] != nil {
		id += fmt.Sprint("-", claude["parentToolUseId"])
	}
	return id
}

// textChunk returns text as a piece of a message or of a thought.
func textChunk(kind, text string) acp.MessageChunk {
	return acp.MessageChunk{Kind: kind, Content: acp.TextContent(text)}
}

// say streams text word by word.
func (t *turn) say(ctx context.Context, text string) error {
	for word := range strings.SplitAfterSeq(text, " ") {
		if word == "" {
			continue
		}
		if err := t.update(ctx, textChunk(acp.KindAgentMessageChunk, word)); err != nil {
			return err
		}
		t.wrote(word, false)
		if err := pause(ctx, t.opts.Delay); err != nil {
			return err
		}
	}
	return nil
}

// wrote records sent text.
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

// plan sends the plan with the first done entries completed and the next one in progress, if the
// turn has a plan.
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
		entries[i] = acp.PlanEntry{Content: content, Priority: "medium", Status: acp.ToolPending}
		switch {
		case i < done:
			entries[i].Status = acp.ToolCompleted
		case i == done && working:
			entries[i].Status = acp.ToolInProgress
		}
	}
	return t.update(ctx, acp.PlanUpdate{Kind: acp.KindPlan, Entries: entries})
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

// prompt runs one turn. A second prompt of a session waits for the end of the first. For a
// client with states the response means that the turn begins, for any other it is the end. prompt calls
// registered when the turn can be cancelled.
func (a *agent) prompt(p acp.PromptRequest, registered func()) (any, error) {
	s, err := a.open(p.SessionID)
	if err != nil {
		return nil, err
	}
	t := &turn{agent: a, session: s, id: p.SessionID}
	if t.blocks, err = blocksOf(p.Prompt); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(a.ctx)
	forget := s.cancelledBy(cancel)
	if !a.beginTurn() {
		forget()
		return t.notBegun()
	}
	registered()
	hasBegun := false
	leave := func() {
		forget()
		if hasBegun {
			<-s.running
		}
		a.turns.Done()
	}
	select {
	case s.running <- struct{}{}:
		hasBegun = true
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // also if the previous turn has ended for the same reason
		leave()
		return t.notBegun()
	}
	if err := t.begin(promptText(t.blocks)); err != nil {
		leave()
		return nil, err
	}
	if !a.served().HasStates() {
		defer leave()
		return t.runToEnd(ctx)
	}
	id := t.messageID(acp.MessageChunk{Kind: acp.KindUserMessageChunk})
	content := make([]any, len(p.Prompt))
	for i, block := range p.Prompt {
		content[i] = block
	}
	a.send(p.SessionID, acp.UserMessage(id, content...))
	return acp.Reply{Result: acp.PromptResponse{MessageID: id}, Then: func() {
		defer leave()
		t.running()
		t.idle(t.runToEnd(ctx))
	}}, nil
}

// notBegun answers a prompt that was cancelled while it waited.
func (t *turn) notBegun() (any, error) {
	if t.served().HasStates() {
		return nil, refusal(codeCancelled, "the prompt was cancelled before its turn began")
	}
	return acp.PromptResponse{StopReason: acp.StopCancelled}, nil
}

// runToEnd runs the turn to its end.
func (t *turn) runToEnd(ctx context.Context) (acp.PromptResponse, error) {
	t.takesMessages(true)
	ran := t.run(ctx)
	t.takesMessages(false)
	if ran == nil {
		ran = t.heed(ctx)
	}
	resp, err := t.finish(ctx, len(promptText(t.blocks)), ran)
	if err == nil && resp.StopReason == acp.StopEndTurn {
		t.goOnLater()
	} else {
		t.endTask(ctx, acp.ToolFailed, "The background task was cancelled.")
	}
	return resp, err
}

// running reports that the turn works, and idle how it has ended.
func (t *turn) running() {
	t.sendState(t.id, t.session, func(u *acp.StateUpdate) { u.State = acp.StateRunning })
}

func (t *turn) idle(resp acp.PromptResponse, err error) {
	t.sendState(t.id, t.session, func(u *acp.StateUpdate) {
		u.State, u.StopReason, u.Usage = acp.StateIdle, resp.StopReason, resp.Usage
		if err != nil {
			u.StopReason, u.Error = acp.StopError, wireError(err)
		}
	})
}

// asks reports that the turn waits for the user. goesOn reports that it works again, unless it is
// ending.
func (t *turn) asks(ctx context.Context) (goesOn func()) {
	t.sendState(t.id, t.session, func(u *acp.StateUpdate) { u.State = acp.StateRequiresAction })
	return func() {
		if ctx.Err() == nil {
			t.running()
		}
	}
}

func wireError(err error) error {
	if wire, ok := errors.AsType[*acp.Error](err); ok {
		return wire
	}
	return acp.InternalError(err.Error())
}

// begin records the turn before it sends any update.
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
			err = refusal(jsonrpc2.CodeInvalidParams, err.Error())
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
		return nil // the plan stays unfinished
	}
	return t.plan(ctx, len(planEntries))
}

// finish records and reports how the turn ended.
func (t *turn) finish(ctx context.Context, prompted int, err error) (acp.PromptResponse, error) {
	if t.ctx.Err() != nil {
		return acp.PromptResponse{}, errClosed // the record stays open: the turn was interrupted
	}
	var resp acp.PromptResponse
	switch {
	case err == nil:
		resp.StopReason = acp.StopEndTurn
	case ctx.Err() != nil, errors.Is(err, errCancelled):
		resp.StopReason, err = acp.StopCancelled, nil
	case errors.Is(err, errRefused):
		resp.StopReason, err = acp.StopRefusal, nil
	}
	usage := &acp.Usage{Input: int64(prompted/4 + 1), Output: int64(t.said/4 + 1)}
	usage.Total = usage.Input + usage.Output
	used := 0
	t.session.change(func(r *record) {
		t.rec.Outcome = resp.StopReason
		if err != nil {
			t.rec.Outcome = "failed"
		}
		r.Used += int(usage.Total)
		used = r.Used
	})
	if err != nil {
		return resp, err
	}
	resp.Usage = usage
	if resp.StopReason == acp.StopEndTurn {
		err = t.update(ctx, acp.UsageUpdate{Kind: acp.KindUsage, Used: int64(min(used, contextSize)), Size: contextSize})
		if ctx.Err() != nil {
			err = nil // the cancel came too late
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

// endTurns refuses new turns, and waits for the end of the others.
func (a *agent) endTurns() {
	a.mu.Lock()
	a.leaving = true
	a.mu.Unlock()
	a.turns.Wait()
}

const (
	// backgroundTime is the duration of the task of "background", slowBackgroundTime that of
	// "slow background".
	backgroundTime     = 300 * time.Millisecond
	slowBackgroundTime = time.Minute
	// goalTurns is the number of turns of "goal".
	goalTurns = 20
)

// background starts a task that ends after the turn. Its tool call stays open until then.
func (t *turn) background(ctx context.Context, _ argument) error {
	command := fmt.Sprintf("sleep %v", t.backgroundTime().Seconds())
	call := t.newCall("Bash", command, kindExecute, map[string]any{"command": command, "run_in_background": true})
	call.Status = acp.ToolInProgress
	if err := t.update(ctx, call); err != nil {
		return err
	}
	t.task = &call
	t.session.detach(call.ToolCallID)
	return t.say(ctx, "It runs in the background, and my turn ends. ")
}

// endTask ends the tool call of the background task, if there is one.
func (t *turn) endTask(ctx context.Context, status string, output string) {
	if t.task == nil || t.ctx.Err() != nil || t.session.isClosed() {
		return
	}
	t.task.RawOutput = encode(output)
	_ = t.end(ctx, *t.task, status)
	t.task = nil
	t.sendState(t.id, t.session, func(u *acp.StateUpdate) { u.Background = []any{} })
}

func (t *turn) backgroundTime() time.Duration {
	if t.script.has("slow") {
		return slowBackgroundTime
	}
	return backgroundTime
}

// goOnLater starts an agent-initiated turn after the response to the prompt, if the prompt asked
// for one.
func (t *turn) goOnLater() {
	work := t.ownWork()
	if work == nil || !t.beginTurn() {
		return
	}
	answered := t.lines.promptAnswered()
	ctx, cancel := context.WithCancel(t.ctx)
	forget := t.session.cancelledBy(cancel) // now, because a cancel may follow the response at once
	go func() {
		defer t.turns.Done()
		defer forget()
		select {
		case <-answered:
		case <-ctx.Done():
			return
		}
		work(ctx)
	}()
}

// ownWork returns the agent-initiated work after the turn, or nil.
func (t *turn) ownWork() func(context.Context) {
	switch {
	case t.script.has("background"):
		return func(ctx context.Context) {
			if pause(ctx, t.backgroundTime()) != nil {
				t.endTask(ctx, acp.ToolFailed, "The background task was cancelled.")
				return
			}
			t.endTask(ctx, acp.ToolCompleted, "The background task is over.")
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

// ownTurn runs an agent-initiated turn with these keywords, and reports its end.
func (t *turn) ownTurn(ctx context.Context, words, opening string) {
	select {
	case t.session.running <- struct{}{}:
		defer func() { <-t.session.running }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // also if both were ready
		return
	}
	own := &turn{agent: t.agent, session: t.session, id: t.id, cwd: t.cwd, continued: true}
	own.script, _ = parseScript(words) // constant words, so parsing cannot fail
	own.planned = own.script.edits()
	t.session.change(func(r *record) {
		r.Count++
		own.number = r.Count
		own.rec = &turnRecord{Asked: t.rec.Asked, Script: own.script.String()}
		r.Turns = append(r.Turns, own.rec)
	})
	own.running()
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
		return // the record stays open: the turn was interrupted
	}
	outcome := acp.StopEndTurn
	if err != nil {
		outcome = acp.StopCancelled
	}
	t.session.change(func(*record) { own.rec.Outcome = outcome })
	if t.served().HasStates() {
		own.idle(acp.PromptResponse{StopReason: outcome}, nil)
		return
	}
	_ = t.conn.Notify("_session/turn_ended", map[string]string{"sessionId": t.id, "stopReason": outcome})
}

// steer accepts a message while a turn runs; the turn repeats it at its next step.
func (a *agent) steer(p acp.SteerRequest) (any, error) {
	blocks, err := blocksOf(p.Prompt)
	if err != nil {
		return nil, err
	}
	s, err := a.open(p.SessionID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.heeds {
		return acp.SteerResponse{Outcome: acp.SteerPromptRequired, Reason: "noRunningTurn"}, nil
	}
	s.meanwhile = append(s.meanwhile, promptText(blocks))
	return acp.SteerResponse{Outcome: acp.SteerInjected}, nil
}

// heed repeats the user's new messages.
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

// takesMessages sets whether the turn accepts messages.
func (t *turn) takesMessages(takes bool) {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.session.heeds = takes
}
