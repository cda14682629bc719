package demoagent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coder/acp-go-sdk"
)

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
