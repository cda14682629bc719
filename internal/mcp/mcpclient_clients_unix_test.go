//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// TestMain acts as a server if started as one.
func TestMain(m *testing.M) {
	if os.Getenv("BE_A_SERVER") != "" {
		_ = testServer().Run(context.Background(), &mcp.StdioTransport{})
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

type words struct {
	Word string `json:"word"`
}

// testServer has a tool that answers, one that fails, one that never answers, one that returns its
// process id, and one that ends the server.
func testServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "of the test", Version: "7"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in words) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Word + " " + os.Getenv("WORD")}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no luck"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "pid"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		text, _ := json.Marshal(os.Getpid())
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "end"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		os.Stderr.WriteString("good bye " + os.Getenv("WORD") + "\n")
		os.Exit(3)
		return nil, nil, nil
	})
	return s
}

func program(t *testing.T) Server {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return Server{MCPServer: catalog.MCPServer{Name: "one", Command: self, Env: map[string]string{"BE_A_SERVER": "1", "WORD": "guarded-word"}}, Dir: t.TempDir()}
}

func textOf(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var r struct {
		Content []struct{ Text string }
		IsError bool
	}
	require.NoError(t, json.Unmarshal(raw, &r), string(raw))
	require.NotEmpty(t, r.Content, string(raw))
	return r.Content[0].Text
}

func closed(t *testing.T, c *Clients) {
	t.Helper()
	t.Cleanup(func() { assert.NoError(t, c.Close(context.Background())) })
}

func TestAProgramIsStartedOnceAndAnswers(t *testing.T) {
	var mu sync.Mutex
	var started, ended []string
	c := NewClients(t.Context(), ClientsOptions{
		Started: func(mark string, _ int) { mu.Lock(); defer mu.Unlock(); started = append(started, mark) },
		Ended:   func(mark string) { mu.Lock(); defer mu.Unlock(); ended = append(ended, mark) },
	})
	server := program(t)
	assert.False(t, c.Connected(server))
	tools, err := c.Tools(t.Context(), server)
	require.NoError(t, err)
	assert.Equal(t, "of the test", tools.Name)
	assert.Len(t, tools.List, 5)
	assert.True(t, c.Connected(server))
	r, err := c.Call(t.Context(), server, "echo", json.RawMessage(`{"word":"hello"}`))
	require.NoError(t, err)
	assert.Equal(t, "hello guarded-word", textOf(t, r))
	r, err = c.Call(t.Context(), server, "fail", nil)
	require.NoError(t, err)
	assert.Contains(t, string(r), `"isError":true`)
	_, err = c.Call(t.Context(), server, "nothing", nil)
	var reported *CallError
	require.ErrorAs(t, err, &reported)
	assert.Contains(t, string(reported.Answer), `"code":-32602`)
	require.NoError(t, c.Close(context.Background()))
	assert.Len(t, started, 1)
	assert.Equal(t, started, ended)
	_, err = c.Tools(t.Context(), server)
	assert.ErrorContains(t, err, "is ending")
}

// A server may return pages of tools without end.
func TestAListOfToolsHasAnEnd(t *testing.T) {
	for name, test := range map[string]struct {
		page func(n int) *mcp.ListToolsResult
		want string
	}{
		"the same page again": {func(int) *mcp.ListToolsResult { return &mcp.ListToolsResult{NextCursor: "again"} }, "gives the same cursor twice"},
		"another empty page":  {func(n int) *mcp.ListToolsResult { return &mcp.ListToolsResult{NextCursor: strconv.Itoa(n)} }, "more than 100 pages"},
		"many tools": {func(int) *mcp.ListToolsResult {
			r := &mcp.ListToolsResult{}
			for range 1001 {
				r.Tools = append(r.Tools, &mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)})
			}
			return r
		}, "more than 1000 tools"},
		"long tools": {func(n int) *mcp.ListToolsResult {
			return &mcp.ListToolsResult{NextCursor: strconv.Itoa(n), Tools: []*mcp.Tool{{Name: "t", Description: strings.Repeat("x", 1<<20), InputSchema: json.RawMessage(`{"type":"object"}`)}}}
		}, "more than 4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			pages := 0
			s := testServer()
			s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
					if method != "tools/list" {
						return next(ctx, method, r)
					}
					if pages++; pages > 200 {
						return &mcp.ListToolsResult{}, nil
					}
					return test.page(pages), nil
				}
			})
			served := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
			t.Cleanup(served.Close)
			c := NewClients(t.Context(), ClientsOptions{})
			closed(t, c)
			server := Server{MCPServer: catalog.MCPServer{Name: "far", Type: "http", URL: served.URL}, Dir: t.TempDir()}
			_, err := c.Tools(t.Context(), server)
			require.ErrorContains(t, err, test.want)
			r, err := c.Call(t.Context(), server, "echo", json.RawMessage(`{"word":"still there"}`))
			require.NoError(t, err)
			assert.Contains(t, textOf(t, r), "still there")
		})
	}
}

