package demoagent

import (
	"context"
	"fmt"
	"time"

	"github.com/coder/acp-go-sdk"
)

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
