package task

import (
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// The transcript of a session as text, for an agent that does not know the session.

// maxTranscript limits the transcript, in bytes; the oldest messages are left out first.
const maxTranscript = 512 << 10

// before returns the transcript before prompt as text; "" if there was none.
func before(messages []catalog.Message, prompt string) string {
	return readable("This is the conversation so far. Go on from it; do not repeat it.", without(messages, prompt))
}

// Unanswered returns the user's messages before prompt without any later activity of the agent,
// as text; "" if there are none. An agent that has opened its session may lack them: it
// can have ended between the opening and the prompt.
func Unanswered(messages []catalog.Message, prompt string) string {
	messages = without(messages, prompt)
	first := len(messages)
	for first > 0 && messages[first-1].Role == "user" {
		first--
	}
	return readable("The user wrote this before. You were cut short then, and may not have seen it.", messages[first:])
}

// without returns the transcript without prompt itself. The prompt may have been sent several
// times before the agent took it, for example when a sign-in was missing.
func without(messages []catalog.Message, prompt string) []catalog.Message {
	last := len(messages)
	for last > 0 && messages[last-1].Role == "user" && messages[last-1].Content == prompt {
		last--
	}
	return messages[:last]
}

// readable returns messages as text for an agent, after an introduction; "" if there are none.
func readable(introduction string, messages []catalog.Message) string {
	var parts []string
	size, left := 0, len(messages)
	for ; left > 0; left-- {
		m := messages[left-1]
		if strings.TrimSpace(m.Content) == "" {
			continue
		}
		part := speaker(m) + ": " + m.Content + "\n\n"
		if size += len(part); size > maxTranscript {
			break
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(introduction + "\n\n<conversation>\n")
	if left > 0 {
		fmt.Fprintf(&b, "(%d earlier messages are left out.)\n\n", left)
	}
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
	}
	b.WriteString("</conversation>\n\nThe user's next message follows.\n\n")
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

func speaker(m catalog.Message) string {
	switch m.Type {
	case "tool_call":
		return "Tool call"
	case "tool_result":
		return "Tool result"
	}
	if m.Role == "user" {
		return "User"
	}
	return "Assistant"
}
