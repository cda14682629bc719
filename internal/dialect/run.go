package dialect

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// ErrorText is why a run failed, in words; "" where it did not.
func ErrorText(r domain.Run) string {
	if r.Error == "" && r.State == domain.TimedOut {
		return "the time limit was reached"
	}
	return r.Error
}

// ExecutionError is why a run failed, as the executor catalog tells it: neither
// its message nor its code, in capitals, is ever empty.
func ExecutionError(r domain.Run) (message, code string) {
	byDefault := "EXECUTOR_ERROR"
	if r.State == domain.TimedOut {
		byDefault = "TIMEOUT"
	}
	return cmp.Or(ErrorText(r), "the agent failed and did not say why"), cmp.Or(r.ErrorCode, byDefault)
}

// AgentOfTool is the agent that the executor catalog means by the name of a tool.
func AgentOfTool(tool string) string {
	if tool == "claude-code" {
		return "claude"
	}
	return tool
}

// DurationMS is how long a run ran, in milliseconds; nil where it did not, or has
// not ended.
func DurationMS(r domain.Run) *int64 {
	if r.Started.IsZero() || r.Ended.IsZero() {
		return nil
	}
	ms := r.Ended.Sub(r.Started).Milliseconds()
	return &ms
}

// Cut shortens a text to about most bytes, and says so in its place.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… [%d of %d bytes left out]", text[:end], len(text)-end, len(text))
}

// IsContextOverflow reports whether a run failed since its prompt, with what was said
// before, does not fit into the model's context.
func IsContextOverflow(r domain.Run) bool { return r.ErrorCode == "AGENT_CONTEXT_OVERFLOW" } // a failure of package task
