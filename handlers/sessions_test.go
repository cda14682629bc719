package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func TestASessionFromItsStartToItsEnd(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventNativeSession, catalog.NativeSession{SessionID: "native-1"})
		x.say("Looking.")
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "toolu_1", Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)})
		x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "toolu_1", Status: "completed", Result: json.RawMessage(`"a.txt"`)})
		x.say("Found it.")
		x.report(catalog.EventUsage, catalog.Usage{TokenUsage: catalog.TokenUsage{InputTokens: 10, OutputTokens: 5}, ContextSize: 1000, CostUSD: 0.5})
		return done
	})
	c := w.connect(frame.NDJSON)
	launched := c.ask("launchSession", `{"query":"where  is it?","title":"Search","model":"sonnet","dangerously_skip_permissions":true,"dangerously_skip_permissions_timeout":60000}`)
	id := testkit.JSONAs[string](t, launched, "session_id")
	assert.NotEqual(t, id, testkit.JSONAs[string](t, launched, "run_id"))
	w.ended(id)

	state := c.state(id)
	for name, want := range map[string]any{
		"id": id, "run_id": testkit.JSONAs[string](t, launched, "run_id"), "claude_session_id": "native-1", "status": "completed", "state": "completed",
		"query": "where  is it?", "summary": "where is it?", "title": "Search", "model": "sonnet", "working_dir": w.dir,
		"cost_usd": 0.5, "input_tokens": 10.0, "output_tokens": 5.0, "total_tokens": 15.0, "effective_context_tokens": 15.0, "context_limit": 1000.0,
		"auto_accept_edits": false, "dangerously_skip_permissions": true, "archived": false, "agent": "fake", "task_id": "task-0001",
		"permission_mode": "default", "source": "session", "proxy_enabled": false,
	} {
		assert.Equal(t, want, state[name], name)
	}
	for _, pair := range [][2]string{{"created_at", "start_time"}, {"completed_at", "end_time"}} {
		assert.Equal(t, state[pair[0]], state[pair[1]])
		must(time.Parse(time.RFC3339Nano, state[pair[0]].(string)))(t)
	}
	for _, name := range []string{"last_activity_at", "duration_ms", "dangerously_skip_permissions_expires_at"} {
		assert.Contains(t, state, name)
	}
	for _, name := range []string{"error", "error_message", "parent_session_id", "pending_approvals"} {
		assert.NotContains(t, state, name)
	}
	result := state["result"].(map[string]any)
	assert.Equal(t, []any{"result", "session_completed", false, "Found it.", "native-1"},
		[]any{result["type"], result["subtype"], result["is_error"], result["result"], result["session_id"]})

	assert.Equal(t, c.ask("session.items", `{"session":1}`), c.ask("session.items", `{"agent_session_id":"native-1"}`))
	for _, params := range []string{`{"session_id":"` + id + `"}`, `{"claude_session_id":"native-1"}`, `{"session_id":"task-0001"}`} {
		items := c.ask("getConversation", params)
		var r struct {
			Events     []map[string]any
			Total      int
			NextOffset *int `json:"next_offset"`
		}
		require.NoError(t, json.Unmarshal(items, &r))
		var got []string
		ids := map[any]bool{}
		for i, e := range r.Events {
			assert.Equal(t, []any{float64(i + 1), id}, []any{e["sequence"], e["session_id"]})
			ids[e["id"]] = true
			got = append(got, fmt.Sprintf("%v %v %v %v %v %v %v", e["event_type"], e["role"], e["content"], e["tool_name"], e["tool_input_json"], e["tool_result_content"], e["is_completed"]))
		}
		assert.Equal(t, []string{
			"message user where  is it? <nil> <nil> <nil> true",
			"message assistant Looking. <nil> <nil> <nil> true",
			`tool_call assistant <nil> Bash {"command":"ls"} <nil> true`,
			"tool_result user <nil> <nil> <nil> a.txt true",
			"message assistant Found it. <nil> <nil> <nil> true",
		}, got)
		assert.Len(t, ids, 5, "ids differ")
		assert.Equal(t, "toolu_1", r.Events[2]["tool_id"])
		assert.Equal(t, "toolu_1", r.Events[3]["tool_result_for_id"])
		assert.Equal(t, 5, r.Total)
		assert.Nil(t, r.NextOffset)
	}
	page := object(t, c.ask("getConversation", `{"session_id":"`+id+`","offset":1,"limit":2}`))
	assert.Len(t, page["events"], 2)
	assert.Equal(t, 3.0, page["next_offset"])
	assert.Equal(t, 2.0, page["events"].([]any)[0].(map[string]any)["sequence"])
}

