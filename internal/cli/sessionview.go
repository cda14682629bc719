package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// This file prints sessions: one, a list of them, and what their agents are
// set to.

// listOfSessions prints sessions, a line each; where there are none, on a terminal what that means.
func listOfSessions(out io.Writer, sessions []wire.Session, none string) error {
	t := term.NewTable(out, "SESSION", "TASK", "STATUS", "AGENT", "ACTIVE", "TITLE")
	t.Spare("SESSION", "AGENT")
	t.Empty(none)
	told := make(map[string]bool) // conversations of which a session is listed
	for _, x := range sessions {
		title := term.Short(x.Called())
		if n := len(x.Background); n > 0 && wire.Ended(x.State) && !told[x.ThreadID] {
			title = term.Cut(title, besideBackground) + " — works in the background: " + term.Count(n, "task")
		}
		told[x.ThreadID] = true
		t.Row(x.ID, x.TaskID, sessionStatus(x), x.Agent, term.Age(x.LastActivity), title)
	}
	return t.Flush()
}

// besideBackground is how many columns a title takes beside what its agent does in the
// background.
const besideBackground = 30

// sessionStatus is a session's status, and that its agent gives no sign of life.
func sessionStatus(x wire.Session) string {
	if x.SilentSince.IsZero() {
		return x.Status + x.Gates.Short()
	}
	return x.Status + ", silent for " + term.Age(x.SilentSince.Format(time.RFC3339Nano))
}

// sessionCommands prints the slash commands of a session's agent, a line each.
func sessionCommands(out io.Writer, x wire.Session) error {
	t := term.NewTable(out, "COMMAND", "INPUT", "DESCRIPTION")
	t.Empty("its agent has told of no slash commands, or has not run yet")
	for _, c := range x.AgentSession.Commands {
		t.Row("/"+c.Name, term.Short(c.InputHint), term.Short(c.Description))
	}
	return t.Flush()
}

// printSessionList prints a session and the agent's last message, whose Markdown is rendered
// where colour is wanted and out is a terminal.
func printSessionList(out io.Writer, x wire.Session, color bool) error {
	tokens, cost, silence := "", "", ""
	if !x.SilentSince.IsZero() {
		silence = term.Silence(x.Agent, x.SilentSince, x.SilentTool, x.SilentNote)
	}
	if x.TotalTokens > 0 {
		tokens = fmt.Sprint(x.TotalTokens)
	}
	if x.CostUSD > 0 {
		cost = fmt.Sprintf("$%.4f", x.CostUSD)
	}
	fields := []term.Field{
		{"session", x.ID}, {"task", x.TaskID}, {"conversation", x.ThreadID}, {"continues", x.ParentID}, {"status", x.Status}, {"gates", x.Gates.Words()}, {"silence", silence}, {"in the background", x.BackgroundTitles()}, {"agent", agentOfSession(x)},
	}
	fields = append(fields, agentFields(x)...)
	fields = append(fields, term.Field{"title", x.Title},
		term.Field{"query", x.Query}, term.Field{"directory", x.WorkingDir}, term.Field{"created", term.Time(x.CreatedAt)}, term.Field{"ended", term.Time(x.CompletedAt)},
		term.Field{"stop reason", x.StopReason}, term.Field{"error", x.Error}, term.Field{"error code", x.ErrorCode},
		term.Field{"agent's session", x.AgentSessionID}, term.Field{"tokens", tokens}, term.Field{"cost", cost})
	err := term.Fields(out, fields...)
	if x.Result != nil {
		term.Body(out, x.Result.Result, color)
	}
	return err
}

// agentFields are what a session's agent is set to, and what it can be set to.
func agentFields(x wire.Session) []term.Field {
	told := x.AgentSession
	mode, model := x.Mode, x.Model
	if x.AgentMode != "" && x.AgentMode != x.Mode && x.RequestedAgent == "" {
		mode += ", the agent is in " + x.AgentMode
	}
	if x.RequestedMode != "" {
		mode += ", asked for: " + x.RequestedMode
	}
	if x.RequestedModel != "" {
		model += ", asked for: " + x.RequestedModel
	} else if model != "" && told.Agent != nil && (told.Model == nil || told.Model.Current == "" && len(told.Model.Available) == 0) {
		model += ", asked for; the agent does not say which models it has"
	}
	fields := []term.Field{{"mode", mode}, {"modes", idsOf(x.Modes)}, {"model", model}}
	if told.Model != nil {
		fields = append(fields, term.Field{"models", idsOf(told.Model.Available)})
	}
	for _, o := range told.Options {
		if o.Category != "mode" && o.Category != "model" {
			text := o.Current
			if len(o.Values) > 0 {
				text += " (" + idsOf(o.Values) + ")"
			}
			fields = append(fields, term.Field{"option " + o.ID, strings.TrimSpace(text)})
		}
	}
	var names []string
	for _, c := range told.Commands {
		names = append(names, "/"+c.Name)
	}
	fields = append(fields, term.Field{"commands", strings.Join(names, " ")})
	if a := told.Agent; a != nil {
		fields = append(fields, term.Field{"agent's program", strings.TrimSpace(fmt.Sprintf("%s %s", a.Name, a.Version))})
	}
	if i := told.Info; i != nil {
		fields = append(fields, term.Field{"agent's title", i.Title})
	}
	return fields
}

func idsOf(choices []wire.Choice) string {
	var ids []string
	for _, c := range choices {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, ", ")
}

// agentOfSession is the agent of a session, and the one that its conversation goes on with.
func agentOfSession(x wire.Session) string {
	if x.RequestedAgent == "" {
		return x.Agent
	}
	return x.Agent + "; the conversation goes on with " + x.RequestedAgent
}

// noSession says what it means that no session is listed, and what to do about it.
func noSession(status, agent string, archived bool) string {
	switch which := asked(status, agent); {
	case archived:
		return "no session is archived" + which + ": `duet-rpc session archive ID` puts one away"
	case which != "":
		return "there is no session" + which + ": `duet-rpc session list` lists them all"
	}
	return "there is no session here yet, or all are archived: `duet-rpc prompt \"…\"` begins one"
}

// noTask says what it means that no task is listed, and what to do about it.
func noTask(state, agent string) string {
	if which := asked(state, agent); which != "" {
		return "there is no task" + which + ": `duet-rpc task list` lists them all"
	}
	return "there is no task here yet: `duet-rpc prompt \"…\"` begins one"
}

// asked says which ones were asked for.
func asked(state, agent string) string {
	var parts []string
	if state != "" {
		parts = append(parts, " in the state "+state)
	}
	if agent != "" {
		parts = append(parts, " of "+agent)
	}
	return strings.Join(parts, "")
}
