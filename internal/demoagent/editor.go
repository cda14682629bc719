package demoagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// editor calls a tool of the user's editor, by the MCP server that duet-rpc gives agents. Its
// argument is the tool, and optionally a file, a line and a symbol: definition:main.go:3:name.
func (t *turn) editor(ctx context.Context, arg argument) error {
	words := strings.SplitN(arg.word, ":", 4)
	input := map[string]any{}
	for i, name := range []string{"path", "line", "symbol"} {
		if len(words) <= i+1 || words[i+1] == "" {
			break
		}
		input[name] = words[i+1]
		if n, err := strconv.Atoi(words[i+1]); err == nil {
			input[name] = n
		}
	}
	tool := "mcp__" + catalog.EditorServer + "__" + words[0]
	call := t.newCall(tool, tool, "other", input)
	if err := t.update(ctx, call); err != nil {
		return err
	}
	allowed, _, err := t.permission(ctx, tool, call)
	result := ""
	if allowed && err == nil {
		result, err = t.callEditor(ctx, words[0], input)
	}
	status := acp.ToolFailed
	if allowed && err == nil {
		status = acp.ToolCompleted
		call.RawOutput = encode(result)
	}
	switch endErr := t.end(ctx, call, status); {
	case ctx.Err() != nil:
		return ctx.Err()
	case endErr != nil:
		return endErr
	case err != nil:
		return t.say(ctx, fmt.Sprintf("The editor did not answer: %v. ", err))
	}
	return t.say(ctx, fmt.Sprintf("The editor said: %s ", result))
}

// callEditor starts the MCP server, as other agents do for a session, and calls a tool.
func (t *turn) callEditor(ctx context.Context, tool string, input any) (string, error) {
	var servers []acp.MCPServer
	t.session.look(func(*record) { _ = json.Unmarshal(t.session.servers, &servers) })
	i := slices.IndexFunc(servers, func(s acp.MCPServer) bool { return s.Name == catalog.EditorServer })
	if i < 0 {
		return "", errors.New("the client gave me no server named " + catalog.EditorServer)
	}
	cmd := exec.CommandContext(ctx, servers[i].Command, servers[i].Args...)
	cmd.Dir, cmd.Env = t.cwd, os.Environ()
	for _, v := range servers[i].Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "duet-demo", Version: "1"}, nil)
	connection, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	r, err := connection.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: input})
	if err != nil {
		return "", err
	}
	text := ""
	for _, c := range r.Content {
		if part, ok := c.(*mcp.TextContent); ok {
			text += part.Text
		}
	}
	if r.IsError {
		return "", errors.New(text)
	}
	return text, nil
}