func TestSessionsThatFollowEachOther(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	first := w.finished(c.launch(`{"query":"one"}`))
	second := c.ask("continueSession", `{"session_id":"`+first+`","query":"two","mcp_config":"{\"mcpServers\":{\"x\":{\"command\":\"x\"}}}"}`)
	assert.Equal(t, first, testkit.JSONAs[string](t, second, "parent_session_id"))
	assert.Contains(t, object(t, second), "claude_session_id")
	w.ended(testkit.JSONAs[string](t, second, "session_id"))
	fork := c.ask("continueSession", `{"session_id":"`+first+`","query":"another two"}`)
	w.ended(testkit.JSONAs[string](t, fork, "session_id"))
	assert.NotEqual(t, testkit.JSONAs[string](t, second, "thread_id"), testkit.JSONAs[string](t, fork, "thread_id"))

	r := answer[struct{ Events []struct{ Content string } }](c, "getConversation", `{"session_id":"`+testkit.JSONAs[string](t, fork, "session_id")+`"}`)
	var said []string
	for _, e := range r.Events {
		said = append(said, e.Content)
	}
	assert.Equal(t, []string{"one", "Done: one", "another two", "Done: another two"}, said)

	// A fork of the last session leaves it open for continuation.
	last := testkit.JSONAs[string](t, fork, "session_id")
	beside := c.ask("continueSession", `{"session_id":"`+last+`","query":"beside","fork":true}`)
	w.ended(testkit.JSONAs[string](t, beside, "session_id"))
	assert.NotEqual(t, testkit.JSONAs[string](t, fork, "thread_id"), testkit.JSONAs[string](t, beside, "thread_id"))
	assert.Equal(t, last, testkit.JSONAs[string](t, beside, "parent_session_id"))
	require.NoError(t, json.Unmarshal(c.ask("getConversation", `{"session_id":"`+testkit.JSONAs[string](t, beside, "session_id")+`"}`), &r))
	require.Len(t, r.Events, 6)
	assert.Equal(t, "beside", r.Events[4].Content)
	for _, setting := range []string{`"agent":"a"`, `"model":"m"`, `"permission_mode":"plan"`, `"options":{"o":"v"}`} {
		assert.Contains(t, fmt.Sprint(c.fail("continueSession", `{"session_id":"`+last+`","query":"on",`+setting+`}`).Data), "session.set changes a conversation")
	}
	onward := c.ask("continueSession", `{"session_id":"`+last+`","query":"on","fork":false}`)
	assert.Equal(t, testkit.JSONAs[string](t, fork, "thread_id"), testkit.JSONAs[string](t, onward, "thread_id"))
	w.ended(testkit.JSONAs[string](t, onward, "session_id"))

	e := c.failsAs("continueSession", `{"session_id":"nope","query":"x"}`, -32603, "session_not_found")
	assert.Contains(t, e.Message, "nope")
	assert.Equal(t, "working_dir", c.fail("launchSession", `{"query":"x","working_dir":"not/here"}`).Data["param"])

	hits := object(t, c.ask("session.search", `{"query":"another"}`))["hits"].([]any)
	require.NotEmpty(t, hits)
	assert.Equal(t, testkit.JSONAs[string](t, fork, "session_id"), hits[0].(map[string]any)["turn_uuid"])
	assert.Contains(t, hits[0].(map[string]any)["snippet"], "«another»")
}

