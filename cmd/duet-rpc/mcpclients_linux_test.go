//go:build clients

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The client of the TypeScript SDK lists and calls what it is offered.
func TestMCPClientOfTheTypeScriptSDK(t *testing.T) {
	t.Parallel()
	sdk := filepath.Join(installedAgent(t, "mcp-server-everything"), "node_modules", "@modelcontextprotocol", "sdk", "dist", "esm", "client")
	s := newSite(t)
	script := filepath.Join(t.TempDir(), "client.mjs")
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, `
import { Client } from %q;
import { StdioClientTransport } from %q;
const client = new Client({ name: "ts", version: "1" });
await client.connect(new StdioClientTransport({ command: process.argv[2], args: process.argv.slice(3), env: process.env }));
const all = [(await client.listTools()).tools.map(t => t.name), (await client.listResources()).resources.map(r => r.uri), (await client.listResourceTemplates()).resourceTemplates.map(r => r.uriTemplate)];
console.log(JSON.stringify(all), client.getServerVersion().name);
const r = await client.callTool({ name: "request_permission", arguments: { tool_name: "Bash", input: { command: "make" } } }, undefined, { timeout: 600000 });
console.log(r.content[0].text);
await client.close();
`, filepath.Join(sdk, "index.js"), filepath.Join(sdk, "stdio.js")), 0o600))
	person := s.start()
	ctx, cancel := context.WithTimeout(context.Background(), 2*watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{script, program, "mcp", patiently}, s.launch().args...)...)
	cmd.Dir = s.root
	cmd.Env = append(append(cleanEnvironment(), homeless(t)...), s.launch().env...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	require.NoError(t, cmd.Start())
	person.approve(person.open(anyQuestion).ID)
	require.NoError(t, cmd.Wait())
	assert.Equal(t, `[["ask_user","get_conversation","get_session","list_questions","list_sessions","page_messages","request_permission"],["duet://sessions"],["duet://sessions/{id}"]] duet
{"behavior":"allow","updatedInput":{"command":"make"}}
`, out.String())
	person.leave()
}

// Claude Code, in its own print mode, asks by the permission tool whether it may run what
// the model wants.
func TestMCPPermissionToolOfClaudeCode(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.Join(installedAgent(t, claudeFolder), "node_modules", "@anthropic-ai", "claude-agent-sdk-*", "claude"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	s := newClaudeSite(t)
	servers, err := json.Marshal(object{"mcpServers": object{"duet": object{
		"type": "stdio", "command": program, "args": append([]string{"mcp", patiently}, s.launch().args...), "env": object{},
	}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "servers.json")
	require.NoError(t, os.WriteFile(file, servers, 0o600))
	person := s.start()
	run := func(prompt string) (*exec.Cmd, *strings.Builder) {
		ctx, cancel := context.WithTimeout(context.Background(), s.watchdog)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, found[0], "-p", "--mcp-config", file, "--permission-prompt-tool", "mcp__duet__request_permission", "--", prompt)
		cmd.Dir = s.root
		cmd.Env = append(append(cleanEnvironment(), homeless(t)...), s.launch().env...)
		for name, value := range s.variables {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY="+s.model.Key)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		require.NoError(t, cmd.Start())
		return cmd, &out
	}
	cmd, out := run("run: touch made")
	q := person.openWithin(s.watchdog, anyQuestion)
	assert.Equal(t, "Bash", q.ToolName)
	assert.False(t, s.exists("made"))
	person.approve(q.ID)
	require.NoError(t, cmd.Wait(), out)
	assert.True(t, s.exists("made"), out)

	cmd, out = run("run: touch never")
	person.call("sendDecision", object{"approval_id": person.openWithin(s.watchdog, anyQuestion).ID, "decision": "deny", "comment": "not today"}, nil)
	require.NoError(t, cmd.Wait(), out)
	assert.False(t, s.exists("never"))
	assert.Contains(t, out.String(), "not today")
	person.leave()
}

// A third-party server is asked by the methods mcp.*: it is started where it
// is needed, and ends with the hub, also one that is killed.
func TestMCPServerEverything(t *testing.T) {
	t.Parallel()
	server := filepath.Join(installedAgent(t, "mcp-server-everything"), "node_modules", ".bin", "mcp-server-everything")
	s := newSite(t, fmt.Sprintf("[[agents.scripted.mcp_servers]]\nname = \"everything\"\ncommand = %q\n", server))
	c := s.start()
	var tools struct {
		Server string
		Tools  []struct{ Name string }
	}
	c.call("mcp.listTools", object{"server": "everything"}, &tools)
	assert.NotEmpty(t, tools.Server)
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	assert.Contains(t, names, "echo")
	var result struct{ Content []struct{ Type, Text string } }
	c.call("mcp.callTool", object{"server": "everything", "tool": "echo", "arguments": object{"message": "hello"}, "confirmed": true}, &result)
	require.Len(t, result.Content, 1)
	assert.Contains(t, result.Content[0].Text, "hello")
	var failure struct{ IsError bool }
	c.call("mcp.callTool", object{"server": "everything", "tool": "no-such-tool", "confirmed": true}, &failure)
	assert.True(t, failure.IsError)
	c.crash()
	s.requireNobody("after the hub was killed")
}
