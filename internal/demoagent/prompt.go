package demoagent

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"
)

// promptMarker is the line that ends a transcript which a client has put
// before the prompt.
const promptMarker = "The user's next message follows."

// requestMarker is the line below which duet-rpc repeats what was asked of a
// turn whose question was answered after its process had ended.
const requestMarker = "The request was:"

// promptText is the part of the prompt that counts.
func promptText(blocks []acp.ContentBlock) string {
	var lines []string
	for _, b := range blocks {
		if b.Text != nil {
			lines = append(lines, strings.Split(b.Text.Text, "\n")...)
		}
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimRight(lines[i], " \t\r") == promptMarker {
			lines = lines[i+1:]
			break
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// requestOf is what a prompt that resumes a turn repeats of its prompt.
func requestOf(text string) (request string, ok bool) {
	const marker = "\n" + requestMarker + "\n"
	i := strings.LastIndex(text, marker)
	if i < 0 || !meansContinue(text) {
		return "", false
	}
	return strings.TrimSpace(text[i+len(marker):]), true
}

// meansContinue says whether text starts with the word "continue".
func meansContinue(text string) bool {
	const word = "continue"
	if len(text) < len(word) || !strings.EqualFold(text[:len(word)], word) {
		return false
	}
	rest := []rune(cut(text[len(word):], 4))
	return len(rest) == 0 || !unicode.IsLetter(rest[0])
}

// quote is the first 80 characters of text, on one line.
func quote(text string) string {
	runes := []rune(strings.Join(strings.Fields(cut(text, keptPrompt)), " "))
	return string(runes[:min(80, len(runes))])
}

// cut is at most n bytes of text, without half a character at its end.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	n = max(0, n)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
