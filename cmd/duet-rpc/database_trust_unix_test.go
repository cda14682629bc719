//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fullDatabase has one of everything that acts, and names that talk to a
// terminal.
const fullDatabase = `
	UPDATE threads SET title = 'a title' || char(27) || '[2J' || char(8238), cwd = '/etc', agent = 'evil', mode = 'bypassPermissions', model = 'theirs', native_session = 'native',
		settings = '{"skip_permissions":true,"allowed_tools":["*"],"system_prompt":"be evil","mcp_servers":[{"name":"x","command":"evil"}]}';
	INSERT INTO threads (uuid, cwd, agent, created, active) VALUES ('no uuid', 'ROOT', 'evil', 1, 9000000000000000000);
	INSERT INTO runs (uuid, task, session_id, run_id, thread, prompt, agent, source, state, mode, created, active) VALUES
		('u', 100, 's', 'r', 1, 'hello', 'evil', 'session', 'queued', 'bypassPermissions', 1, 1),
		('v', 101, 'task-0001', 'r', 1, 'a draft', 'evil', 'session', 'draft', '', 1, 1),
		('w', 102, 't', 'r', 2, 'unfinished' || CAST(x'ff' AS TEXT), 'evil', 'nobody', 'running', '', 1, 1);
	INSERT INTO items (thread, run, seq, kind, role, content, input, data, created, updated, indexed) VALUES
		(2, (SELECT max(id) FROM runs), 1, 'message', 'user', 'asked' || CAST(x'ff' AS TEXT), '{', 'null', 1, 1, 1),
		(2, (SELECT max(id) FROM runs), 2, 'evil', 'user', 'no kind', '', '', 1, 1, 1);
	INSERT INTO changes (run, path, after, seq, updated) VALUES
		((SELECT max(id) FROM runs), 'ROOT/a.txt', 'a', 1, 1), ((SELECT max(id) FROM runs), '/etc/passwd', 'b', 1, 1), ((SELECT max(id) FROM runs), '../b', 'b', 1, 1);
	INSERT INTO approvals (id, thread, run, type, call_id, status, carried, created) VALUES
		('a1', 1, 1, 'function_call', 'c1', 'pending', 0, 1), ('a2', 1, 1, 'function_call', 'c2', 'approved', 1, 1);
	INSERT INTO rules (thread, effect, tool, created) VALUES (0, 'allow', '*', 1), (1, 'allow', '*', 1);
	INSERT INTO processes (mark, pid, run) VALUES ('m', 1, 1);
	INSERT INTO aliases (alias, run, thread) VALUES ('mine', 0, 1);`

// trusted is what trust --database says as JSON.
type trusted struct {
	Database string
	Holds    struct{ Conversations, Sessions, Items, Changes int }
	NotTaken map[string]int `json:"not_taken"`
	Taken    bool
	Result   struct {
		Conversations, Sessions, Items, Changes, Mended int
		LeftOut                                         int `json:"left_out"`
		NotStarted                                      int `json:"not_started"`
	}
	Now string `json:"database_now"`
}

func TestTheHistoryOfAForeignDatabase(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	content := s.plant(fullDatabase)
	c := s.start()
	c.subscribe()
	mine := c.launch("quiet mine", "")
	c.awaitEnd(mine.SessionID)
	c.leave()

	out, err := s.command("trust", "--database", "--show")
	require.NoError(t, err)
	assert.Contains(t, out, `"a title\x1b[2J\u202e"`)
	assert.NotContains(t, out, "\x1b")
	assert.Contains(t, out, "sessions that wait to be started: 2\n")
	_, err = s.command("trust", "--database")
	require.ErrorContains(t, err, "not taken over")
	same, err := os.ReadFile(s.aside())
	require.NoError(t, err)
	assert.Equal(t, content, same)

	out, err = s.command("trust", "--database", "--yes", "--json")
	require.NoError(t, err)
	var told trusted
	require.NoError(t, json.Unmarshal([]byte(out), &told))
	assert.True(t, told.Taken)
	assert.Equal(t, map[string]int{
		"waiting_sessions": 2, "rules": 2, "modes": 2, "mcp_servers": 1, "settings": 1, "open_questions": 1, "answers_kept": 1, "agent_sessions": 1, "processes": 2,
	}, told.NotTaken)
	assert.Equal(t, 2, told.Result.Conversations)
	assert.Equal(t, 2, told.Result.Sessions)
	assert.Equal(t, 1, told.Result.Changes)
	assert.Equal(t, 3, told.Result.LeftOut, "an item and two files")
	assert.Equal(t, 2, told.Result.NotStarted)
	kept, err := os.ReadFile(told.Now)
	require.NoError(t, err)
	assert.Equal(t, content, kept)
	assert.Contains(t, told.Now, "/.duet/taken-over-")

	c = s.start()
	c.subscribe()
	_, issues := c.issues()
	assert.Empty(t, issues)
	assert.Equal(t, "quiet mine", c.session(mine.SessionID).Query)
	assert.Equal(t, mine.SessionID, c.session("task-0001").ID, "numbers are not taken away")
	c.refused("getSessionState", object{"session_id": "mine"})
	assert.Empty(t, c.pending())
	var listed struct {
		Sessions []struct {
			shownSession
			Agent      string
			Mode       string `json:"permission_mode"`
			Model      string
			WorkingDir string `json:"working_dir"`
			Native     string `json:"claude_session_id"`
		}
	}
	c.call("listSessions", object{}, &listed)
	require.Len(t, listed.Sessions, 3)
	for _, one := range listed.Sessions {
		assert.Equal(t, s.root, one.WorkingDir)
		assert.Contains(t, []string{"", "default"}, one.Mode)
		assert.Empty(t, one.Model)
		assert.Contains(t, []string{"completed", "interrupted"}, one.State)
		if one.ID != mine.SessionID {
			assert.Empty(t, one.Native)
			var on launched
			c.call("continueSession", object{"session_id": one.ID, "query": "hello"}, &on)
			c.awaitQuestion(on.SessionID) // no rule and no mode answers it
			end := c.approveAll(on.SessionID)
			assert.Equal(t, "completed", end.Data.State, "the agent is the user's own")
			assert.Contains(t, c.conversation(on.SessionID), "Hello from the demo agent")
		}
	}
	c.leave()
	out, err = s.command("doctor")
	require.NoError(t, err)
	assert.NotContains(t, out, "set aside")
}

