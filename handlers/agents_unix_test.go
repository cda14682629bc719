//go:build unix

package handlers_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

// signsIn is an agent that supports only login and logout.
const signsIn = `#!/bin/sh
state=${0%/*}
touch "$state/started"
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
	id=${line#*'"id":'} id=${id%%,*}
	case $line in
	*'"initialize"'*) answer '"result":{"protocolVersion":1,"agentInfo":{"name":"theirs","version":"4.5.6"},"agentCapabilities":{"auth":{"logout":{}}},"authMethods":[{"id":"browser","name":"B"},{"id":"tui","name":"T","type":"terminal","args":["--login"]},{"id":"key","name":"K","type":"env_var","vars":[{"name":"THEIR_API_KEY"}]}]}' ;;
	*'"authenticate"'*) touch "$state/in"; answer '"result":{}' ;;
	*'"logout"'*) rm "$state/in"; answer '"result":{}' ;;
	*'"session/new"'*) if test -e "$state/in"; then answer '"result":{"sessionId":"s"}'; else answer '"error":{"code":-32000,"message":"log in first"}'; fi ;;
	esac
done
`

// askable returns the directory of a project and a client. The project's trusted file defines the
// agent [signsIn].
func askable(t *testing.T) (dir string, mine *client) {
	t.Helper()
	dir = t.TempDir()
	testkit.Program(t, filepath.Join(dir, "theirs"), signsIn)
	file := filepath.Join(dir, ".duet.toml")
	require.NoError(t, os.WriteFile(file, []byte("[agents.theirs]\ncommand = [\"./theirs\"]\n[agents.plain]\ndriver = \"command\"\ncommand = [\"echo\"]\n"), 0o600))
	trusted := config.NewTrust(filepath.Join(dir, "trusted.json"))
	require.NoError(t, must(config.Inspect(file, os.Getenv))(t).Trust(trusted))
	workspaces := handlers.NewWorkspaces()
	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{LogLevel: new(slog.LevelVar), Now: time.Now, Workspaces: workspaces})
	register(reg, handlers.Domain{
		Hub: func(context.Context) (*hub.Hub, error) {
			return nil, &domain.Error{Kind: domain.KindUnavailable, Message: "none is needed"}
		},
		Configuration: func(restricted bool) (*config.Config, error) {
			return config.Load(config.Sources{Project: file, Getenv: os.Getenv, Trust: trusted, Restricted: restricted})
		},
		Workspaces: workspaces, AgentNotes: agentlink.NewNotes(filepath.Join(t.TempDir(), "notes")),
	})
	return dir, connectTo(t, server.New(reg, server.Options{}), frame.LSP)
}

func TestAgentsAreAskedAboutThemselves(t *testing.T) {
	dir, c := askable(t)
	names := map[string]bool{}
	for _, one := range object(t, c.ask("agent.list", ""))["agents"].([]any) {
		a := one.(map[string]any)
		names[a["name"].(string)] = a["trusted"].(bool)
	}
	assert.True(t, names["theirs"])
	assert.Contains(t, names, "claude")
	assert.NoFileExists(t, filepath.Join(dir, "started"), "agent.list starts no agent")

	listed := func() (one map[string]any) {
		t.Helper()
		for _, a := range object(t, c.ask("agent.list", ""))["agents"].([]any) {
			if one = a.(map[string]any); one["name"] == "theirs" {
				return one
			}
		}
		return nil
	}
	assert.Equal(t, "unknown", listed()["signed_in"])
	assert.NotContains(t, listed(), "version")

	signedIn := func() string {
		t.Helper()
		return testkit.JSONAs[string](t, c.ask("agent.check", `{"agent":"theirs"}`), "report.signed_in")
	}
	checked := c.ask("agent.check", `{"agent":"theirs"}`)
	assert.Equal(t, "no", testkit.JSONAs[string](t, checked, "report.signed_in"))
	assert.Equal(t, "4.5.6", testkit.JSONAs[string](t, checked, "report.version"))
	assert.Equal(t, "no", listed()["signed_in"], "agent.list shows the last check")
	assert.Equal(t, "4.5.6", listed()["version"])
	assert.Equal(t, "log in first", listed()["account"])
	assert.Contains(t, listed(), "signed_in_at")
	var methods []domain.SignInMethod
	require.NoError(t, json.Unmarshal(testkit.JSONMember(t, checked, "report.methods"), &methods))
	require.Len(t, methods, 3)
	assert.Equal(t, []string{filepath.Join(dir, "theirs"), "--login"}, methods[1].Command)

	for params, kind := range map[string]string{
		`{"agent":"theirs","method":"tui"}`: "needs_terminal",
		`{"agent":"theirs","method":"key"}`: "no_api_key",
		`{"agent":"plain"}`:                 "executor_failed",
	} {
		assert.Equal(t, kind, c.fail("agent.login", params).Data["kind"], params)
	}
	for _, params := range []string{`{"agent":"theirs","method":"other"}`, `{"agent":"theirs"}`, `{"agent":"unknown"}`} {
		assert.Equal(t, -32602, c.fail("agent.login", params).Code, params)
	}
	c.ask("agent.login", `{"agent":"theirs","method":"browser"}`)
	assert.Equal(t, "yes", listed()["signed_in"])
	assert.Equal(t, "opens_sessions", signedIn())
	c.ask("agent.logout", `{"agent":"theirs"}`)
	assert.Equal(t, "no", listed()["signed_in"])
	assert.Equal(t, "no", signedIn())
}