func TestSnippetsAreShort(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	long := strings.Repeat("ä", 100_000)
	w.ended(c.sessionID("launchSession", `{"query":"`+long+` needle `+long+`"}`))
	w.ended(c.sessionID("launchSession", `{"query":"Find `+strings.Repeat("ö", 100_000)+`"}`))
	for query, want := range map[string]string{
		"needle": "…" + strings.Repeat("ä", 99) + " «needle» " + strings.Repeat("ä", 291) + "…",
		"ööö":    "Find «" + strings.Repeat("ö", 299) + "…»",
	} {
		var found protocol.SearchResult
		require.NoError(t, json.Unmarshal(c.ask("session.search", `{"query":"`+query+`"}`), &found))
		require.NotEmpty(t, found.Hits)
		for _, h := range found.Hits {
			assert.Equal(t, want, strings.TrimPrefix(h.Snippet, "Done: "))
		}
	}
}

func TestListsOfSessions(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventSession, catalog.Session{Mode: &catalog.Selection{}}) // it has no modes
		return quick(ctx, x)
	})
	c := w.connect(frame.LSP)
	var ids []string
	for i := range 4 {
		id := testkit.JSONAs[string](t, c.ask("launchSession", fmt.Sprintf(`{"query":"q%d"}`, i)), "session_id")
		w.ended(id)
		ids = append(ids, id)
	}
	leaf := w.finished(c.sessionID("continueSession", `{"session_id":"`+ids[3]+`","query":"on"}`))
	draft := c.launch(`{"query":"draft","draft":true}`)
	list := func(method, params string) (got []string) {
		for _, s := range object(t, c.ask(method, params))["sessions"].([]any) {
			got = append(got, s.(map[string]any)["id"].(string))
		}
		return got
	}
	assert.Equal(t, []string{draft, leaf, ids[3], ids[2], ids[1], ids[0]}, list("listSessions", ""))
	assert.Equal(t, []string{ids[2], ids[1]}, list("listSessions", `{"limit":2,"before":"`+ids[3]+`"}`))
	page := object(t, c.ask("listSessions", `{"limit":2}`))
	assert.Equal(t, leaf, page["next_before"])
	assert.Equal(t, []string{draft}, list("listSessions", `{"status":"draft"}`))

	assert.JSONEq(t, `{"success":true}`, string(c.ask("archiveSession", `{"session_id":"`+ids[0]+`","archived":true}`)))
	assert.JSONEq(t, `{"success":false,"failed_sessions":["nope"]}`, string(c.ask("bulkArchiveSessions", `{"session_ids":["`+ids[1]+`","nope"],"archived":true}`)))
	assert.Equal(t, []string{draft, leaf, ids[2], ids[1], ids[0]}, list("getSessionLeaves", ""))
	assert.Equal(t, []string{leaf, ids[2]}, list("getSessionLeaves", `{"filter":"normal"}`))
	assert.Equal(t, []string{ids[1], ids[0]}, list("getSessionLeaves", `{"filter":"archived"}`))
	assert.Equal(t, []string{draft}, list("getSessionLeaves", `{"filter":"draft"}`))
	assert.Equal(t, []string{draft, leaf, ids[2], ids[1], ids[0]}, list("getSessionLeaves", `{"filter":""}`))

	c.ask("updateSessionTitle", `{"session_id":"`+leaf+`","title":"Named"}`)
	c.ask("updateSessionSettings", `{"session_id":"`+leaf+`","auto_accept_edits":true,"permission_mode":"plan","dangerously_skip_permissions":true,"dangerously_skip_permissions_timeout_ms":60000}`)
	s := c.state(leaf)
	assert.Equal(t, []any{"Named", true, "plan", true}, []any{s["title"], s["auto_accept_edits"], s["permission_mode"], s["dangerously_skip_permissions"]})
	assert.Contains(t, s, "dangerously_skip_permissions_expires_at")
	e := c.fail("updateSessionSettings", `{"session_id":"`+leaf+`","permission_mode":"yolo"}`)
	assert.Equal(t, []any{"default", "acceptEdits", "bypassPermissions", "plan"}, e.Data["accepted"])

	paths := object(t, c.ask("getRecentPaths", ""))["paths"].([]any)
	require.Len(t, paths, 1)
	assert.Equal(t, w.dir, paths[0].(map[string]any)["path"])
	assert.Contains(t, paths[0], "usage_count")
	directories := answer[protocol.DirectoryList](c, "project.directories", `{"limit":5}`).Directories
	require.Len(t, directories, 1)
	assert.Equal(t, []any{w.dir, paths[0].(map[string]any)["usage_count"]}, []any{directories[0].Path, float64(directories[0].Sessions)})
	assert.False(t, directories[0].LastUsed.IsZero())
}

