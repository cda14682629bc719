package acp

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An agent of version 1 answers a prompt at its end. The handler gets the states of version 2 before
// the prompt returns.
func TestPromptTellsTheStates(t *testing.T) {
	const running = `{"sessionUpdate":"state_update","state":"running"}`
	for name, c := range map[string]struct {
		version      int
		answer       string
		states       []string
		isUnreadable bool
	}{
		"version 1": {Version1, `{"stopReason":"end_turn","usage":{"inputTokens":1}}`, []string{
			running, `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn","usage":{"inputTokens":1},"_duet_ends":true}`,
		}, false},
		"version 1, without a reason": {Version1, `null`, []string{
			running, `{"sessionUpdate":"state_update","state":"idle","stopReason":"","usage":null,"_duet_ends":true}`,
		}, false},
		"version 1, unreadable": {Version1, `{"stopReason":1}`, nil, true},
		"version 2":             {Version2, `{"messageId":"m"}`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var states []string
			agentReads, in := io.Pipe()
			out, agentWrites := io.Pipe()
			conn := NewConn(in, Handler{
				Update: func(session, update []byte, _ bool) {
					assert.Equal(t, `"s"`, string(session))
					states = append(states, string(update))
				},
				Response: func(_, _ []byte) { assert.Empty(t, states, "the answer comes first") },
			})
			go conn.Read(out)
			go func() {
				var asked struct{ ID json.RawMessage }
				assert.NoError(t, json.NewDecoder(agentReads).Decode(&asked))
				_, err := io.WriteString(agentWrites, `{"jsonrpc":"2.0","id":`+string(asked.ID)+`,"result":`+c.answer+"}\n")
				assert.NoError(t, err)
			}()
			err := Prompt(t.Context(), conn, &Initialized{ProtocolVersion: c.version}, "s", object{"sessionId": "s"})
			assert.Equal(t, c.isUnreadable, err != nil, "%v", err)
			require.Len(t, states, len(c.states))
			for i := range states {
				assert.JSONEq(t, c.states[i], states[i])
			}
			require.NoError(t, agentWrites.Close())
			<-conn.Done()
		})
	}
}

// A session is resumed by the methods that the agent has.
func TestResume(t *testing.T) {
	some := SessionCapabilities{Resume: Supported}
	for name, c := range map[string]struct {
		agent   Initialized
		history bool
		method  string // "": it cannot
		replays bool
	}{
		"version 2":                           {Initialized{ProtocolVersion: Version2, Session: some}, false, MethodSessionResume, false},
		"version 2, with its history":         {Initialized{ProtocolVersion: Version2, Session: some}, true, MethodSessionResume, true},
		"version 1":                           {Initialized{ProtocolVersion: Version1, Session: some, canLoad: true}, false, MethodSessionResume, false},
		"version 1, with its history":         {Initialized{ProtocolVersion: Version1, Session: some, canLoad: true}, true, MethodSessionLoad, true},
		"version 1 that always sends it":      {Initialized{ProtocolVersion: Version1, canLoad: true}, false, MethodSessionLoad, true},
		"version 1 that cannot send it":       {Initialized{ProtocolVersion: Version1, Session: some}, true, MethodSessionResume, false},
		"version 1 that forgets its sessions": {agent: Initialized{ProtocolVersion: Version1}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.method != "", c.agent.CanResume())
			if c.method == "" {
				return
			}
			asked := OpenSessionRequest{SessionID: "s"}
			if c.history {
				asked.ReplayFrom = &ReplayCursor{ReplayFromStart}
			}
			method, params, replays := c.agent.Resume(asked)
			assert.Equal(t, c.method, method)
			assert.Equal(t, c.replays, replays)
			assert.Equal(t, c.history && c.agent.ProtocolVersion == Version2, params.ReplayFrom != nil)
		})
	}
}