// Duet starts no agent of a workspace's file for an editor that does not trust the workspace.
func TestAgentsOfAWorkspaceThatIsNotTrustedAreNotAsked(t *testing.T) {
	dir, c := askable(t)
	c.ask("initialize", `{"workspaceTrusted":false}`)
	for _, method := range []string{"agent.check", "agent.login", "agent.logout"} {
		assert.Equal(t, -32043, c.fail(method, `{"agent":"theirs"}`).Code, method)
	}
	assert.NoFileExists(t, filepath.Join(dir, "started"))
}

// keeps is an agent that stores one session. The session's messages contain the variable THEIR_KEY.
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
	register(reg, handlers.Domain{
		Hub: func(context.Context) (*hub.Hub, error) { return w.hub, nil },
		Configuration: func(bool) (*config.Config, error) {
			return config.Load(config.Sources{User: file, Getenv: os.Getenv, Trust: config.NewTrust(filepath.Join(w.dir, "trusted.json"))})
		},
	})
	c := connectTo(t, server.New(reg, server.Options{}), frame.LSP)

	list := c.ask("agent.sessions", `{"agent":"theirs"}`)
	assert.JSONEq(t, `{"agent":"theirs","sessions":[{"agent_session_id":"one","title":"First","updated_at":"2026-01-02T03:04:05Z","working_dir":"/"}]}`, string(list))
	adopted := c.ask("session.adopt", `{"agent":"theirs","agent_session_id":"one"}`)
	assert.Equal(t, "completed", testkit.JSONAs[string](t, adopted, "state"))
	session := testkit.JSONAs[string](t, adopted, "turn_uuid")
	reported := string(c.ask("getConversation", `{"session_id":"`+session+`"}`))
	assert.Contains(t, reported, "so it is ")
	assert.NotContains(t, reported, key, "the hub removes the agent's key")
	again := answer[protocol.AdoptResult](c, "session.adopt", `{"agent":"theirs","agent_session_id":"one"}`)
	assert.Equal(t, []any{session, "1.1", false}, []any{again.ID, again.Name, again.Adopted})

	locked := c.fail("session.adopt", `{"agent":"theirs","agent_session_id":"locked","working_dir":"/"}`)
	assert.Contains(t, locked.Message, "duet-rpc agents login theirs")
	for _, params := range []string{`{"agent":"unknown"}`, `{"agent":"theirs","cursor":"x"}`, `{"agent":"theirs","working_dir":"/nowhere"}`} {
		assert.Equal(t, -32602, c.fail("agent.sessions", params).Code, params)
	}
	assert.Equal(t, -32602, c.fail("session.adopt", `{"agent":"theirs"}`).Code)
	assert.JSONEq(t, `{"success":true}`, strings.TrimSpace(string(c.ask("agent.forget", `{"agent":"theirs","agent_session_id":"one"}`))))
}
