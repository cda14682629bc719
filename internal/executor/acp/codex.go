package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// codex-acp (2.6): the status in its _meta, its option for planning, and its /goal.

// codexAsks reports whether codex asks in a mode. In workspace-write it changes the project's files
// without asking. auto of 0.16 asks outside of its sandbox.
func codexAsks(now catalog.Session, id string) bool {
	switch catalog.ModeName(id) {
	case "read-only":
		return true
	case "auto":
		return has(now.Mode.Choices, "read-only") && has(now.Mode.Choices, "full-access")
	}
	return false
}

// codexStatus is the _meta of codex-acp's session_info_update.
type codexStatus struct {
	Codex struct {
		ThreadStatus struct{ Type string }
		Error        struct {
			Message           string
			AdditionalDetails string
			WillRetry         bool
		}
	}
}

// readCodexStatus reads the status in an update, or returns the zero value.
func readCodexStatus(kind string, update []byte) (s codexStatus) {
	if kind == "session_info_update" {
		if meta := rawjson.Member(update, "_meta"); meta != nil {
			json.Unmarshal(meta, &s)
		}
	}
	return s
}

// isActive reports whether the agent says that it works.
func (s codexStatus) isActive() bool { return s.Codex.ThreadStatus.Type == "active" }

// endSignal reports whether the update is a signal about the agent's work, and whether it ends it.
func (s codexStatus) endSignal() (isSignal, isEnd bool) {
	isSignal = s.Codex.ThreadStatus.Type != ""
	return isSignal, isSignal && !s.isActive()
}

// retryNote describes a failed request that the agent retries, or returns "".
func (s codexStatus) retryNote() string {
	e := s.Codex.Error
	if !e.WillRetry {
		return ""
	}
	note := e.Message
	if e.AdditionalDetails != "" {
		note += ": " + e.AdditionalDetails
	}
	return bounded(note)
}

// apiTrouble records how codex-acp 2.6 reports failed requests to its model's API. codex-acp
// puts them into the _meta of session_info_update, and answers the prompt with end_turn, as if the
// turn had succeeded.
type apiTrouble struct {
	failed bool   // the status of its session is an error
	retry  string // the last failure after which it tried again
	said   string // its text since the session failed, up to maxTroubleText bytes
}

// took merges the status of an update.
func (p *apiTrouble) took(s codexStatus) {
	switch s.Codex.ThreadStatus.Type {
	case "systemError":
		p.failed, p.said = true, ""
	case "active":
		*p = apiTrouble{}
	}
	p.retry = cmp.Or(s.retryNote(), p.retry)
}

// text adds text of the agent.
func (p *apiTrouble) text(text string) {
	if p.failed && len(p.said) < maxTroubleText {
		p.said = bounded(p.said + text)
	}
}

// codexFailure returns the failure of a turn that ended with end_turn although the agent reported a
// failure, or nil.
func (a *agent) codexFailure(t *turn) *task.Failure {
	t.mu.Lock()
	trouble := t.trouble
	t.mu.Unlock()
	if !trouble.failed {
		return nil
	}
	text := cmp.Or(strings.TrimSpace(trouble.said), trouble.retry, "a request to its model's API failed")
	return a.failureOf(&acp.Error{Code: -32603, Message: text})
}

// missingVariablePattern matches the error by which codex-acp reports that its configuration
// names an unset environment variable.
var missingVariablePattern = lazyregexp.New("Missing environment variable: `?([A-Za-z_][A-Za-z0-9_]*)")

// missingVariable returns the name of the missing environment variable in an error, or "".
func missingVariable(text string) string {
	if found := missingVariablePattern().FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// planOption returns the option that switches planning for an agent without a plan mode (codex),
// and its value for not planning. It returns nil if there is none.
func planOption(options []catalog.Option, modes *catalog.Selection) (plan *catalog.Option, other string) {
	if modes == nil {
		return nil, ""
	}
	if _, ok := named(modes.Choices, catalog.ModePlan); ok {
		return nil, ""
	}
	for i := range options {
		o := &options[i]
		if o.ID != "collaboration_mode" || !has(o.Choices, catalog.ModePlan) {
			continue
		}
		for _, c := range o.Choices {
			if c.ID != catalog.ModePlan && (other == "" || c.ID == catalog.ModeDefault) {
				other = c.ID
			}
		}
		return o, other
	}
	return nil, ""
}

// withPlan adds the mode plan to the modes of an agent that has it as an option.
func withPlan(modes *catalog.Selection, options []catalog.Option) *catalog.Selection {
	plan, _ := planOption(options, modes)
	if plan == nil {
		return modes
	}
	all := &catalog.Selection{Current: modes.Current, Choices: slices.Clone(modes.Choices)}
	for _, c := range plan.Choices {
		if c.ID == catalog.ModePlan {
			all.Choices = append(all.Choices, c)
		}
	}
	if plan.Current == catalog.ModePlan {
		all.Current = catalog.ModePlan
	}
	return all
}

// planOption returns the option that switches planning, as last reported, and its value for not
// planning. It returns nil if the agent has no such option.
func (s *settingState) planOption() (plan *catalog.Option, other string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return planOption(s.now.Options, s.now.Mode)
}

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
