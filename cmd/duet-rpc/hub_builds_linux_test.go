package main_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// otherBuild returns a copy of the program with another build id. There is one copy, with a link
// for each test, because with the race detector it has 80 MB.
func otherBuild(t *testing.T) string {
	t.Helper()
	other := filepath.Join(programDir, "duet-rpc-other")
	makeOther.Do(func() {
		text, err := os.ReadFile(program)
		require.NoError(t, err)
		id := []byte(hubprocess.Build(program))
		require.NotEmpty(t, id)
		at := bytes.Index(text, id)
		require.Positive(t, at)
		text[at] ^= 1
		testkit.Program(t, other, text)
	})
	path := filepath.Join(t.TempDir(), "duet-rpc")
	require.NoError(t, os.Link(other, path))
	require.NotEqual(t, hubprocess.Build(program), hubprocess.Build(path))
	return path
}

var makeOther sync.Once

func TestIdleDaemonOfAnotherBuildIsReplaced(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)
	s.binary = otherBuild(t)
	editor := s.start()
	editor.subscribe()
	editor.awaitEnd(editor.launch("quiet", "").SessionID)
	first := hubOf(t, editor)
	_, err := s.command("session", "list")
	require.NoError(t, err)
	require.Equal(t, first, hubOf(t, editor), "it has a client of its own build")
	editor.leave()

	out, err := s.command("daemon", "status")
	require.NoError(t, err)
	require.Contains(t, out, fmt.Sprintf("process %d,", first), "who only looks leaves it as it is")
	require.Eventually(t, func() bool { // the daemon may not have seen yet that the clients before have gone
		out, err = s.command("session", "list")
		return err != nil || s.lockHolder() != first
	}, watchdog/3, pollEvery)
	require.NoError(t, err)
	require.Contains(t, out, "task-0001")
	second := s.lockHolder()
	_, err = s.command("session", "list")
	require.NoError(t, err)
	require.Equal(t, second, s.lockHolder(), "one of its own build stays")
	_, err = s.command("daemon", "stop")
	require.NoError(t, err)
}

// A daemon of another build that has something to do goes on until that has ended.
func TestBusyDaemonOfAnotherBuildIsUsed(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)
	other := otherBuild(t)
	s.binary = other
	starter := s.start()
	run := starter.launch("permit:1", "")
	starter.subscribe()
	question := starter.awaitQuestion(run.SessionID)
	first := hubOf(t, starter)
	starter.leave()

	s.binary = program
	editor := s.start()
	editor.subscribe()
	require.Equal(t, first, hubOf(t, editor))
	status, issues := editor.issues()
	require.Equal(t, "degraded", status)
	require.Len(t, issues, 1)
	require.Contains(t, issues[0], "are of different builds")
	editor.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
	require.Equal(t, "completed", editor.awaitEnd(run.SessionID).Data.State)
	require.Eventually(t, func() bool {
		pid := s.lockHolder()
		return pid != first && pid != 0
	}, watchdog/3, pollEvery, "it is not replaced when its work is done")
	end := editor.launch("quiet", "")
	require.Equal(t, "completed", editor.awaitEnd(end.SessionID).Data.State, "the subscription goes on")
	status, issues = editor.issues()
	require.Equal(t, "ok", status, issues)
	editor.leave()
	_, err := s.command("daemon", "stop")
	require.NoError(t, err)
}

// A daemon starts its executors with its own build after its file was replaced.
func TestTheProgramOfADaemonIsReplaced(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)
	s.binary = otherBuild(t)
	editor := s.start()
	editor.subscribe()
	before := hubOf(t, editor)
	require.NoError(t, os.Remove(s.binary))
	testkit.Program(t, s.binary, "#!/bin/sh\nexit 9\n")
	s.agents("[agents.replaced]\ndriver = \"acp\"\ncommand = ['" + program + "', 'demo-agent']\n")
	run := editor.launch("quiet", "replaced")
	require.Equal(t, "completed", editor.awaitEnd(run.SessionID).Data.State)
	require.Equal(t, before, hubOf(t, editor))
	editor.leave()
	_, err := s.command("daemon", "stop")
	require.NoError(t, err)
}

// A daemon that speaks another protocol is not used, and the client says what to do.
func TestDaemonOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ answer, says string }{
		"newer": {`"result":{"version":"9.8.7","protocol":9,"ends":false}`, "the project's daemon (9.8.7) is of another build and speaks protocol 9"},
		"older": {`"error":{"code":-32601,"message":"Method not found"}`, "the project's daemon (an earlier version) is of another build and speaks protocol 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			require.NoError(t, os.MkdirAll(s.state(), 0o700))
			require.NoError(t, os.MkdirAll(filepath.Dir(s.socketPath()), 0o700))
			l, err := net.Listen("unix", s.socketPath())
			require.NoError(t, err)
			defer l.Close()
			go answerAll(l, test.answer)
			_, err = s.command("prompt", "quiet")
			require.ErrorContains(t, err, test.says)
			require.ErrorContains(t, err, "`duet-rpc daemon stop` ends it")
			editor := s.start()
			refused := editor.refused("launchSession", object{"query": "quiet"})
			assert.Equal(t, "subsystem_unavailable", refused.kind())
			assert.Contains(t, refused.Message, test.says)
			editor.requireCore()
			editor.leave()
		})
	}
}
