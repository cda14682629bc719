package main_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Fifty clients that start at once where no daemon runs start one.
func TestFiftyClientsStartOneDaemon(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)
	var (
		clients [50]*client
		started sync.WaitGroup
	)
	for i := range clients {
		clients[i] = s.start()
	}
	for _, c := range clients {
		started.Go(func() { assert.NoError(t, c.try("task.stats", object{}, nil)) })
	}
	started.Wait()
	s.requireDaemon(clients[:]...)
	require.Equal(t, 1, strings.Count(s.daemonLog(), "msg=started"), s.daemonLog())
	for _, c := range clients {
		c.leave()
	}
	_, err := s.command("daemon", "stop")
	require.NoError(t, err)
}

// Where the user's home cannot be written there is no daemon: the core methods work, and the rest
// says what to do.
func TestHomeIsReadOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	state := filepath.Join(s.home, "state")
	require.NoError(t, os.MkdirAll(state, 0o700))
	readOnly(t, state)
	editor := s.start()
	editor.requireCore()
	for range 2 {
		refused := editor.refused("launchSession", object{"query": "quiet"})
		assert.Equal(t, "subsystem_unavailable", refused.kind())
		assert.Contains(t, refused.Message, "read-only file system; set DUET_STATE_HOME to a directory that can be written")
	}
	status, issues := editor.issues()
	assert.Equal(t, "degraded", status)
	assert.Contains(t, strings.Join(issues, "\n"), "DUET_STATE_HOME")
	editor.requireCore()
	_, err := s.command("prompt", "quiet")
	assert.ErrorContains(t, err, "set DUET_STATE_HOME to a directory that can be written")
	editor.leave()

	s.env = append(s.env, "DUET_STATE_HOME="+filepath.Join(s.home, "elsewhere"))
	out, err := s.command("prompt", "quiet")
	require.NoError(t, err)
	assert.Contains(t, out, "You asked: quiet")
	_, err = s.command("daemon", "stop")
	require.NoError(t, err)
}

// A daemon is started without any other program, such as setsid.
func TestADaemonNeedsNoOtherProgram(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)
	s.env = append(s.env, "PATH="+s.home)
	editor := s.start()
	editor.subscribe()
	require.Equal(t, "completed", editor.awaitEnd(editor.launch("quiet", "").SessionID).Data.State)
	daemon := s.requireDaemon(editor)
	session, err := unix.Getsid(daemon)
	require.NoError(t, err)
	require.Equal(t, daemon, session, "it has a session of its own")
	editor.leave()
	_, err = s.command("daemon", "stop")
	require.NoError(t, err)
}

// The clock has stood two years ahead, and is right again: what was stored then goes on, and what
// is new is the latest.
func TestTheClockJumps(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	editor := s.start()
	editor.subscribe()
	first := editor.launch("quiet", "")
	editor.awaitEnd(first.SessionID)
	asking := editor.launch("permit:1", "")
	question := editor.awaitQuestion(asking.SessionID)
	editor.leave() // and the daemon ends
	db, err := sql.Open("sqlite", "file:"+s.database())
	require.NoError(t, err)
	const ahead = int64(2 * 365 * 24 * time.Hour)
	for table, columns := range map[string][]string{
		"threads": {"created", "active"}, "runs": {"created", "started", "ended", "active"}, "events": {"at"},
		"items": {"created", "updated"}, "approvals": {"created", "deadline", "decided"},
	} {
		for _, column := range columns {
			_, err := db.Exec(fmt.Sprintf("UPDATE %[1]s SET %[2]s = %[2]s + ? WHERE %[2]s > 0", table, column), ahead)
			require.NoError(t, err, "%s.%s", table, column)
		}
	}
	var latest int64
	require.NoError(t, db.QueryRow("SELECT max(at) FROM events").Scan(&latest))
	require.Greater(t, latest, time.Now().Add(time.Duration(ahead)/2).UnixNano(), "times are in nanoseconds")
	require.NoError(t, db.Close())

	editor = s.start()
	editor.subscribe()
	editor.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
	editor.await("the end of what was asked", func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.ThreadID == asking.ThreadID && e.Data.State == "completed"
	})
	out, err := s.command("prompt", "quiet and new")
	require.NoError(t, err)
	require.Contains(t, out, "You asked: quiet and new")
	out, err = s.command("session", "show", "last")
	require.NoError(t, err)
	require.Contains(t, out, "quiet and new", "the last session is the one that began last")
	out, err = s.command("session", "list")
	require.NoError(t, err)
	require.Contains(t, strings.SplitN(out, "\n", 3)[1], "quiet and new", "and the first of the list")
	out, err = s.command("events", "--no-follow", "--since", "0")
	require.NoError(t, err)
	require.Greater(t, strings.LastIndex(out, "task-0004"), strings.LastIndex(out, "task-0001"), "events are in the order of their numbers")
	editor.leave()
}

// An editor may send all that it has before it reads: requests for the process itself, and then
// for the daemon.
func TestAnEditorThatReadsLast(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.launch().start(t)
	var all strings.Builder
	const pings = 5_000
	for i := range 2*pings + 1 {
		method := "ping"
		if i == pings {
			method = "task.stats"
		}
		all.WriteString(framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s"}`, i, method)))
	}
	_, err := p.stdin.WriteString(all.String())
	require.NoError(t, err)
	answered := make(map[string]bool)
	for range 2*pings + 1 {
		var r struct {
			ID json.RawMessage `json:"id"`
		}
		require.NoError(t, json.Unmarshal([]byte(p.next()), &r))
		answered[string(r.ID)] = true
	}
	require.Len(t, answered, 2*pings+1)
	require.NoError(t, p.stdin.Close())
	<-p.ended
}