func TestASessionIsDeleted(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	launched := object(t, c.ask("launchSession", `{"query":"one"}`))
	id := launched["session_id"].(string)
	w.ended(id)
	next := w.finished(c.sessionID("continueSession", `{"session_id":"last","query":"two"}`))
	r := object(t, c.ask("session.delete", `{"session":"`+id+`"}`))
	assert.Equal(t, []any{2.0, 0.0}, []any{r["deleted"], r["kept"]})
	assert.NotEmpty(t, r["session_uuid"])
	for _, gone := range []string{id, next, "last"} {
		assert.Contains(t, c.fail("session.delete", `{"session":"`+gone+`"}`).Message, "no session or turn has the id")
	}
	draft := c.launch(`{"query":"later","draft":true}`)
	assert.Equal(t, 1.0, object(t, c.ask("session.delete", `{"session":"`+draft+`"}`))["deleted"])
}

func TestADraftIsLaunchedByContinuingIt(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	id := c.launch(`{"query":"later","draft":true}`)
	c.ask("updateSessionTitle", `{"session_id":"`+id+`","title":"Named"}`)
	launched := object(t, c.ask("continueSession", `{"session_id":"`+id+`"}`))
	assert.Equal(t, []any{id, ""}, []any{launched["session_id"], launched["parent_session_id"]})
	w.ended(id)
	s := c.state(id)
	assert.Equal(t, []any{"completed", "Named", "later"}, []any{s["status"], s["title"], s["query"]})
	c.rejects("continueSession", `{"session_id":"`+id+`"}`, "query")
}

func TestToContinueAnArchivedSessionTakesItBack(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	first := w.finished(c.launch(`{"query":"one"}`))
	leaves := func(filter string) (got []string) {
		for _, s := range object(t, c.ask("getSessionLeaves", `{"filter":"`+filter+`"}`))["sessions"].([]any) {
			got = append(got, s.(map[string]any)["id"].(string))
		}
		return got
	}
	c.ask("archiveSession", `{"session_id":"`+first+`"}`)
	fork := c.sessionID("continueSession", `{"session_id":"`+first+`","query":"beside","fork":true}`)
	assert.Equal(t, []string{first}, leaves("archived"), "a fork does not restore the archived session")
	assert.Equal(t, []string{fork}, leaves("normal"))
	next := c.sessionID("continueSession", `{"session_id":"`+first+`","query":"two"}`)
	assert.Empty(t, leaves("archived"))
	assert.Equal(t, []string{next, fork}, leaves("normal"))
	w.ended(next)
	w.ended(fork)
}

func TestAPromptThatWasCancelledInTheQueueIsNoPartOfTheSession(t *testing.T) {
	reported := make(chan []string, 8)
	release := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		reported <- x.transcript(ctx)
		<-release
		return done
	})
	c := w.connect(frame.LSP)
	follow := func(id, query string) string {
		return c.sessionID("continueSession", `{"session_id":"`+id+`","query":"`+query+`"}`)
	}
	first := c.launch(`{"query":"one"}`)
	taken := follow(first, "taken back")
	c.ask("interruptSession", `{"session_id":"`+taken+`"}`)
	last := follow(taken, "two")
	close(release)
	w.ended(last)
	assert.Equal(t, []string{}, <-reported)
	assert.Equal(t, []string{"one"}, <-reported)
	r := answer[struct {
		Events []struct {
			Content, Status string
			SessionState    string `json:"session_state"`
		}
	}](c, "getConversation", `{"session_id":"`+last+`"}`)
	var got [][]string
	for _, e := range r.Events {
		got = append(got, []string{e.Content, e.Status, e.SessionState})
	}
	assert.Equal(t, [][]string{{"one", "", ""}, {"taken back", "cancelled", "cancelled"}, {"two", "", ""}}, got)
}

