package main_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/require"
)

// outsider is an agent that takes prompts when the user has signed in: by a request, or in
// a terminal.
const outsider = `#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%%s,%%s}\n' "$id" "$1"; }
while read -r line; do
	id=${line#*'"id":'} id=${id%%%%,*}
	case $line in
	*'"initialize"'*) answer '"result":{"protocolVersion":1,"agentInfo":{"name":"outsider","version":"1"},"agentCapabilities":{"auth":{"logout":{}}},"authMethods":[{"id":"tui","name":"In a terminal","type":"terminal","args":["login"]},{"id":"browser","name":"In a browser"}]}' ;;
	*'"logout"'*) rm %[1]q; answer '"result":{}' ;;
	*'"authenticate"'*) touch %[1]q; answer '"result":{}' ;;
	*'"session/new"'*) if test -e %[1]q; then answer '"result":{"sessionId":"s"}'; else answer '"error":{"code":-32000,"message":"log in first"}'; fi ;;
	*'"session/prompt"'*) answer '"result":{"stopReason":"end_turn"}' ;;
	esac
done
`

// Every client receives the ways to sign in, as the registry of agents wants it, and
// they are those of the agent behind.
func TestACPSignIn(t *testing.T) {
	t.Parallel()
	s := withoutDaemons(t, newSite(t))
	program := filepath.Join(s.home, "outsider")
	testkit.Program(t, program, fmt.Appendf(nil, outsider, filepath.Join(s.home, "in")))
	s.agents(fmt.Sprintf("[agents.outsider]\ncommand = [%q]\n", program))

	type method struct {
		ID, Type string
		Args     []string
	}
	c := s.acp(nil, "--agent", "outsider")
	var hello struct{ AuthMethods []method }
	c.call("initialize", object{"protocolVersion": 1, "clientCapabilities": object{"auth": object{"terminal": true}}}, &hello)
	require.Equal(t, []method{{"terminal", "terminal", []string{"--login"}}, {ID: "agent"}}, hello.AuthMethods)
	session := c.begin(s.root)
	refused := c.result(c.ask("session/prompt", promptOf(session, "hello")))
	require.Equal(t, -32000, refused.Error.Code)
	var data struct{ AuthMethods []method }
	require.NoError(t, json.Unmarshal(refused.Error.Data, &data))
	require.Equal(t, []method{{"terminal", "terminal", []string{"--login"}}, {ID: "agent"}, {ID: "browser"}}, data.AuthMethods, "what it does in a terminal is run by Duet")
	notYet := c.result(c.ask("authenticate", object{"methodId": "terminal"}))
	require.Equal(t, -32000, notYet.Error.Code)
	c.call("authenticate", object{"methodId": "agent"}, nil)
	require.FileExists(t, filepath.Join(s.home, "in"))
	require.Equal(t, "end_turn", c.prompt(session, "hello"))
	c.call("authenticate", object{"methodId": "terminal"}, nil)
	require.NotNil(t, c.result(c.ask("authenticate", object{"methodId": "nothing"})).Error)
	c.call("logout", object{}, nil)
	require.NoFileExists(t, filepath.Join(s.home, "in"))
	c.quit()

	// A client that opens no terminal is offered none; who asks without need is not
	// bothered, whichever agent is behind.
	other := s.acp(nil)
	hello.AuthMethods = nil
	other.call("initialize", object{"protocolVersion": 1}, &hello)
	require.Equal(t, []method{{ID: "agent"}}, hello.AuthMethods)
	other.call("authenticate", object{"methodId": "agent"}, nil)
	require.NoFileExists(t, filepath.Join(s.home, "in"))
	other.quit()
}

// In version 2 the end of the turn says that the user has to sign in, and how; the client
// signs in and out by auth/login and auth/logout.
func TestACPSignInVersion2(t *testing.T) {
	t.Parallel()
	s := withoutDaemons(t, newSite(t))
	program, in := filepath.Join(s.home, "outsider"), filepath.Join(s.home, "in")
	testkit.Program(t, program, fmt.Appendf(nil, outsider, in))
	s.agents(fmt.Sprintf("[agents.outsider]\ncommand = [%q]\n", program))
	c := s.acp(nil, "--agent", "outsider")
	c.call("initialize", object{"protocolVersion": 2, "info": object{"name": "test", "version": "2"}}, nil)
	session := c.begin(s.root)
	ended := func(n int) string {
		var ends []string
		c.until("the end", func() bool {
			ends = nil
			for _, u := range c.updates {
				if u.Kind == "state_update" && member(t, u.raw, "stopReason") != nil {
					ends = append(ends, string(u.raw))
				}
			}
			return len(ends) == n
		})
		return ends[n-1]
	}
	c.call("session/prompt", promptOf(session, "hello"), nil)
	end := ended(1)
	require.Contains(t, end, `"stopReason":"error","error":{"code":-32000,`)
	require.Contains(t, end, `"authMethods":[{"methodId":"agent",`)
	require.Contains(t, end, `{"methodId":"browser","name":"In a browser","type":"agent"}`)
	require.NotContains(t, end, `"tui"`, "what it does in a terminal is run by Duet")
	c.call("auth/login", object{"methodId": "browser"}, nil)
	require.FileExists(t, in)
	c.call("session/prompt", promptOf(session, "hello"), nil)
	require.Contains(t, ended(2), `"stopReason":"end_turn"`)
	c.call("auth/logout", object{}, nil)
	require.NoFileExists(t, in)
	require.Equal(t, -32601, c.result(c.ask("authenticate", object{"methodId": "agent"})).Error.Code)
	c.quit()
}
