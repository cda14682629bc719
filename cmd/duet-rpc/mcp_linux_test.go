package main_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An mcpAgent is an agent that asks by duet-rpc mcp.
type mcpAgent struct {
	*mcp.ClientSession
	cmd *exec.Cmd
}

// mcpAgent starts the server, with the client of the Go SDK.
func (s *site) mcpAgent(t *testing.T, progress func()) mcpAgent {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(s.watchdog, watchdog))
	cmd := exec.CommandContext(ctx, program, append([]string{"mcp", patiently}, s.launch().args...)...)
	cmd.Dir = s.root
	cmd.Env = append(append(cleanEnvironment(), homeless(t)...), s.launch().env...)
	client := mcp.NewClient(&mcp.Implementation{Name: "an-agent", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress() },
	})
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close(); cancel() })
	return mcpAgent{session, cmd}
}

// permission asks whether a command may run; the answer comes on the channel.
func (a mcpAgent) permission(ctx context.Context, command string) chan string {
	answered := make(chan string, 1)
	go func() {
		p := &mcp.CallToolParams{Name: "request_permission", Arguments: object{"tool_name": "Bash", "input": object{"command": command}, "tool_use_id": "toolu_1"}}
		p.SetProgressToken("p")
		r, err := a.CallTool(ctx, p)
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- mcpText(r)
	}()
	return answered
}

func mcpText(r *mcp.CallToolResult) (text string) {
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	return text
}

// open waits until one question is open, that fits.
func (c *client) open(fits func(shownApproval) bool) shownApproval {
	c.t.Helper()
	return c.openWithin(watchdog/3, fits)
}

func (c *client) openWithin(d time.Duration, fits func(shownApproval) bool) (found shownApproval) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		var r struct{ Approvals []shownApproval }
		if c.try("fetchApprovals", object{}, &r) != nil { // the hub is another one now: asked again
			return false
		}
		for _, a := range r.Approvals {
			if fits(a) {
				found = a
				return true
			}
		}
		return false
	}, d, pollEvery, "no such question is open")
	return found
}

func anyQuestion(shownApproval) bool { return true }

// An agent that speaks no more than the Model Context Protocol asks through the inbox:
// it may be answered, take the question back, go away and come again, and outlive the hub.
func TestMCPServer(t *testing.T) {
	s := newSite(parallel(t))
	hub, err := os.FindProcess(s.daemon())
	require.NoError(t, err)
	progress := make(chan bool, 1000)
	a := s.mcpAgent(t, func() { progress <- true })
	person := s.start()
	tools, err := a.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	assert.ElementsMatch(t, []string{"request_permission", "ask_user", "list_sessions", "get_session", "get_conversation", "list_questions", "page_messages"}, names)

	answer := a.permission(t.Context(), "make && true")
	<-progress
	q := person.open(anyQuestion)
	person.approve(q.ID)
	assert.Equal(t, `{"behavior":"allow","updatedInput":{"command":"make && true"}}`, <-answer)
	answer = a.permission(t.Context(), "rm -rf /")
	person.call("sendDecision", object{"approval_id": person.open(anyQuestion).ID, "decision": "deny", "comment": "not that"}, nil)
	assert.Equal(t, `{"behavior":"deny","message":"Permission denied: not that"}`, <-answer)
	person.approve(q.ID) // too late, which is no error

	said := make(chan string, 1)
	go func() {
		r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask_user", Arguments: object{"message": "Which?", "options": []string{"this", "that"}}})
		if err != nil {
			said <- err.Error()
			return
		}
		said <- mcpText(r)
	}()
	person.call("sendDecision", object{"approval_id": person.open(anyQuestion).ID, "decision": "respond", "option": "that"}, nil)
	assert.Equal(t, "that", <-said)

	// What it takes back is not asked any more.
	ctx, cancel := context.WithCancel(t.Context())
	answer = a.permission(ctx, "one")
	person.open(anyQuestion)
	cancel()
	<-answer
	require.Eventually(t, func() bool { return len(person.pending()) == 0 }, watchdog/3, pollEvery)

	// It sees what there is.
	r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_sessions"})
	require.NoError(t, err)
	var list struct {
		Sessions []struct {
			ID string `json:"session_id"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(mcpText(r)), &list))
	assert.Len(t, list.Sessions, 4)
	r, err = a.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_conversation", Arguments: object{"session_id": "task-0002"}})
	require.NoError(t, err)
	assert.Contains(t, mcpText(r), "not that")
	r, err = a.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_session", Arguments: object{"session_id": "nothing"}})
	require.NoError(t, err)
	assert.True(t, r.IsError)
	resource, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "duet://sessions/task-0002"})
	require.NoError(t, err)
	assert.Contains(t, resource.Contents[0].Text, "not that")
	_, err = a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "duet://sessions/nothing"})
	assert.Error(t, err)

	// Killed with a question open, it comes again and asks the same.
	a.permission(t.Context(), "two")
	person.open(anyQuestion)
	require.NoError(t, a.cmd.Process.Kill())
	stale := person.open(func(q shownApproval) bool { return q.Stale })
	person.approve(stale.ID)
	b := s.mcpAgent(t, func() {})
	assert.Equal(t, `{"behavior":"allow","updatedInput":{"command":"two"}}`, <-b.permission(t.Context(), "two"))

	// The hub is killed meanwhile: the next one has the question, and the answer arrives.
	answer = b.permission(t.Context(), "three")
	before := person.open(anyQuestion)
	require.NoError(t, hub.Kill())
	again := person.open(func(q shownApproval) bool { return q.ID != before.ID && !q.Stale })
	person.approve(again.ID)
	assert.Equal(t, `{"behavior":"allow","updatedInput":{"command":"three"}}`, <-answer)
	assert.Empty(t, person.pending())
	require.NoError(t, b.Close()) // the person's process may be the hub now
	person.leave()
}

// A script asks, waits, and knows by the exit status.
func TestAskingFromAScript(t *testing.T) {
	s := newSite(parallel(t))
	person := s.start()
	type outcome struct {
		out string
		err error
	}
	command := func(args ...string) chan outcome {
		ended := make(chan outcome, 1)
		go func() {
			out, err := s.command(args...)
			ended <- outcome{out, err}
		}()
		return ended
	}
	asked := command("ask", "Deploy?", "--option", "now", "--option", "later")
	person.call("sendDecision", object{"approval_id": person.open(anyQuestion).ID, "decision": "respond", "option": "later"}, nil)
	assert.Equal(t, outcome{"later\n", nil}, <-asked)

	asked = command("permission", "Bash", "--input", `{"command":"make deploy"}`)
	person.call("sendDecision", object{"approval_id": person.open(anyQuestion).ID, "decision": "approve", "updated_input": object{"command": "make -n deploy"}}, nil)
	assert.Equal(t, outcome{`{"command":"make -n deploy"}` + "\n", nil}, <-asked)

	asked = command("permission", "Bash", "--input", `{"command":"make deploy"}`)
	person.call("sendDecision", object{"approval_id": person.open(anyQuestion).ID, "decision": "deny", "comment": "not today"}, nil)
	denied := <-asked
	var status *exec.ExitError
	require.True(t, errors.As(denied.err, &status), denied.err)
	assert.Equal(t, 3, status.ExitCode())
	assert.ErrorContains(t, denied.err, "Permission denied: not today")
	person.leave()
}