func TestInterruptSession(t *testing.T) {
	begun, answered := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		close(begun)
		defer func() { <-answered }() // agents take some time to end
		return until(ctx, x)
	})
	c := w.connect(frame.LSP)
	id := c.launch(`{"query":"go on"}`)
	<-begun // before it has an agent, a turn is interrupted at once
	assert.JSONEq(t, `{"success":true,"session_id":"`+id+`","status":"interrupting"}`, string(c.ask("interruptSession", `{"session_id":"`+id+`"}`)))
	close(answered)
	w.ended(id)
	r := answer[humanlayer.ConversationResult](c, "getConversation", `{"session_id":"`+id+`"}`)
	assert.Equal(t, "interrupted", r.Events[len(r.Events)-1].SessionState)
	e := c.failsAs("interruptSession", `{"session_id":"`+id+`"}`, -32603, "session_not_running")
	assert.Contains(t, e.Message, "interrupted")
}

func TestSnapshots(t *testing.T) {
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		before, after := "one\ntwo\n", "one\n2\n"
		x.report(catalog.EventFileChange, catalog.FileChange{Path: filepath.Join(x.CWD, "sub", "a.txt"), Before: &before, After: &after})
		x.report(catalog.EventFileChange, catalog.FileChange{Path: filepath.Join(x.CWD, "new.txt"), After: &after})
		return done
	})
	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "sub"), 0o700))
	c := w.connect(frame.LSP)
	id := w.finished(c.launch(`{"query":"edit","working_dir":"sub"}`))
	r := answer[humanlayer.SnapshotsResult](c, "getSessionSnapshots", `{"session_id":"`+id+`"}`)
	require.Len(t, r.Snapshots, 2)
	byName := map[string]int{filepath.Base(r.Snapshots[0].FilePath): 0, filepath.Base(r.Snapshots[1].FilePath): 1}
	edited, added := r.Snapshots[byName["a.txt"]], r.Snapshots[byName["new.txt"]]
	assert.Equal(t, "one\ntwo\n", edited.Content)
	assert.Contains(t, edited.Diff, "-two\n+2\n")
	assert.Nil(t, added.Before)
	assert.Equal(t, "one\n2\n", *added.After)
	assert.Contains(t, added.Diff, "--- /dev/null\n+++ b/new.txt\n")
	assert.Contains(t, r.Diff, edited.Diff)
	assert.Contains(t, r.Diff, added.Diff)
}

// Looking for the checkpoint of an empty list may take long. Other requests of the connection do not wait.
func TestOtherRequestsDoNotWaitForACheckpoint(t *testing.T) {
	var isSlow atomic.Bool
	looking, found := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(context.Context, *turn) catalog.ExecutePromptResult { return done }, func(o *hub.Options) {
		fakeOf(o).checkpoints = func(string) (checkpoint.Options, bool) {
			if isSlow.Load() {
				close(looking)
				<-found
			}
			return checkpoint.Options{}, false
		}
	})
	c := w.connect(frame.LSP)
	id := w.finished(c.launch(`{"query":"change nothing"}`))
	isSlow.Store(true)
	request := c.send("getSessionSnapshots", `{"session_id":"`+id+`"}`)
	<-looking
	c.ask("task.stats", "")
	close(found)
	assert.True(t, testkit.JSONAs[bool](t, c.wait(request).Result, "not_recorded"))
}

