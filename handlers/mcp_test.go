package handlers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hub"
)

// serving is the agent fake with MCP servers.
type serving struct {
	agents
	servers []catalog.MCPServer
}

func (s serving) Resolve(name string) (config.Agent, error) {
	a, err := s.agents.Resolve(name)
	a.MCPServers = s.servers
	return a, err
}

func TestToolsOfMCPServers(t *testing.T) {
	tools := mcp.NewServer(&mcp.Implementation{Name: "of the test", Version: "7"}, nil)
	called := make(chan string, 10)
	type input struct {
		Word string `json:"word"`
	}
	mcp.AddTool(tools, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		called <- in.Word
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Word}}}, nil, nil
	})
	mcp.AddTool(tools, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		called <- "hang"
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	site := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	t.Cleanup(site.Close)
	w := newWorld(t, quick, func(o *hub.Options) {
		o.Agents = serving{servers: []catalog.MCPServer{{Name: "far", Type: "http", URL: site.URL + "/mcp?key=guarded"}, {Name: "missing", Command: "no-such-program"}}}
		o.Rules = func() []config.Rule { return []config.Rule{{Tool: "mcp__far__never", Effect: config.EffectDeny}} }
	})
	c, person := w.connect(frame.NDJSON), w.connect(frame.NDJSON)
	list := object(t, c.ask("mcp.listServers", `{}`))
	assert.Equal(t, "fake", list["agent"])
	assert.Equal(t, []any{
		map[string]any{"name": "far", "type": "http", "url": site.URL + "/mcp", "connected": false},
		map[string]any{"name": "missing", "type": "stdio", "command": "no-such-program", "connected": false},
	}, list["servers"])

	found := object(t, c.ask("mcp.listTools", `{"server":"far"}`))
	assert.Equal(t, "of the test", found["server"])
	require.Len(t, found["tools"], 2)
	e := c.failsAs("mcp.listTools", `{"server":"missing"}`, -32007, "mcp_server_error")
	assert.Contains(t, e.Message, "MCP server error: missing: the program")
	e = c.fail("mcp.listTools", `{"server":"other"}`)
	assert.Equal(t, -32602, e.Code)
	assert.Equal(t, []any{"far", "missing"}, e.Data["accepted"])

	// A person is asked, and may change what it gets.
	id := c.send("mcp.callTool", `{"server":"far","tool":"echo","arguments":{"word":"one"}}`)
	q := question(t, w, person)
	assert.Equal(t, "mcp__far__echo", q["tool_name"])
	assert.Empty(t, called)
	decide(person, q, `"decision":"approve","updated_input":{"word":"two"}`)
	r := object(t, c.wait(id).Result)
	assert.Equal(t, []any{map[string]any{"type": "text", "text": "two"}}, r["content"])
	assert.Equal(t, "two", <-called)
	id = c.send("mcp.callTool", `{"server":"far","tool":"echo","arguments":{"word":"no"}}`)
	decide(person, question(t, w, person), `"decision":"deny","comment":"no"`)
	assert.Equal(t, -32003, c.wait(id).Error.Code)
	assert.Empty(t, called)

	// An agent in bypass mode asks no user; deny rules hold.
	c.ask("mcp.callTool", `{"server":"far","tool":"echo","arguments":{"word":"three"},"confirmed":true}`)
	assert.Equal(t, "three", <-called)
	assert.Equal(t, -32003, c.fail("mcp.callTool", `{"server":"far","tool":"never","confirmed":true}`).Code)
	e = c.fail("mcp.callTool", `{"server":"far","tool":"nothing","confirmed":true}`)
	assert.Equal(t, -32007, e.Code)
	assert.Equal(t, float64(-32602), e.Data["upstream"].(map[string]any)["code"])

	id = c.send("mcp.callTool", `{"server":"far","tool":"hang","confirmed":true}`)
	assert.Equal(t, "hang", <-called)
	c.cancel(id)
}
