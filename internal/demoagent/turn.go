package demoagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/coder/acp-go-sdk"
)

// slowPause is what the word "slow" puts between steps.
const slowPause = 300 * time.Millisecond

// promptMarker is the line that ends a transcript which a client has put
// before the prompt.
const promptMarker = "The user's next message follows."

// requestMarker is the line below which duet-rpc repeats what was asked of a
// turn whose question was answered after its process had ended.
const requestMarker = "The request was:"

// contextSize is the context window that the usage tells, in tokens.
const contextSize = 200_000

var (
	errCancelled = errors.New("the turn was cancelled")
	errRefused   = errors.New("the turn was refused")
)

// turn is one prompt being answered. It belongs to one goroutine.
type turn struct {
	*agent
	session   *session
	id        acp.SessionId
	cwd       string
	number    int // in its session, from 1
	script    script
	rec       *turnRecord // guarded by the session's lock
	continued bool
	calls     int // tool calls so far
	said      int // bytes
}

// Prompt runs one turn. A second prompt of a session waits for the first one
// to end.
func (a *agent) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	var resp acp.PromptResponse
	s, err := a.open(p.SessionId)
	if err != nil {
		return resp, err
	}
	ctx, cancel := context.WithCancel(ctx)
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
	select {
	case a.registered <- struct{}{}:
	default:
	}
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	case <-ctx.Done():
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}
	text := promptText(p.Prompt)
	if err := t.begin(text); err != nil {
		return resp, err
	}
	return t.finish(ctx, len(text), t.run(ctx))
}

// promptText is the part of the prompt that counts.
func promptText(blocks []acp.ContentBlock) string {
	var lines []string
	for _, b := range blocks {
		if b.Text != nil {
			lines = append(lines, strings.Split(b.Text.Text, "\n")...)
		}
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimRight(lines[i], " \t\r") == promptMarker {
			lines = lines[i+1:]
			break
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
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

// requestOf is what a prompt that resumes a turn repeats of its prompt.
func requestOf(text string) (request string, ok bool) {
	const marker = "\n" + requestMarker + "\n"
	i := strings.LastIndex(text, marker)
	if i < 0 || !meansContinue(text) {
		return "", false
	}
	return strings.TrimSpace(text[i+len(marker):]), true
}

// meansContinue says whether text starts with the word "continue".
func meansContinue(text string) bool {
	const word = "continue"
	if len(text) < len(word) || !strings.EqualFold(text[:len(word)], word) {
		return false
	}
	rest := []rune(cut(text[len(word):], 4))
	return len(rest) == 0 || !unicode.IsLetter(rest[0])
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
	if !t.script.edits() {
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

// quote is the first 80 characters of text, on one line.
func quote(text string) string {
	runes := []rune(strings.Join(strings.Fields(cut(text, keptPrompt)), " "))
	return string(runes[:min(80, len(runes))])
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