// A session has its plans and changed files in their places. HumanLayer's clients know no such
// events and do not receive them.
func TestSessionHasPlansAndChanges(t *testing.T) {
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		before, after, later := "one\ntwo\n", "one\n2\n", "1\n2\n3\n"
		file := filepath.Join(x.CWD, "a.txt")
		x.report(catalog.EventPlan, catalog.Plan{Entries: []domain.PlanEntry{{Content: "Look", Status: "in_progress"}, {Content: "Leap", Status: "pending"}}})
		x.report(catalog.EventFileChange, catalog.FileChange{Path: file, Before: &before, After: &after})
		x.say("Half.")
		x.report(catalog.EventMessageStop, catalog.MessageMark{})
		x.report(catalog.EventPlan, catalog.Plan{Entries: []domain.PlanEntry{{Content: "Look", Status: "completed"}, {Content: "Leap", Status: "pending"}}})
		x.report(catalog.EventFileChange, catalog.FileChange{Path: file, Before: &before, After: &later})
		return done
	})
	c := w.connect(frame.LSP)
	id := w.finished(c.launch(`{"query":"go"}`))
	events := func(c *client) (list []string) {
		r := answer[humanlayer.ConversationResult](c, "getConversation", `{"session_id":"`+id+`"}`)
		assert.Len(t, r.Events, r.Total)
		for _, e := range r.Events {
			assert.Positive(t, e.Seq)
			list = append(list, strings.ReplaceAll(strings.TrimSpace(e.EventType+" "+e.Content+" "+string(e.Data)), w.dir, "DIR"))
		}
		return list
	}
	said := []string{"message go", "message Half."}
	assert.Equal(t, []string{
		said[0],
		"plan - [x] Look\n- [ ] Leap " + `{"entries":[{"content":"Look","status":"completed"},{"content":"Leap","status":"pending"}]}`,
		"diff DIR/a.txt " + `{"path":"DIR/a.txt","added":3,"removed":2}`,
		said[1],
	}, events(c))
	assert.Equal(t, said, events(w.connect(frame.NDJSON)))
	hit := object(t, c.ask("session.search", `{"query":"leap"}`))["hits"].([]any)[0].(map[string]any)
	assert.Equal(t, "plan", hit["type"])
}

// Old clients read lines of 1 MiB. The hub shortens longer answers for them, or sends pages.
func TestLongSessionsFitIntoALine(t *testing.T) {
	long := strings.Repeat("long text ", 20_000)
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		for range 8 {
			x.report(catalog.EventMessageStart, catalog.MessageMark{})
			x.say(long)
			x.report(catalog.EventMessageStop, catalog.MessageMark{})
		}
		return done
	})
	old, lsp := w.connect(frame.NDJSON), w.connect(frame.LSP)
	id := w.finished(old.launch(`{"query":"talk"}`))
	read := func(c *client, params string) humanlayer.ConversationResult {
		return answer[humanlayer.ConversationResult](c, "getConversation", `{"session_id":"`+id+`"`+params+`}`)
	}
	cut := read(old, "")
	assert.Equal(t, 9, cut.Total)
	assert.Len(t, cut.Events, 9, "an old client does not page, so it gets all of them")
	assert.Contains(t, cut.Events[1].Content, "bytes left out]")
	assert.Nil(t, cut.NextOffset)

	var whole []string
	for offset := 0; ; {
		p := read(old, fmt.Sprintf(`,"limit":100,"offset":%d`, offset))
		for _, e := range p.Events {
			whole = append(whole, e.Content)
		}
		if p.NextOffset == nil {
			break
		}
		require.Greater(t, *p.NextOffset, offset)
		offset = *p.NextOffset
	}
	require.Len(t, whole, 9)
	for _, text := range whole[1:] {
		assert.Equal(t, long, text, "a client that pages gets whole texts")
	}
	assert.Less(t, old.longest, 1<<20)
	assert.Equal(t, long, read(lsp, "").Events[1].Content)

	task := object(t, old.ask("task.get", `{"taskId":"`+id+`"}`))
	assert.Contains(t, task["output"], "bytes left out]")
	assert.Less(t, old.longest, 1<<20)
}

// The response to a launch names the sessions that run in the same directory.
func TestSessionsThatWorkInTheSameDirectory(t *testing.T) {
	w := newWorld(t, until)
	c := w.connect(frame.LSP)
	elsewhere := t.TempDir()
	launch := func(more string) []any {
		t.Helper()
		tasks, _ := object(t, c.ask("launchSession", `{"query":"p"`+more+`}`))["beside"].([]any)
		return tasks
	}
	assert.Empty(t, launch(""))
	w.reaches("task-0001", domain.Running)
	assert.Empty(t, launch(fmt.Sprintf(`,"working_dir":%q`, elsewhere)))
	assert.Equal(t, []any{"task-0001"}, launch(""))
	assert.Empty(t, launch(`,"draft":true`))
}

