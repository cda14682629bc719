//go:build unix

package handlers_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

// keeps is an agent that keeps a session, and does nothing else. Its variable is in what
// it says.
const keeps = `#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
tell() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"one","update":{"sessionUpdate":"%s","content":{"type":"text","text":"%s"}}}}\n' "$1" "$2"; }
while read -r line; do
	id=${line#*'"id":'} id=${id%%,*}
	case $line in
	*'"initialize"'*) answer '"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{},"delete":{}}}}' ;;
	*'"session/list"'*) answer "\"result\":{\"sessions\":[{\"sessionId\":\"one\",\"cwd\":\"/\",\"title\":\"First\",\"updatedAt\":\"2026-01-02T03:04:05Z\"},{\"sessionId\":\"\"}]}" ;;
	*'"session/load"'*'"locked"'*) answer '"error":{"code":-32000,"message":"Authentication required"}' ;;
	*'"session/load"'*) tell user_message_chunk "my key is $THEIR_KEY"; tell agent_message_chunk "so it is $THEIR_KEY!"; answer '"result":null' ;;
	*'"session/delete"'*) answer '"result":{}' ;;
	*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
	esac
done
`

func TestSessionsOfAgents(t *testing.T) {
	const key = "sk-1234567890-abcdef"
	w := newWorld(t, nil)
	program, file := filepath.Join(w.dir, "keeps"), filepath.Join(w.dir, "config.toml")
	testkit.Program(t, program, keeps)
	require.NoError(t, os.WriteFile(file, []byte("[agents.theirs]\ncommand = ["+`"`+program+`"`+"]\nkeys = { THEIR_KEY = \"theirs\" }\n[keys.theirs]\ncommand = [\"echo\", \""+key+"\"]\n"), 0o600))
	reg := server.NewRegistry()
	handlers.RegisterDomain(reg, handlers.Domain{
		Hub: func(context.Context) (*hub.Hub, error) { return w.hub, nil },
		Configuration: func(bool) (*config.Config, error) {
			return config.Load(config.Sources{User: file, Getenv: os.Getenv, Trust: config.NewTrust(filepath.Join(w.dir, "trusted.json"))})
		},
	})
	c := connectTo(t, server.New(reg, server.Options{}), frame.LSP)

	list := c.ask("agent.sessions", `{"agent":"theirs"}`)
	assert.JSONEq(t, `{"agent":"theirs","sessions":[{"native_session_id":"one","title":"First","updated_at":"2026-01-02T03:04:05Z","working_dir":"/"}]}`, string(list))
	adopted := c.ask("agent.adopt", `{"agent":"theirs","native_session_id":"one"}`)
	assert.Equal(t, "completed", testkit.JSONAs[string](t, adopted, "status"))
	session := testkit.JSONAs[string](t, adopted, "session_id")
	reported := string(c.ask("getConversation", `{"session_id":"`+session+`"}`))
	assert.Contains(t, reported, "so it is ")
	assert.NotContains(t, reported, key, "the agent's key is taken out")
	assert.Equal(t, session, testkit.JSONAs[string](t, c.ask("agent.adopt", `{"agent":"theirs","native_session_id":"one"}`), "session_id"))

	locked := c.fail("agent.adopt", `{"agent":"theirs","native_session_id":"locked","working_dir":"/"}`)
	assert.Contains(t, locked.Message, "duet-rpc agents login theirs")
	for _, params := range []string{`{"agent":"nobody"}`, `{"agent":"theirs","cursor":"x"}`, `{"agent":"theirs","working_dir":"/nowhere"}`} {
		assert.Equal(t, -32602, c.fail("agent.sessions", params).Code, params)
	}
	assert.Equal(t, -32602, c.fail("agent.adopt", `{"agent":"theirs"}`).Code)
	assert.JSONEq(t, `{"success":true}`, strings.TrimSpace(string(c.ask("agent.deleteSession", `{"agent":"theirs","native_session_id":"one"}`))))
}
