package protocol

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Texts for people, shown by the clients in Go.

// Subject describes the calls that a rule covers.
func (r Rule) Subject() string {
	switch {
	case r.Command != "":
		return r.ToolName + ": " + r.Command
	case r.Path != "":
		return r.ToolName + ": " + r.Path
	case r.SameInput:
		return r.ToolName + ", with the same input"
	}
	return r.ToolName
}

// Where describes the scope of a rule.
func (r Rule) Where() string {
	switch {
	case r.Session > 0 && r.Title != "":
		return fmt.Sprintf("session %d, %s", r.Session, r.Title)
	case r.Session > 0:
		return fmt.Sprintf("session %d", r.Session)
	}
	return strings.TrimPrefix(domain.ScopeText(r.Scope), "in this ")
}

// Line is the command line.
func (t BuildTarget) Line() string { return commandLine(t.Command) }

// Line is the command line.
func (p BuildProgress) Line() string { return commandLine(p.Command) }

func commandLine(words []string) string {
	if len(words) == 3 && words[0] == "sh" && words[1] == "-c" {
		return words[2]
	}
	return strings.Join(words, " ")
}

// Found counts the warnings, as the end of a sentence; "" if there are none.
func (b BuildResult) Found() string {
	n := 0
	for _, d := range b.Warnings {
		if d.Severity == "warning" {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 warning"
	}
	return fmt.Sprintf(", %d warnings", n)
}

// Outcome describes the result of a gate and its duration.
func (r GateResult) Outcome() string {
	took := (time.Duration(r.DurationMS) * time.Millisecond).Round(10 * time.Millisecond).String()
	if r.Passed {
		return r.Gate + " (" + took + ")"
	}
	return r.Gate + ": " + r.Reason + " (" + took + ")"
}

// Named returns the gates' names. g may be nil.
func (g *Gates) Named() []string {
	if g == nil {
		return nil
	}
	return g.Gates
}

// IsOver reports whether the work with gates has ended. g may be nil, which is false.
func (g *Gates) IsOver() bool {
	return g != nil && (g.State == domain.LoopPassed || g.State == domain.LoopFailed || g.State == domain.LoopStopped)
}

// Failed reports whether the work ended with failing gates. g may be nil.
func (g *Gates) Failed() bool { return g != nil && g.State == domain.LoopFailed }

// Words describes the state of the gates; "" without gates.
func (g *Gates) Words() string {
	if g == nil {
		return ""
	}
	turn := fmt.Sprintf("turn %d of %d", g.Iteration, g.MaxIterations)
	switch g.State {
	case domain.LoopPassed:
		return fmt.Sprintf("passed in %s", turn)
	case domain.LoopFailed:
		return fmt.Sprintf("failed, %s: %s", strings.Join(g.Failing, ", "), g.Reason)
	case domain.LoopStopped:
		return fmt.Sprintf("stopped in %s: %s", turn, g.Reason)
	case domain.LoopChecking:
		return "checked after " + turn
	}
	return turn
}

// Short describes the state in a few words after a task's state; "" if that state says enough.
func (g *Gates) Short() string {
	if g == nil {
		return ""
	}
	switch g.State {
	case domain.LoopPassed:
		return ", gates passed"
	case domain.LoopFailed:
		return ", gates failed"
	case domain.LoopChecking:
		return ", gates checked"
	case domain.LoopWorking:
		return fmt.Sprintf(", turn %d/%d", g.Iteration, g.MaxIterations)
	}
	return ""
}

// StateInWords returns the state of the turn, with the cause of a failure or else the state of its gates.
func (s Turn) StateInWords() string {
	if s.State == domain.Completed || s.ErrorCode == "" {
		return s.State.Words() + s.Gates.Short()
	}
	return s.State.Words() + ": " + s.ErrorCode
}

// Text describes the message. Only its first line begins without a space, so that a page's text
// cannot look like another message.
func (m PageMessage) Text() string {
	var text strings.Builder
	said := indented(m.Message)
	message := strings.TrimPrefix(said, "Uncaught ")
	switch place := m.place(); m.Kind {
	case "navigation":
		text.WriteString("page: " + oneLine(m.URL))
		if m.Message != "" {
			text.WriteString(" (" + oneLine(m.Message) + ")")
		}
	case "error":
		text.WriteString("uncaught: " + message)
		if place != "" {
			text.WriteString(" (" + place + ")")
		}
	default:
		text.WriteString(oneLine(m.Level) + ": " + said)
		if place != "" {
			text.WriteString(" (" + place + ")")
		}
	}
	if m.Count > 1 {
		fmt.Fprintf(&text, " [%d times]", m.Count)
	}
	// Some browsers begin a stack with the message.
	stack := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(m.Stack), strings.TrimPrefix(m.Message, "Uncaught ")))
	if stack != "" {
		text.WriteString("\n    " + indented(stack))
	}
	return text.String()
}

