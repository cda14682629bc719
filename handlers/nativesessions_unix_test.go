//go:build unix

package handlers_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/jsontest"
	"github.com/duet-rpc/duet-rpc/internal/trust"
	"github.com/duet-rpc/duet-rpc/server"
)

// keepsSessions is an agent that has one session, can tell it, and deletes it. DIR is
// where the session works.
const keepsSessions = `#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
tell() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"%s","content":{"type":"text","text":"%s"}}}}\n' "$1" "$2"; }
while read -r line; do
	id=${line#*'"id":'} id=${id%%,*}
	case $line in
	*'"initialize"'*) answer '"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{},"delete":{}}}}' ;;
	*'"session/list"'*) answer '"result":{"sessions":[{"sessionId":"s-1","cwd":"'"${0%/*}"'","title":"Begun elsewhere","updatedAt":"2026-01-02T03:04:05Z"}]}' ;;
	*'"session/load"'*) tell user_message_chunk 'What is it?'; tell agent_message_chunk 'It is this.'; answer '"result":{}' ;;
	*'"session/delete"'*) answer '"result":{}' ;;
	esac
done
`

func TestSessionsOfAnAgentItself(t *testing.T) {
	w := newWorld(t, quick)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "theirs"), []byte(keepsSessions), 0o700))
	file := filepath.Join(w.dir, ".duet.toml")
	require.NoError(t, os.WriteFile(file, []byte("[agents.theirs]\ncommand = [\"./theirs\"]\n"), 0o600))
	trusted := trust.New(filepath.Join(t.TempDir(), "trusted.json"))
	inspected, err := config.Inspect(file, os.Getenv)
	require.NoError(t, err)
	require.NoError(t, inspected.Trust(trusted))
	reg := server.NewRegistry()
	handlers.RegisterDomain(reg, handlers.Domain{
		Hub: func(context.Context) (*hub.Hub, error) { return w.hub, nil },
		Configuration: func(restricted bool) (*config.Config, error) {
			return config.Load(config.Sources{Project: file, Getenv: os.Getenv, Trust: trusted, Restricted: restricted})
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	c := connectTo(t, server.New(reg, server.Options{}), frame.LSP)

	// one is the session that the agent keeps, as it is listed.
	one := func() (list struct {
		Sessions []struct {
			Title     string
			Updated   string `json:"updated_at"`
			SessionID string `json:"session_id"`
		}
	}) {
		t.Helper()
		require.NoError(t, json.Unmarshal(c.ask("agent.sessions", `{"agent":"theirs"}`), &list))
		require.Len(t, list.Sessions, 1)
		return list
	}
	const theirs = `{"agent":"theirs","native_session_id":"s-1"}`
	assert.Equal(t, "Begun elsewhere", one().Sessions[0].Title)
	assert.Equal(t, "2026-01-02T03:04:05Z", one().Sessions[0].Updated)

	adopted := c.ask("agent.adopt", theirs)
	assert.True(t, jsontest.As[bool](t, adopted, "adopted"))
	assert.True(t, jsontest.As[bool](t, adopted, "history"))
	session := jsontest.As[string](t, adopted, "session_id")
	said := c.ask("getConversation", `{"session_id":"`+session+`"}`)
	assert.Contains(t, string(said), "What is it?")
	assert.Contains(t, string(said), "It is this.")

	again := c.ask("agent.adopt", theirs)
	assert.False(t, jsontest.As[bool](t, again, "adopted"))
	assert.Equal(t, session, jsontest.As[string](t, again, "session_id"))
	assert.Equal(t, session, one().Sessions[0].SessionID)

	c.ask("agent.deleteSession", theirs)
	assert.Contains(t, string(c.ask("getConversation", `{"session_id":"`+session+`"}`)), "It is this.", "what is here stays")
}