func TestWhatIsNoForeignDatabase(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, err := s.command("trust", "--database")
	require.ErrorContains(t, err, "no database of the project")
	_, err = s.command("trust", "--database", "none.db")
	require.ErrorContains(t, err, "there is no database")
	_, err = s.command("trust", "--database", "a", "b")
	require.ErrorContains(t, err, "one FILE")
	_, err = s.command("trust", "FILE")
	require.ErrorContains(t, err, "takes no arguments")
	_, err = s.command("trust", "--database", "--revoke")
	require.Error(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "text"), []byte("text"), 0o600))
	out, err := s.command("trust", "--database", "text")
	require.ErrorContains(t, err, "nothing of this database")
	assert.Contains(t, out, "it is too short")
}

func TestTheHistoryOfAForeignDatabaseIsTakenByTheHubThatRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	content := s.plant(fullDatabase)
	c := s.start()
	c.subscribe()
	mine := c.launch("quiet mine", "")
	c.awaitEnd(mine.SessionID)
	for _, name := range []string{"set-aside-none", "..", filepath.Dir(s.aside()), ".", "../.duet/" + filepath.Base(filepath.Dir(s.aside()))} {
		assert.EqualValues(t, -32602, c.refused("daemon.takeHistory", object{"directory": name}).Code, name)
	}
	elsewhere := filepath.Join(t.TempDir(), "duet.db")
	require.NoError(t, os.WriteFile(elsewhere, content, 0o600))
	_, err := s.command("trust", "--database", elsewhere, "--yes")
	require.ErrorContains(t, err, "`duet-rpc daemon stop`, then `duet-rpc trust --database "+strconv.Quote(elsewhere))

	lastEvent := func() int64 {
		var status struct {
			Subsystems struct {
				Store struct {
					LastSeq int64 `json:"last_seq"`
				}
			}
		}
		c.call("daemon.status", object{}, &status)
		return status.Subsystems.Store.LastSeq
	}
	before := lastEvent()
	out, err := s.command("trust", "--database", "--yes", "--json")
	require.NoError(t, err)
	var told trusted
	require.NoError(t, json.Unmarshal([]byte(out), &told))
	assert.True(t, told.Taken)
	assert.Equal(t, 2, told.Result.Conversations)
	assert.Equal(t, 2, told.Result.NotStarted)
	assert.Contains(t, told.Now, "/.duet/taken-over-")
	kept, err := os.ReadFile(told.Now)
	require.NoError(t, err)
	assert.Equal(t, content, kept)
	assert.Equal(t, before, lastEvent(), "no event tells of what was")
	status, issues := c.issues()
	assert.Equal(t, "ok", status)
	assert.Empty(t, issues, "nothing is left to do")
	var listed struct{ Sessions []shownSession }
	c.call("listSessions", object{}, &listed)
	require.Len(t, listed.Sessions, 3)
	assert.Empty(t, c.pending())
	var rules struct{ Rules []any }
	c.call("getRules", object{}, &rules)
	assert.Empty(t, rules.Rules)
	for _, one := range listed.Sessions {
		if one.ID == mine.SessionID {
			continue
		}
		var on launched
		c.call("continueSession", object{"session_id": one.ID, "query": "hello"}, &on)
		c.awaitQuestion(on.SessionID) // no rule and no mode answers it
		assert.Equal(t, "completed", c.approveAll(on.SessionID).Data.State)
	}
	_, err = s.command("trust", "--database", "--yes")
	require.ErrorContains(t, err, "no database of the project")
	c.leave()
}

func TestALongConversationIsNotTakenWhileOthersWait(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.plant(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
		INSERT INTO items (thread, run, seq, kind, role, content, created, updated, indexed) SELECT 1, 1, 1, 'message', 'assistant', 'text ' || i, 1, 1, 1 FROM n`)
	c := s.start()
	c.subscribe()
	_, err := s.command("trust", "--database", "--yes")
	require.ErrorContains(t, err, "entries: over 10000 are not taken over while the hub runs")
	require.ErrorContains(t, err, "`duet-rpc daemon stop`, then `duet-rpc trust --database "+strconv.Quote(s.aside())+"`")
	c.leave()
	_, err = s.command("trust", "--database", s.aside(), "--yes")
	require.NoError(t, err)
	c = s.start()
	var listed struct{ Sessions []shownSession }
	c.call("listSessions", object{}, &listed)
	assert.Len(t, listed.Sessions, 1)
	c.leave()
}
