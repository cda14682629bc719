//go:build unix

package main_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func playSlashCommand(t *testing.T, a dayAgent) string {
	s := a.site(t)
	for _, dir := range []string{".claude/commands", ".opencode/command"} {
		s.put(s.root+"/"+dir+"/greet.md", "---\ndescription: Greets\n---\nsay: hello $ARGUMENTS\n")
	}
	s.put(s.root+"/.gemini/commands/greet.toml", "description = \"Greets\"\nprompt = \"say: hello {{args}}\"\n")
	c := s.open()
	l := c.launch(a.prompt, s.agent)
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), a.says)
	s.close(c)
	if a.commandless != "" {
		return "yes, its own; " + a.commandless
	}
	return "yes"
}
