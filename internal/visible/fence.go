package visible

import "strings"

// Fence returns a code fence that no line of a text closes
// (https://spec.commonmark.org/0.31.2/#fenced-code-blocks).
func Fence(text string) string {
	longest, run := 2, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", longest+1)
}
