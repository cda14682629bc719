package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A goal is work that the agent of /goal (codex) does in turn after turn, until its model finds that
// it is reached. The agent reports neither the goal nor its end. So it counts as background work
// from the end of the turn that has set it until no turn has followed for a while.
type goal struct {
	text  string        // the command that has set it; "": none
	since time.Time     // the end of the agent's latest turn
	quiet time.Duration // without a turn for so long, the goal has ended
}

const (
	goalCommand = "goal" // the agent's slash command
	goalID      = "goal" // of the background task
	// methodGoal is a protocol extension of codex-acp.
	methodGoal = "_session/goal"
)

type goalRequest struct {
	SessionID string `json:"sessionId"`
	Action    string `json:"action"`
}

// noteGoal records what a turn that has ended says about the agent's goal.
func (a *agent) noteGoal(t *turn) {
	prompt, isCommand := strings.CutPrefix(strings.TrimSpace(t.Params.Prompt), "/"+goalCommand)
	argument := strings.TrimSpace(prompt)
	isCommand = isCommand && (argument == "" || prompt != argument) && !t.Params.Unprompted && a.settings.offers(goalCommand)
	g := &a.background.goal
	a.background.mu.Lock()
	defer a.background.mu.Unlock()
	switch {
	case t.Stopped(), isCommand && (argument == "clear" || argument == "pause"): // an interrupted turn pauses the goal
		*g = goal{}
	case isCommand && argument != "":
		g.text = bounded("/" + goalCommand + " " + argument)
	}
	g.since, g.quiet = time.Now(), cmp.Or(time.Duration(t.Launch.QuietMS)*time.Millisecond, quietAfter)
}

// tasks returns the goal as background work. The caller holds backgroundWork.mu.
func (g goal) tasks() []domain.BackgroundTask {
	if g.text == "" || time.Since(g.since) >= g.quiet {
		return nil
	}
	return []domain.BackgroundTask{{ID: goalID, Kind: domain.BackgroundGoal, Title: g.text, Stoppable: true}}
}

// pauseGoal asks the agent to stop working towards its goal.
func (a *agent) pauseGoal(ctx context.Context) error {
	_, err := acp.Call[json.RawMessage](ctx, a.conn, methodGoal, goalRequest{a.session, "pause"})
	if err == nil {
		a.background.mu.Lock()
		a.background.goal = goal{}
		a.background.mu.Unlock()
		a.reportBackgroundNow(a.backgroundTasks, false)
	}
	return err
}

// offers reports whether the agent has a slash command.
func (s *settingState) offers(command string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.now.Commands {
		if known.Name == command {
			return true
		}
	}
	return false
}