func (m PageMessage) place() string {
	if m.URL == "" || m.Line == 0 {
		return oneLine(m.URL)
	}
	return fmt.Sprintf("%s:%d:%d", oneLine(m.URL), m.Line, m.Column)
}

// endsLine reports whether some program ends a line at a character.
func endsLine(r rune) bool {
	return '\n' <= r && r <= '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// indented indents every line except the first, and omits empty lines.
func indented(text string) string {
	var lines []string
	for line := range strings.FieldsFuncSeq(text, endsLine) {
		if line = strings.TrimSpace(line); line != "" || len(lines) == 0 {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n    ")
}

// oneLine replaces line ends by spaces.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if endsLine(r) {
			return ' '
		}
		return r
	}, text)
}

// Label describes the attachment in one line, such as [image image/png 12 KB].
func (a Attachment) Label() string {
	parts := []string{strings.ReplaceAll(a.Type, "_", " ")}
	for _, part := range []string{a.Name, a.MIMEType} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	switch {
	case a.Size >= 1e6:
		parts = append(parts, fmt.Sprintf("%.1f MB", float64(a.Size)/1e6))
	case a.Size >= 1000:
		parts = append(parts, fmt.Sprintf("%d KB", (a.Size+500)/1000))
	case a.Size > 0:
		parts = append(parts, fmt.Sprintf("%d B", a.Size))
	}
	if a.ID == "" && a.URI != "" {
		parts = append(parts, a.URI)
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// BackgroundTitles are the titles of the agent's background tasks, or "".
func (s Turn) BackgroundTitles() string {
	titles := make([]string, len(s.Background))
	for i, b := range s.Background {
		titles[i] = cmp.Or(b.Title, b.Kind)
	}
	return strings.Join(titles, ", ")
}

// Called returns the session's title, or its prompt.
func (s Turn) Called() string { return cmp.Or(s.Title, s.Summary, s.Prompt) }

// Outcome describes how the session ended.
func (s Turn) Outcome() string {
	const completed = string(domain.Completed)
	if s.State != domain.Completed {
		return Outcome(s.State.Words(), s.Error, s.ErrorCode)
	}
	switch s.StopReason { // of the Agent Client Protocol
	case "refusal":
		return completed + ": the agent refused to go on"
	case "max_tokens":
		return completed + ": cut off, it has reached its limit of tokens"
	case "max_turn_requests":
		return completed + ": cut off, it has reached its limit of requests in a turn"
	}
	switch {
	case s.Gates.Failed():
		return "gates " + s.Gates.Words()
	case s.Gates != nil && s.Gates.State == domain.LoopPassed:
		return completed + ", gates " + s.Gates.Words()
	case s.Gates != nil && s.Gates.State == domain.LoopStopped:
		return completed + ", the check of the gates was " + s.Gates.Words()
	}
	return completed
}

// Outcome is a final state, with the reason unless it is completed.
func Outcome(state, why, code string) string {
	switch {
	case state == string(domain.Completed) || why == "":
		return state
	case code != "":
		return fmt.Sprintf("%s: %s (%s)", state, why, code)
	}
	return state + ": " + why
}

// AreChecked reports whether the gates of this session's turn are running.
func (s Turn) AreChecked() bool {
	return s.Gates != nil && s.Gates.State == domain.LoopChecking && s.Gates.TurnUUID == s.ID
}

// GoesOnIn returns the session that continues the work after the gates of this one failed, or "".
func (s Turn) GoesOnIn() string {
	if s.Gates == nil || s.Gates.TurnUUID == s.ID || s.Gates.State != domain.LoopWorking && s.Gates.State != domain.LoopChecking {
		return ""
	}
	return s.Gates.TurnUUID
}

// Reported is the agent's report about its session, or an empty one.
func (s Turn) Reported() AgentSession { return Value(s.AgentSession) }

// Reported is the agent's report about its last session, or an empty one.
func (d AgentDescription) Reported() AgentSession { return Value(d.AgentSession) }

// Value returns *p, or the zero value for nil.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// ModeChoices converts modes to choices.
func ModeChoices(modes []Mode) []domain.Choice {
	list := make([]domain.Choice, len(modes))
	for i, m := range modes {
		list[i] = domain.Choice{ID: m.ID, Name: m.Name, Description: m.Description}
	}
	return list
}

// Words are the question and its decision.
func (a AnswerNote) Words() string {
	text := strings.TrimSpace(a.Title + " " + a.Status.Words())
	if a.DecidedBy != domain.DecidedByUser {
		text += " by " + a.DecidedBy
	}
	if a.Response != "" {
		text += ": " + a.Response
	}
	return text
}