// A cancelled call returns at once and affects no other. The end of a server is reported with its
// last output, redacted, and the server is started again.
func TestAServerThatEndsAndOneThatHangs(t *testing.T) {
	c := NewClients(t.Context(), ClientsOptions{})
	closed(t, c)
	server := program(t)
	ctx, cancel := context.WithCancel(t.Context())
	hangs := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, server, "hang", nil)
		hangs <- err
	}()
	_, err := c.Tools(t.Context(), server)
	require.NoError(t, err)
	cancel()
	assert.ErrorIs(t, <-hangs, context.Canceled)
	_, err = c.Call(t.Context(), server, "end", nil)
	assert.EqualError(t, err, "one: its program exited with status 3: good bye [secret]")
	r, err := c.Call(t.Context(), server, "echo", json.RawMessage(`{"word":"again"}`))
	require.NoError(t, err)
	assert.Equal(t, "again guarded-word", textOf(t, r))
}

func TestAServerThatDoesNotBegin(t *testing.T) {
	dir := t.TempDir()
	testkit.Program(t, filepath.Join(dir, "silent"), "#!/bin/sh\nexec sleep 1000\n")
	testkit.Program(t, filepath.Join(dir, "ends"), "#!/bin/sh\necho not today >&2\nexit 4\n")
	for name, want := range map[string]string{
		"./silent": "it does not answer within 50ms", "./ends": "its program exited with status 4: not today", "./missing": `the program "./missing" was not found`,
	} {
		var opts ClientsOptions
		if name == "./silent" {
			opts.Start, opts.End = 50*time.Millisecond, 50*time.Millisecond
		}
		c := NewClients(t.Context(), opts)
		closed(t, c)
		_, err := c.Tools(t.Context(), Server{MCPServer: catalog.MCPServer{Name: "x", Command: name}, Dir: dir})
		assert.ErrorContains(t, err, want)
	}
}

// An idle server is ended with its process group.
func TestAnIdleServerIsEnded(t *testing.T) {
	ended := make(chan string, 1)
	c := NewClients(t.Context(), ClientsOptions{Idle: time.Millisecond, Ended: func(mark string) { ended <- mark }, Started: func(string, int) {}})
	closed(t, c)
	server := program(t)
	r, err := c.Call(t.Context(), server, "pid", nil)
	require.NoError(t, err)
	<-ended
	assert.False(t, c.Connected(server))
	var pid int
	require.NoError(t, json.Unmarshal([]byte(textOf(t, r)), &pid))
	assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestServersAtAddresses(t *testing.T) {
	for kind, handler := range map[string]http.Handler{
		"http": mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return testServer() }, nil),
		"sse":  mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return testServer() }, nil),
	} {
		t.Run(kind, func(t *testing.T) {
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer guarded" {
					http.Error(w, "who are you?", http.StatusUnauthorized)
					return
				}
				handler.ServeHTTP(w, r)
			}))
			defer site.Close()
			c := NewClients(t.Context(), ClientsOptions{})
			server := Server{MCPServer: catalog.MCPServer{Name: "far", Type: kind, URL: site.URL, Headers: map[string]string{"Authorization": "Bearer guarded"}}}
			r, err := c.Call(t.Context(), server, "echo", json.RawMessage(`{"word":"hello"}`))
			require.NoError(t, err)
			assert.Equal(t, "hello ", textOf(t, r))
			server.Headers = nil
			_, err = c.Tools(t.Context(), server)
			assert.ErrorContains(t, err, "Unauthorized")
			require.NoError(t, c.Close(context.Background()))
		})
	}
}
