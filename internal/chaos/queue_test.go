//go:build linux && soak

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kinds of calls to the queue of a session.
const (
	queueAdd      = "add"
	queueEdit     = "edit"
	queueMove     = "move"
	queueWithdraw = "withdraw"
	queueRead     = "read"
	queueStart    = "start" // by the hub
	queueCancel   = "cancel"
)

// Outcomes of the calls to queues, files and sessions. A call without a response is unknown.
const (
	done    = "done"
	refused = "refused"
	absent  = "absent" // there is no such session
)

// A queueCall is a client's request about the queue of a session, or a change of the queue that
// the log reports.
type queueCall struct {
	span
	Thread  string   `json:"thread"`
	What    string   `json:"what"`
	Name    string   `json:"name,omitempty"` // of the prompt, which its edits keep
	Text    string   `json:"text,omitempty"` // the version: the name, "." and a number
	Before  string   `json:"before,omitempty"`
	Outcome string   `json:"outcome"`
	Read    []string `json:"read,omitempty"` // versions
}

// queueModel is a queue of prompts in order. Its state has the versions, each after a space. The hub
// starts the first one only.
var queueModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		queue, c := strings.Fields(state.(string)), input.(queueCall)
		at := indexOf(queue, c.Name)
		before := len(queue)
		if c.Before != "" {
			before = indexOf(queue, c.Before)
		}
		now := func() string { return strings.Join(queue, " ") }
		switch c.What {
		case queueRead:
			return slices.Equal(queue, c.Read), state
		case queueAdd:
			return at < 0, now() + " " + c.Text
		case queueWithdraw: // the log reports how
			return at < 0, state
		case queueStart:
			return at == 0 && queue[0] == c.Text, strings.Join(queue[min(1, len(queue)):], " ")
		case queueCancel:
			if at < 0 {
				return false, state
			}
			queue = slices.Delete(queue, at, at+1)
			return true, now()
		}
		fits := at >= 0 && before >= 0
		switch {
		case c.Outcome == refused:
			return !fits, state
		case !fits:
			return c.Outcome == unknown, state
		case c.What == queueEdit:
			queue[at] = c.Text
		case c.Before != c.Name: // move
			version := queue[at]
			queue = slices.Delete(queue, at, at+1)
			if c.Before == "" {
				before = len(queue)
			} else {
				before = indexOf(queue, c.Before)
			}
			queue = slices.Insert(queue, before, version)
		}
		return true, now()
	},
	Equal: func(a, b any) bool { return slices.Equal(strings.Fields(a.(string)), strings.Fields(b.(string))) },
	DescribeOperation: func(input, _ any) string {
		c := input.(queueCall)
		switch c.What {
		case queueRead:
			return fmt.Sprintf("read: %v", c.Read)
		case queueMove:
			return fmt.Sprintf("move %s before %q: %s", c.Name, c.Before, c.Outcome)
		}
		return strings.TrimSpace(fmt.Sprintf("%s %s %s: %s", c.What, c.Name, c.Text, c.Outcome))
	},
	DescribeState: func(state any) string { return state.(string) },
}

// indexOf returns the place of a prompt in a queue, or -1.
func indexOf(queue []string, name string) int {
	return slices.IndexFunc(queue, func(version string) bool { return nameOf(version) == name })
}

// nameOf returns the name of a prompt from one of its versions.
func nameOf(version string) string {
	name, _, _ := strings.Cut(version, ".")
	return name
}

// versionOf returns the version in the text of a queued prompt, or "".
func versionOf(text string) string {
	if m := promptPattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// queues returns the calls to each queue for queueModel. A call without a response took effect
// before the log reported it. If the log never does, it took no effect; a move may have any effect,
// at any time. The log also has the starts and cancellations.
func (e *evidence) queues() map[string][]queueCall {
	m := make(map[string][]queueCall)
	added, edited := make(map[string]span), make(map[string]span) // by name, by version
	for _, l := range e.Log {
		thread, version := l.Data.SessionUUID, versionOf(e.Sessions[l.Turn].Query)
		c := queueCall{span: e.spanOf(l), Thread: thread, Name: nameOf(version), Text: version, Outcome: done}
		switch {
		case l.Kind == "queue.changed" && l.Data.Prompt != "":
			edited[versionOf(l.Data.Prompt)] = c.span
			continue
		case l.Kind != "turn.state" || version == "":
			continue
		case l.Data.State == "queued":
			added[c.Name] = c.span
			continue
		case l.Data.State == "starting":
			c.What = queueStart
		case l.Data.State == "cancelled":
			c.What = queueCancel
		default:
			continue
		}
		m[thread] = append(m[thread], c)
	}
	for _, c := range e.Queues {
		if c.Outcome == unknown {
			var s span
			var ok bool
			switch c.What {
			case queueAdd:
				s, ok = added[c.Name]
			case queueEdit:
				s, ok = edited[c.Text]
			case queueMove:
				s, ok = span{Until: forever}, true
			}
			if !ok {
				continue
			}
			c.Until = max(c.From, s.Until)
		}
		m[c.Thread] = append(m[c.Thread], c)
	}
	return m
}

// spanOf returns when an event of the log happened.
func (e *evidence) spanOf(l logged) span {
	s := span{Who: hubClient, From: l.Time.Sub(e.Began) - clockSlack, Until: forever}
	if seen, ok := e.Seen[l.Seq]; ok {
		s.Until = max(s.From, time.Duration(seen))
	}
	return s
}

// prompts requires that each acknowledged prompt is there once, and that its agent received it as
// often as its end allows: once if it completed, never if it was cancelled.
func (e *evidence) prompts() (found []finding) {
	add := func(format string, args ...any) {
		found = append(found, finding{checkPrompts, fmt.Sprintf(format, args...)})
	}
	received := make(map[string][]string) // versions, by name
	for _, n := range e.Notes {
		if n.What == noteTook {
			received[n.Step] = append(received[n.Step], n.Call)
		}
	}
	sessions := make(map[string]shownSession) // by the prompt's name
	for _, id := range slices.Sorted(maps.Keys(e.Sessions)) {
		s := e.Sessions[id]
		version := versionOf(s.Query)
		if version == "" {
			continue
		}
		name := nameOf(version)
		if other, ok := sessions[name]; ok {
			add("prompt %s was sent once and is there twice, as %s and %s", name, other.ID, id)
		}
		sessions[name] = s
		took := received[name]
		switch {
		case len(took) > 1, s.State == "cancelled" && len(took) > 0, s.State == "completed" && len(took) == 0:
			add("prompt %s is %s, and its agent received it %d times: %v", version, s.State, len(took), took)
		case len(took) == 1 && took[0] != version:
			add("prompt %s reached the agent as %s", version, took[0])
		}
	}
	for _, c := range e.Queues {
		if s, ok := sessions[c.Name]; c.What == queueAdd && c.Outcome == done && (!ok || s.ThreadID != c.Thread) {
			add("prompt %s was acknowledged in session %s; it is %s in %q", c.Name, c.Thread, s.State, s.ThreadID)
		}
	}
	return found
}
