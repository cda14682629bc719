package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// This file prints events of the hub, a line each.

// printEvent prints an event on a line: for people, or as JSON.
func printEvent(out io.Writer, e client.Event, asJSON bool) {
	if asJSON {
		line, _ := json.Marshal(struct { // it came as JSON
			Seq       int64           `json:"seq"`
			Type      string          `json:"type"`
			Timestamp time.Time       `json:"timestamp"`
			Data      json.RawMessage `json:"data"`
		}{e.Seq, e.Type, e.Timestamp, e.Data})
		_ = term.Raw(out, line)
		return
	}
	d, seq := wire.DataOf(e), "-"
	if e.Seq > 0 {
		seq = fmt.Sprint(e.Seq)
	}
	fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%6s  %s  %-24s  %-9s  %s",
		seq, e.Timestamp.Local().Format(time.TimeOnly), term.Line(e.Type), term.Line(cmp.Or(d.TaskID, "-")), gist(e, d)), " "))
}

// gist is what is worth telling of an event, in a line.
func gist(e client.Event, d wire.EventData) string {
	switch e.Type {
	case wire.EventStatus:
		text := d.State
		if d.OldState != "" { // else it is new
			text = d.OldState + " → " + text
		}
		if why := cmp.Or(d.Error, d.Reason); why != "" {
			text += ": " + why
		}
		return term.Short(text)
	case wire.EventConversation:
		if d.EventType == wire.EntryToolCall || d.EventType == wire.EntryToolResult {
			return below(d) + term.Short(d.EventType+": "+cmp.Or(d.ToolTitle, d.ToolName)+" "+d.ToolStatus)
		}
		return below(d) + term.Short(cmp.Or(d.Role, d.EventType)+": "+d.Content)
	case wire.EventDelta, wire.EventThinking:
		return below(d) + term.Short(d.Delta)
	case wire.EventApproval:
		return term.Short(turn.ShortID(d.ApprovalID) + " " + cmp.Or(d.Title, d.ToolName))
	case wire.EventResolved:
		text := turn.ShortID(d.ApprovalID) + " " + d.Decision + " by " + d.DecidedBy
		if d.Comment != "" {
			text += ": " + d.Comment
		}
		return term.Short(text)
	case wire.EventDiff:
		return term.Short(fmt.Sprintf("%s +%d -%d", d.Path, d.Added, d.Removed))
	case wire.EventPlan:
		done := 0
		for _, step := range d.Entries {
			if step.Status == "completed" {
				done++
			}
		}
		return fmt.Sprintf("%d of %d steps done", done, len(d.Entries))
	case wire.EventSettings:
		switch {
		case d.EventType == "native_session":
			return "the agent's own session is known"
		case d.AgentMode != "":
			return term.Short("mode " + d.AgentMode)
		}
	case wire.EventAgentSession:
		return term.Short(toldOf(d.AgentSession))
	case wire.EventDeleted:
		return term.Short(strings.Join(d.TaskIDs, ", "))
	case wire.EventIteration:
		return fmt.Sprintf("turn %d of %d", d.Iteration, d.MaxIterations)
	case wire.EventGateStart:
		return term.Short(d.Gate)
	case wire.EventGate:
		r := d.GateResult()
		return term.Short(map[bool]string{true: "passed: ", false: "failed: "}[r.Passed] + r.Outcome())
	case wire.EventGatesEnded:
		return term.Short(d.GatesEnded().Words())
	case wire.EventTerminalExit:
		return term.Short(fmt.Sprintf("%s ended with %d", d.TerminalID, d.ExitCode))
	}
	return term.Short(withoutIDs(e.Data))
}

// withoutIDs is the data of an event without the ids that say whose it is.
func withoutIDs(data json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return term.Inert(data)
	}
	for _, id := range []string{"session_id", "run_id", "task_id", "thread_id", "claude_session_id"} {
		delete(members, id)
	}
	rest, _ := json.Marshal(members) // it came as JSON
	return term.Inert(rest)
}

// toldOf is what an agent has told of its session.
func toldOf(s wire.AgentSession) string {
	var parts []string
	if s.Mode != nil && s.Mode.Current != "" {
		parts = append(parts, "mode "+s.Mode.Current)
	}
	if s.Model != nil && s.Model.Current != "" {
		parts = append(parts, "model "+s.Model.Current)
	}
	for _, o := range s.Options {
		if o.Category != "mode" && o.Category != "model" && o.Current != "" {
			parts = append(parts, o.ID+" "+o.Current)
		}
	}
	if n := len(s.Commands); n > 0 {
		parts = append(parts, fmt.Sprintf("%d commands", n))
	}
	if s.Info != nil && s.Info.Title != "" {
		parts = append(parts, s.Info.Title)
	}
	return strings.Join(parts, ", ")
}

// below is what stands before the words of a sub-agent.
func below(d wire.EventData) string {
	if d.ParentTool == "" {
		return ""
	}
	return "  "
}
