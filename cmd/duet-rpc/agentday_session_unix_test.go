//go:build unix && clients

package main_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/testdata/agents/model"
)

// playPlan leaves plan mode, and then edits as the answer said.
func playPlan(t *testing.T, a dayAgent) string {
	s := a.site(t)
	c := s.open()
	var l launched
	prompt := "plan: made"
	if a.absolute {
		prompt = "plan: " + filepath.Join(s.root, "made")
	}
	c.call("launchSession", object{"query": prompt, "agent": s.agent, "permission_mode": "plan"}, &l)
	if a.leaves == nil {
		end := c.awaitEnd(l.SessionID)
		assert.Equal(t, "completed", end.Data.State, "%s", end.Raw)
		assert.Contains(t, c.conversation(l.SessionID), "There is no tool for that.")
		assert.False(t, s.exists("made"))
		s.close(c)
		return "no: " + a.planless
	}
	exit := c.await("a question, or the session's end", func(e event) bool {
		return e.Data.SessionID == l.SessionID && (e.Type == "new_approval" || e.Type == "session_status_changed" && ended(e.Data.State))
	})
	require.Equal(t, "new_approval", exit.Type, "%s", c.conversation(l.SessionID))
	var asked struct {
		Options []struct {
			ID   string `json:"option_id"`
			Name string `json:"name"`
			Kind string `json:"kind"`
		}
	}
	require.NoError(t, json.Unmarshal(exit.Raw, &asked))
	var names []string
	var chosen string
	for _, o := range asked.Options {
		names = append(names, o.Name)
		if o.Kind == "allow_once" {
			chosen = o.ID
		}
	}
	assert.Equal(t, a.leaves, names)
	var shown struct {
		Plan string          `json:"plan"`
		Rule json.RawMessage `json:"rule_preview"`
	}
	require.NoError(t, json.Unmarshal(exit.Raw, &shown))
	assert.Contains(t, shown.Plan, "1. Write the file.", "as the text that it is")
	assert.Empty(t, shown.Rule)
	assert.ErrorContains(t, c.try("sendDecision", object{"approval_id": exit.Data.ApprovalID, "decision": "approve", "scope": "session"}, nil), "a plan is agreed to for itself")
	c.call("sendDecision", object{"approval_id": exit.Data.ApprovalID, "decision": "approve", "option": chosen}, nil)

	edit := c.await("a question about the file", func(e event) bool {
		return e.Type == "new_approval" && e.Data.SessionID == l.SessionID && e.Data.ApprovalID != exit.Data.ApprovalID
	})
	assert.Contains(t, []string{"Write", "Edit"}, edit.Data.ToolName)
	assert.False(t, s.exists("made"))
	c.call("sendDecision", object{"approval_id": edit.Data.ApprovalID, "decision": "approve"}, nil)
	c.completes(l)
	text, err := os.ReadFile(filepath.Join(s.root, "made"))
	require.NoError(t, err)
	assert.Equal(t, model.Written, string(text))
	s.close(c)
	if !a.telling {
		return "yes: its question names the plan's file, of which the plan is read"
	}
	return "yes"
}

// playUnknownModel asks for a model that no agent has.
func playUnknownModel(t *testing.T, a dayAgent) string {
	s := a.site(t)
	c := s.open()
	var l launched
	c.call("launchSession", object{"query": "say: hello", "agent": s.agent, "model": "no-such-model"}, &l)
	if a.modelless {
		c.completes(l)
		c.await("the warning", func(e event) bool {
			return e.Type == "task_error" && e.Data.SessionID == l.SessionID && strings.Contains(string(e.Raw), "does not report its models")
		})
		s.close(c)
		return "no: with a provider of one's own it names no models to choose from; Duet warns of that"
	}
	end := c.awaitEnd(l.SessionID)
	assert.Equal(t, "failed", end.Data.State, "%s", end.Raw)
	assert.Contains(t, end.Data.Error, "no-such-model")
	assert.Contains(t, end.Data.Error, a.model)
	assert.Empty(t, s.model.Prompts())

	// Now it is known.
	refused := c.refused("launchSession", object{"query": "say: hello", "agent": s.agent, "model": "no-such-model"})
	assert.Contains(t, string(refused.Data), a.model)
	s.close(c)
	return "yes: refused, with a list of what it has"
}

// awaitCommand waits until the agent of a session has reported a slash command, which
// it may do when its turn is over. The report is kept.
func (c *client) awaitCommand(l launched, name string) {
	c.t.Helper()
	type session struct {
		Commands []struct{ Name string } `json:"commands"`
	}
	has := func(s session) bool {
		return slices.ContainsFunc(s.Commands, func(c struct{ Name string }) bool { return c.Name == name })
	}
	c.await("the command "+name, func(e event) bool {
		var reported session
		return e.Type == "agent_session" && e.Data.SessionID == l.SessionID && json.Unmarshal(e.Raw, &reported) == nil && has(reported)
	})
	var state struct {
		Session struct {
			Agent session `json:"agent_session"`
		} `json:"session"`
	}
	c.call("getSessionState", object{"session_id": l.SessionID}, &state)
	assert.True(c.t, has(state.Session.Agent), "%v", state.Session.Agent.Commands)
}

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
	c.awaitCommand(l, a.command)
	s.close(c)
	if a.commandless != "" {
		return "yes: its own commands; " + a.commandless
	}
	return "yes"
}

// An image of one point.
const onePoint = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// playImage has an image in a prompt.
func playImage(t *testing.T, a dayAgent) string {
	s := a.site(t)
	c := s.open()
	var l launched
	c.call("launchSession", object{"query": "say: seen", "agent": s.agent, "content": []object{{"type": "image", "mimeType": "image/png", "data": onePoint}}}, &l)
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "seen")
	images := s.model.Images()
	require.Len(t, images, 1)
	point, err := png.Decode(bytes.NewReader(images[0]))
	require.NoError(t, err, "%q", images[0])
	assert.Equal(t, image.Rect(0, 0, 1, 1), point.Bounds())
	s.close(c)
	return "yes"
}
