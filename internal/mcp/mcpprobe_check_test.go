//go:build unix

package mcp

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// server is a program that answers a line with its arguments.
const server = `#!/bin/sh
read -r line
case "$line" in *'"method":"initialize"'*'"protocolVersion"'*) ;; *) exit 9;; esac
echo "$WORD is here" >&2
[ -n "$1" ] && printf '%s\n' "$1"
[ "$2" = stay ] && echo up >here && sleep 100
exit 3
`

func TestServersAreAskedWhetherTheyWork(t *testing.T) {
	dir := t.TempDir()
	testkit.Program(t, filepath.Join(dir, "server"), server)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text"), nil, 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	there := listener.Addr().String()
	for name, c := range map[string]struct {
		server catalog.MCPServer
		found  string
		cause  string
	}{
		"well": {
			catalog.MCPServer{Command: "./server", Args: []string{`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"notes","version":"1.2"}}}`}},
			`^notes 1\.2 answers in `, "",
		},
		"found by its own PATH": {
			catalog.MCPServer{Command: "server", Env: map[string]string{"PATH": dir + ":/bin:/usr/bin"}, Args: []string{`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"x"}}`}}, "^it answers in ", "",
		},
		"refuses":     {catalog.MCPServer{Command: "./server", Args: []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such version"}}`}}, "", "it refuses to begin: no such version"},
		"ends":        {catalog.MCPServer{Command: "./server", Env: map[string]string{"WORD": "nobody"}}, "", "it ended with status 3 before it answered: nobody is here"},
		"is silent":   {catalog.MCPServer{Command: "./server", Args: []string{"", "stay"}, Env: map[string]string{"WORD": "who"}}, "", "s: who is here"},
		"is another":  {catalog.MCPServer{Command: "./server", Args: []string{`{"jsonrpc":"2.0","id":1,"result":true}`}}, "", "not in the Model Context Protocol"},
		"not there":   {catalog.MCPServer{Command: "no-such-server"}, "", `the program "no-such-server" was not found`},
		"no program":  {catalog.MCPServer{Command: "./text"}, "", `the program "./text" is not an executable file`},
		"address":     {catalog.MCPServer{Type: "http", URL: "http://" + there + "/mcp"}, "^takes connections at " + there, ""},
		"nobody":      {catalog.MCPServer{Type: "sse", URL: "http://127.0.0.1:1/sse"}, "", "nothing takes connections there"},
		"not the web": {catalog.MCPServer{Type: "http", URL: "mailto:x"}, "", `"mailto:x" is not a web address`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if name == "is silent" {
				go func() { // it has started
					defer cancel()
					assert.Eventually(t, func() bool { return exists(filepath.Join(dir, "here")) }, time.Minute, time.Millisecond)
				}()
			}
			found, problem := CheckServers(ctx, c.server, dir, process.NewEnvironment())
			if c.cause == "" {
				require.Nil(t, problem)
				assert.Regexp(t, c.found, found)
				return
			}
			require.NotNil(t, problem, found)
			assert.Contains(t, problem.Cause, c.cause)
			assert.NotEmpty(t, problem.Todo)
			if name == "is silent" {
				assert.Regexp(t, `^it does not answer within \d+s: `, problem.Cause)
			}
		})
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