// queueIs asserts the queued prompts in a method's result.
func queueIs(t *testing.T, result json.RawMessage, want ...string) {
	t.Helper()
	var r protocol.QueuedTurns
	require.NoError(t, json.Unmarshal(result, &r))
	got := []string{}
	for _, q := range r.Queued {
		got = append(got, q.Prompt)
	}
	assert.Equal(t, append([]string{}, want...), got)
}

func TestQueuedPromptsAreEditedAndMoved(t *testing.T) {
	type seen struct {
		prompt string
		before []string
	}
	reported := make(chan seen, 8)
	release := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		reported <- seen{x.Prompt, x.transcript(ctx)}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return done
	})
	c, other := w.connect(frame.LSP), w.connect(frame.LSP)
	other.ask("Subscribe", `{"event_types":["queue_changed"]}`)
	follow := func(id, query string, more string) string {
		return c.sessionID("continueSession", `{"session_id":"`+id+`","query":"`+query+`"`+more+`}`)
	}
	first := c.launch(`{"query":"one"}`)
	assert.Equal(t, seen{"one", []string{}}, <-reported)
	two := follow(first, "two", "")
	three := follow(first, "three", "")
	four := follow(first, "four", `,"priority":1`)
	queueIs(t, c.ask("session.get", `{"session":"`+first+`"}`), "four", "two", "three")
	event := object(t, other.event("queue_changed"))
	assert.Equal(t, []any{four, two, three}, event["order"], "a prompt with a higher priority precedes the others")

	queueIs(t, c.ask("turn.edit", `{"turn":"`+two+`","prompt":"2"}`), "four", "2", "three")
	event = object(t, other.event("queue_changed"))
	assert.Equal(t, []any{two, "2"}, []any{event["session_id"], event["content"]})
	assert.Equal(t, []any{four, two, three}, event["order"])

	queueIs(t, c.ask("turn.move", `{"turn":"`+three+`","before":"`+four+`"}`), "three", "four", "2")
	event = object(t, other.event("queue_changed"))
	assert.Equal(t, three, event["session_id"])
	assert.NotContains(t, event, "content")
	assert.Equal(t, []any{three, four, two}, event["order"])
	queueIs(t, c.ask("turn.move", `{"turn":"`+four+`"}`), "three", "2", "four")
	queueIs(t, c.ask("turn.move", `{"turn":"`+four+`","before":"`+four+`"}`), "three", "2", "four")
	queueIs(t, c.ask("turn.move", `{"turn":"`+two+`"}`), "three", "four", "2")

	close(release)
	w.ended(two)
	assert.Equal(t, seen{"three", []string{"one"}}, <-reported)
	assert.Equal(t, seen{"four", []string{"one", "three"}}, <-reported)
	assert.Equal(t, seen{"2", []string{"one", "three", "four"}}, <-reported)
	queueIs(t, c.ask("session.get", `{"session":"`+first+`"}`))

	// A started prompt does not change, and the session continues after the last turn.
	for _, e := range []wireError{
		c.fail("turn.edit", `{"turn":"`+two+`","prompt":"late"}`),
		c.fail("turn.move", `{"turn":"`+two+`"}`),
	} {
		assert.Equal(t, "bad_state", e.Data["kind"])
		assert.Contains(t, e.Message, "completed")
	}
	c.fail("turn.edit", `{"turn":"`+two+`","prompt":" "}`)
	five := follow("last", "five", "")
	w.ended(five)
	assert.Equal(t, seen{"five", []string{"one", "three", "four", "2"}}, <-reported)
	r := answer[struct{ Events []struct{ Content string } }](c, "getConversation", `{"session_id":"`+five+`"}`)
	assert.Equal(t, []struct{ Content string }{{"one"}, {"three"}, {"four"}, {"2"}, {"five"}}, r.Events)
	state := c.state(five)
	assert.Equal(t, two, state["parent_session_id"])
	leaves := answer[struct{ Sessions []struct{ ID string } }](c, "getSessionLeaves", `{}`)
	assert.Equal(t, []struct{ ID string }{{five}}, leaves.Sessions)
}
