package executor

import (
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// maxTranscript bounds what an agent is told of a conversation, in bytes; the
// oldest messages are left out first.
const maxTranscript = 512 << 10

// transcript is the conversation before prompt in a readable form; empty if
// there was none.
func transcript(messages []catalog.Message, prompt string) string {
	if last := len(messages) - 1; last >= 0 && messages[last].Role == "user" && messages[last].Content == prompt {
		messages = messages[:last] // the prompt itself
	}
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
	b.WriteString("This is the conversation so far. Go on from it; do not repeat it.\n\n<conversation>\n")
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
