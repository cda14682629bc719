//go:build unix && clients

package main_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// alone has the site's agent answer a prompt without Duet, and returns the agent's id of
// the session.
func (s *agentSite) alone(command []string, prompt string) (native string) {
	s.t.Helper()
	env := []string{"LANG=C.UTF-8", "TERM=dumb", "TMPDIR=" + s.t.TempDir()}
	for _, entry := range s.launch().env {
		name, _, _ := strings.Cut(entry, "=")
		if name == "PATH" || name == "HOME" || strings.HasPrefix(name, "XDG_") || name == "ANTHROPIC_BASE_URL" || strings.HasPrefix(name, "OPENAI_") {
			env = append(env, entry)
		}
	}
	for name, value := range s.variables {
		env = append(env, name+"="+value)
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "KEY_FROM_DUET", "KIMI_MODEL_API_KEY", "COPILOT_PROVIDER_API_KEY"} {
		env = append(env, name+"="+s.model.Key)
	}
	cmd := exec.CommandContext(s.t.Context(), "/usr/bin/env", command...)
	cmd.Env, cmd.Dir, cmd.Stderr = env, s.root, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	require.NoError(s.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	lines := bufio.NewReaderSize(out, 1<<20)
	ids := 0
	call := func(method string, params object, result any) {
		s.t.Helper()
		ids++
		_, err := in.Write(append(mustMarshal(object{"jsonrpc": "2.0", "id": ids, "method": method, "params": params}), '\n'))
		require.NoError(s.t, err)
		for {
			line, err := lines.ReadBytes('\n')
			require.NoError(s.t, err, "%s to the agent alone", method)
			var m struct {
				ID     any             `json:"id"`
				Method string          `json:"method"`
				Result json.RawMessage `json:"result"`
				Error  json.RawMessage `json:"error"`
			}
			if json.Unmarshal(line, &m) != nil || m.Method != "" || m.ID != float64(ids) {
				continue
			}
			require.Empty(s.t, string(m.Error), "%s to the agent alone", method)
			if result != nil {
				require.NoError(s.t, json.Unmarshal(m.Result, result))
			}
			return
		}
	}
	call("initialize", object{"protocolVersion": 1, "clientInfo": object{"name": "alone", "version": "1"}, "clientCapabilities": object{}}, nil)
	var session struct {
		ID string `json:"sessionId"`
	}
	call("session/new", object{"cwd": s.root, "mcpServers": []any{}}, &session)
	call("session/prompt", object{"sessionId": session.ID, "prompt": []object{{"type": "text", "text": prompt}}}, nil)
	s.awaitRecord(`"` + strings.TrimPrefix(prompt, "say: ") + `"`) // the answer; the prompt has more
	require.NoError(s.t, in.Close())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	select { // it writes down what it has not yet
	case <-ended:
	case <-time.After(watchdog / 6):
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // some have others below them
	<-ended
	return session.ID
}

// playAdopted adopts a session that the agent has had without Duet, and goes on with it.
func playAdopted(t *testing.T, a dayAgent) string {
	s := a.site(t)
	native := s.alone(a.start, "say: begun alone")
	c := s.open()
	if a.unlisted {
		require.ErrorContains(t, c.try("agent.sessions", object{"agent": s.agent}, nil), "session/list")
		err := c.try("agent.adopt", object{"agent": s.agent, "native_session_id": native, "working_dir": t.TempDir()}, nil)
		require.ErrorContains(t, err, "only in the directory in which it began: name that directory with working_dir or --dir")
	} else {
		var list nativeListed
		c.call("agent.sessions", object{"agent": s.agent, "working_dir": s.root}, &list)
		require.True(t, slices.ContainsFunc(list.Sessions, func(one nativeListedSession) bool {
			return one.ID == native && one.Dir == s.root && one.SessionID == "" && one.Updated != ""
		}), "%+v", list)
	}
	var adopted nativeAdopted
	c.call("agent.adopt", object{"agent": s.agent, "native_session_id": native}, &adopted)
	assert.True(t, adopted.Adopted)
	assert.True(t, adopted.History)
	reported := c.reported(adopted.SessionID)
	require.GreaterOrEqual(t, len(reported), 2)
	assert.Equal(t, []string{"message user say: begun alone", "message assistant begun alone"}, reported[len(reported)-2:])
	if a.unlisted { // it deletes it when it is started again
		assert.Contains(t, adopted.Note, "deletes a loaded session")
		next := c.next(adopted.launched, "say: gone on")
		c.completes(next)
		assert.Contains(t, c.transcript(next.SessionID), "The agent had lost its session. A new session received the conversation so far: the messages and which tools were used")
		assert.Contains(t, c.transcript(next.SessionID), "gone on")
		s.close(c)
		return "yes, by its id: it does not list them; Duet sends it the transcript, since it deletes what it has loaded when it is started again"
	}
	next := s.requireGoesOn(c, adopted.launched, "say: begun alone", "say: gone on")
	assert.Equal(t, native, c.usage(next.SessionID).Native)
	assert.Equal(t, "gone on", c.conversation(next.SessionID)[len("begun alone"):], "what it tells again is not said again")
	s.close(c)
	return "yes"
}

// playRestarts ends the agent twice between the prompts of a conversation.
func playRestarts(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "say: one")
	c.completes(l)
	s.awaitRecord(`"one"`)
	prompts := []string{"say: one"}
	for _, word := range []string{"two", "three"} {
		s.close(c)
		c = s.open()
		prompts = append(prompts, "say: "+word)
		if a.deletes {
			l = c.next(l, "say: "+word)
			c.completes(l)
		} else {
			l = s.requireGoesOn(c, l, prompts...)
		}
		s.awaitRecord(`"` + word + `"`)
	}
	const lost = "The agent had lost its session"
	said := c.transcript(l.SessionID)
	s.close(c)
	if a.deletes { // the first time already, if that is in the minute in which it was begun
		assert.Contains(t, said, lost)
		return "no: it deletes a session that it has loaded when it is started again; Duet sends it the transcript, and the conversation says so"
	}
	assert.NotContains(t, said, lost)
	return "yes"
}

// playFork forks a conversation at its end.
func playFork(t *testing.T, a dayAgent) string {
	s, c, first := a.begins(t, "say: one")
	c.completes(first)
	s.awaitRecord(`"one"`)
	native := c.usage(first.SessionID).Native
	var fork launched
	c.call("continueSession", object{"session_id": first.SessionID, "query": "say: two", "fork": true}, &fork)
	c.completes(fork)
	own := c.await("the fork's own session", func(e event) bool {
		return e.Data.SessionID == fork.SessionID && strings.Contains(string(e.Raw), `"event_type":"native_session"`)
	})
	assert.NotEqual(t, native, c.usage(fork.SessionID).Native)
	forked := strings.Contains(string(own.Raw), `"forked":true`)
	assert.Equal(t, a.forks, forked, "%s", own.Raw)
	assert.Equal(t, "onetwo", c.conversation(fork.SessionID), "what it tells again is not said again")
	if forked {
		require.Equal(t, []string{"say: one", "say: two"}, s.model.Prompts())
	}
	// The other one goes on as it was.
	s.requireGoesOn(c, first, "say: one", "say: three")
	s.close(c)
	if forked {
		return "yes: its own session is forked"
	}
	return "yes: it gets the transcript; it cannot fork its own session"
}
