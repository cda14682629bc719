package demoagent

import (
	"context"
	"fmt"
	"strings"
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
