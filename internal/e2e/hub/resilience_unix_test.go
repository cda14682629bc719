//go:build unix

package hub

import (
	"bytes"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// An unusable database stays unchanged, with all files beside it.
func TestABrokenDatabaseIsNotTouched(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, s *e2e.Site)
		why   string
	}{
		{"random bytes", func(t *testing.T, s *e2e.Site) {
			noise := make([]byte, 64<<10)
			crand.Read(noise)
			require.NoError(t, os.WriteFile(s.Database(), noise, 0o600))
		}, "damaged"},
		{"a few bytes", func(t *testing.T, s *e2e.Site) {
			require.NoError(t, os.Truncate(s.Database(), 50))
		}, "damaged"},
		{"the first page alone", func(t *testing.T, s *e2e.Site) {
			require.NoError(t, os.Truncate(s.Database(), 4096))
		}, "damaged"},
		{"half of it", func(t *testing.T, s *e2e.Site) {
			info, err := os.Stat(s.Database())
			require.NoError(t, err)
			require.NoError(t, os.Truncate(s.Database(), info.Size()/2))
		}, "damaged"},
		{"pages of noise behind the first", func(t *testing.T, s *e2e.Site) {
			content := []byte(e2e.ReadFile(t, s.Database()))
			crand.Read(content[4096:])
			require.NoError(t, os.WriteFile(s.Database(), content, 0o600))
		}, "damaged"},
		{"a newer format", func(t *testing.T, s *e2e.Site) {
			db := s.OpenDatabase("")
			defer db.Close()
			_, err := db.Exec("PRAGMA user_version = 4711")
			require.NoError(t, err)
		}, "newer"},
		{"a directory in its place", func(t *testing.T, s *e2e.Site) {
			require.NoError(t, os.Remove(s.Database()))
			require.NoError(t, os.Mkdir(s.Database(), 0o700))
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := e2e.NewEditorSite(e2e.Parallel(t))
			c.Runs("tools:200 stream:100")
			c.Leave()
			test.spoil(t, s)
			before := contents(t, s.State())

			c = s.Start()
			c.RequireCore()
			c.RequireUnavailable("duet-rpc doctor")
			c.RequireUnavailable(test.why)
			c.RequireDegraded("duet-rpc doctor")
			c.RequireCore()
			c.Leave()
			after := contents(t, s.State())
			for _, name := range []string{"lock", "starting", "stopped", "daemon.log", "socket", "project.json"} {
				delete(before, filepath.Join(s.State(), name))
				delete(after, filepath.Join(s.State(), name))
			}
			assert.Equal(t, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
			for path, old := range before {
				assert.True(t, bytes.Equal(old, after[path]), "%s has changed", path)
			}
		})
	}
}

// contents returns the files under a directory.
func contents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = os.ReadFile(path)
		return err
	}))
	return files
}

// The home directory and an unwritable directory can be projects. The program puts no state into
// them.
func TestNothingIsPutIntoTheTree(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		place func(t *testing.T, s *e2e.Site)
	}{
		{"the home directory", func(_ *testing.T, s *e2e.Site) { s.Root = s.Home }},
		{"a directory that cannot be written", func(t *testing.T, s *e2e.Site) { readOnly(t, s.Root) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			test.place(t, s)
			c := s.Open()
			begun := c.Runs("quiet")
			c.Leave()
			require.NoDirExists(t, filepath.Join(s.Root, ".duet"))
			e2e.RequireMode(t, s.State(), 0o700)

			c = s.Start()
			assert.Equal(t, "completed", c.Session(begun.SessionID).State, "the next process finds the session")
			c.Leave()
		})
	}
}

// pagesOf returns the leaf pages of a table in their order, and the page size.
func pagesOf(t *testing.T, s *e2e.Site, table string) (pages []int64, size int64) {
	t.Helper()
	db := s.OpenDatabase("?mode=ro")
	defer db.Close()
	require.NoError(t, db.QueryRow("PRAGMA page_size").Scan(&size))
	rows, err := db.Query("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path", table)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var page int64
		require.NoError(t, rows.Scan(&page))
		pages = append(pages, page)
	}
	require.NoError(t, rows.Err())
	return pages, size
}

// change overwrites bytes of the database at an offset.
func change(t *testing.T, s *e2e.Site, at int64, to []byte) {
	t.Helper()
	f, err := os.OpenFile(s.Database(), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt(to, at)
	require.NoError(t, err)
}

// A subscriber to a damaged log receives the readable events and a report of the missing ones.
// Health points to `duet-rpc doctor`.
func TestDamagedLogIsTold(t *testing.T) {
	t.Parallel()
	for name, pick := range map[string]func(pages []int64) []int64{
		"one page":   func(p []int64) []int64 { return p[len(p)/2 : len(p)/2+1] },
		"some pages": func(p []int64) []int64 { return []int64{p[2], p[3], p[4], p[len(p)/2]} },
		"nearly all": func(p []int64) []int64 { return p[1 : len(p)-1] },
	} {
		for kind, noise := range map[string]byte{"zeros": 0, "ones": 0xff, "text": 'x'} {
			if name == "some pages" && kind != "ones" {
				continue
			}
			t.Run(name+" of "+kind, func(t *testing.T) {
				s, c := e2e.NewEditorSite(e2e.Parallel(t))
				c.Runs("tools:60 stream:100")
				c.Leave()
				whole := lasting(c.Seen(), 1<<60)
				pages, size := pagesOf(t, s, "events")
				require.Greater(t, len(pages), 10)
				for _, page := range pick(pages) {
					change(t, s, (page-1)*size, bytes.Repeat([]byte{noise}, int(size)))
				}

				c = s.Open()
				reported := c.Await("the report of the damaged log", func(e e2e.Event) bool { return e.Type == "log_damaged" })
				assert.Contains(t, reported.Data.Message, "duet-rpc doctor")
				// New events arrive as before, if the database can store them.
				var begun e2e.Launched
				if c.Try("launchSession", object{"query": "quiet"}, &begun) == nil {
					c.AwaitEnd(begun.SessionID)
				}
				missing, last := make(map[int64]bool), int64(0)
				for _, e := range c.Seen() {
					if e.Type != "log_damaged" || e.Seq == 0 {
						continue
					}
					for seq := e.Data.FromSeq; seq <= e.Data.ToSeq; seq++ {
						missing[seq] = true
					}
					last = e.Data.ToSeq
				}
				assert.NotEmpty(t, missing)
				if name != "nearly all" {
					assert.Less(t, len(missing), len(whole), "most events are readable")
				}
				now := lasting(c.Seen(), 1<<60)
				for seq, e := range whole {
					if !missing[seq] {
						assert.Equal(t, e, now[seq], "event %d is neither unchanged nor reported as missing", seq)
					}
				}
				assert.NotZero(t, last)
				requireRising(t, c.Seen())
				c.RequireDegraded("duet-rpc doctor")
				log := e2e.ReadFile(t, filepath.Join(s.State(), "daemon.log"))
				assert.Equal(t, 1, strings.Count(log, "the database is damaged"), "%s", log)
				c.CloseStdin()
				c.RequireGoodEnd()
			})
		}
	}
}

// The program sends a damaged text of the database as valid UTF-8 and JSON.
func TestDamagedTextsAreMended(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]struct{ old, new string }{
		"UTF-8 in JSON": {`"type":"message","key"`, "\"type\":\"mess\xff\xc3e\",\"key\""},
		"no JSON":       {`"type":"message","key"`, `"type" x"message,"key"`},
		"a plain text":  {"the words of the prompt", "the words\xff of th\xf0prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := e2e.NewEditorSite(e2e.Parallel(t))
			session := c.Launch("quiet the words of the prompt", "").SessionID
			c.AwaitEnd(session)
			c.Leave()
			content := e2e.ReadFile(t, s.Database())
			require.Len(t, damage.new, len(damage.old))
			require.Contains(t, content, damage.old)
			for at := 0; ; at += len(damage.old) {
				next := strings.Index(content[at:], damage.old)
				if next < 0 {
					break
				}
				at += next
				change(t, s, int64(at), []byte(damage.new))
			}

			c = s.Open()
			c.AwaitEnd(session)
			var r struct{ Events []object }
			c.Call("getConversation", object{"session_id": session}, &r)
			assert.NotEmpty(t, r.Events)
			for _, method := range []string{"listSessions", "fetchApprovals", "task.list"} {
				c.Call(method, object{}, nil)
			}
			c.Call("session.search", object{"query": "words"}, nil)
			c.Call("Subscribe", object{"since": 0}, nil)
			c.RequireDegraded("duet-rpc doctor")
			out, err := s.Command("doctor")
			require.Error(t, err)
			assert.Contains(t, out, "is damaged")
			c.Leave()
		})
	}
}

// Rounds of TestKillLosesNothing: few in the default tier, and enough for rare moments in `make
// soak`.
const (
	fewKills  = 4
	manyKills = 50
	// killsAProject is the number of rounds in one project. Each round checks all earlier reports
	// of its project.
	killsAProject = 12
)

// A kill at any moment loses no reported event and leaves no process. The next process continues
// with the state.
func TestKillLosesNothing(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	rounds := fewKills
	if testkit.Soak {
		rounds = manyKills
	}
	for done := 0; done < rounds && !t.Failed(); done += killsAProject {
		killOften(t, rand.New(rand.NewPCG(seed, uint64(done))), done, min(rounds-done, killsAProject))
	}
}

// killOften kills the program in one project n times.
func killOften(t *testing.T, random *rand.Rand, done, n int) {
	k := &kills{t: t, site: e2e.NewSite(t), rand: random, ledger: newLedger()}
	for i := range n {
		if !t.Run(fmt.Sprintf("kill %d", done+i+1), k.round) {
			return
		}
	}
	k.t = t
	c := k.start()
	k.verify(c)
	c.Leave()
	t.Logf("%d turns, %d events, %d approvals", len(k.turns), k.lastSeq, len(k.asked))
	k.site.RequireNobody("at the end")
}

// A ledger records the hub's reports to a client, which later hubs must keep.
type ledger struct {
	events  map[int64]e2e.Event   // durable events
	texts   map[string]string     // by message, from its deltas
	turns   map[string]*toldTurn  // by HumanLayer's session_id
	tasks   map[string]string     // session by task
	asked   map[string]*toldAsk   // by approval
	answers map[string]acceptance // sent answers, by approval
	lastSeq int64
	topTask int
}

type toldTurn struct {
	e2e.Launched
	query string
	state string // the latest reported state
}

type toldAsk struct {
	e2e.Event
	resolved string // the reported decision
}

type acceptance int

const (
	_        acceptance = iota
	unsure              // the reply never came
	accepted            // the reply came
)

func newLedger() *ledger {
	return &ledger{
		events: make(map[int64]e2e.Event), texts: make(map[string]string), turns: make(map[string]*toldTurn), tasks: make(map[string]string),
		asked: make(map[string]*toldAsk), answers: make(map[string]acceptance),
	}
}

// transient reports whether an event may differ in a replay.
func transient(e e2e.Event) bool {
	return e.Seq == 0 || e.Type == "message_delta" || e.Type == "thinking_delta" || e.Type == "lagged"
}

// textsOf returns the texts of messages, from their deltas up to the first gap.
func textsOf(events []e2e.Event) map[string]string {
	texts := make(map[string]string)
	for _, e := range events {
		switch e.Type {
		case "lagged": // later deltas are incomplete
			return texts
		case "message_delta", "thinking_delta":
			texts[e.Data.SessionID+" "+e.Data.MessageID] += e.Data.Delta
		}
	}
	return texts
}

// take records the events of a client that subscribed from the beginning.
func (l *ledger) take(t testing.TB, events []e2e.Event) {
	last := int64(0)
	for _, e := range events {
		if e.Seq != 0 {
			require.Greater(t, e.Seq, last, "event numbers rise")
			last = e.Seq
		}
		l.lastSeq = max(l.lastSeq, e.Seq)
		if !transient(e) {
			l.events[e.Seq] = e
		}
		switch e.Type {
		case "session_status_changed":
			turn := l.turn(e.Data.SessionID)
			turn.state, turn.TaskID = e.Data.State, e.Data.TaskID
			l.number(t, turn.TaskID, e.Data.SessionID)
		case "new_approval":
			if l.asked[e.Data.ApprovalID] == nil {
				l.asked[e.Data.ApprovalID] = &toldAsk{Event: e}
			}
		case "approval_resolved":
			l.asked[e.Data.ApprovalID].resolved = e.Data.Decision
		}
	}
	for key, text := range textsOf(events) {
		if len(text) > len(l.texts[key]) {
			l.texts[key] = text
		}
	}
}

func (l *ledger) turn(session string) *toldTurn {
	turn := l.turns[session]
	if turn == nil {
		turn = &toldTurn{Launched: e2e.Launched{SessionID: session}}
		l.turns[session] = turn
	}
	return turn
}

// number records the session of a task, and requires that no other session has the same task.
func (l *ledger) number(t testing.TB, task, session string) {
	if owner := l.tasks[task]; owner != "" {
		require.Equal(t, owner, session, "task %s has two sessions", task)
	}
	l.tasks[task] = session
	n, err := strconv.Atoi(strings.TrimPrefix(task, "task-"))
	require.NoError(t, err)
	l.topTask = max(l.topTask, n)
}

// accepted records a turn that a response named.
func (l *ledger) accepted(t testing.TB, begun e2e.Launched, query string) {
	known := l.turns[begun.SessionID]
	if known == nil {
		n, err := strconv.Atoi(strings.TrimPrefix(begun.TaskID, "task-"))
		require.NoError(t, err)
		require.Greater(t, n, l.topTask, "the hub never reuses a task number")
	}
	turn := l.turn(begun.SessionID)
	turn.Launched, turn.query = begun, query
	l.number(t, begun.TaskID, begun.SessionID)
}

// kills is the state of TestKillLosesNothing.
type kills struct {
	*ledger
	t    testing.TB
	site *e2e.Site
	rand *rand.Rand
}

// start starts the program and waits for the store.
func (k *kills) start() *e2e.Client {
	c := k.site.Start()
	c.T = k.t
	c.Call("task.stats", object{}, nil)
	return c
}

// round starts the program, checks earlier reports, uses the program and kills it at a random
// moment.
func (k *kills) round(t *testing.T) {
	k.t = t
	c := k.start()
	k.verify(c)
	k.goOn(c)

	// From here on the program may die at any moment.
	after := time.Duration(k.rand.Int64N(int64(700 * time.Millisecond)))
	killed := make(chan struct{})
	timer := time.AfterFunc(after, func() {
		defer close(killed)
		_ = c.Cmd.Process.Kill()
		if hub, err := os.FindProcess(k.site.LockHolder()); err == nil {
			_ = hub.Kill()
		}
	})
	defer func() {
		if !timer.Stop() {
			<-killed // a late timer would kill the hub of the next round
		}
	}()
	k.work(c)
	<-c.Ended
	k.site.Clients.Add(-1)
	c.RequireGoodEnd()
	k.take(t, c.Seen())
}

// work sends random requests until the program has gone.
func (k *kills) work(c *e2e.Client) {
	prompts := []string{"permit:3 stream:200", "", "tools:50", "stream:2000@2000", "permit:1 edit", "quiet"}
	var asked []string
	for i := 0; ; i++ {
		var err error
		switch choice := k.rand.IntN(10); {
		case i < 3 || choice < 4 && i < 8: // queued runs make each round longer
			query := strings.TrimSpace(fmt.Sprintf("%s number %d", prompts[k.rand.IntN(len(prompts))], i))
			var begun e2e.Launched
			if err = c.Try("launchSession", object{"query": query}, &begun); err == nil {
				k.accepted(k.t, begun, query)
			}
		case choice < 7: // answer an open question
			asked = asked[:0]
			for _, e := range c.Seen() {
				if e.Type == "new_approval" && k.answers[e.Data.ApprovalID] == 0 {
					asked = append(asked, e.Data.ApprovalID)
				}
			}
			if len(asked) > 0 {
				id := asked[k.rand.IntN(len(asked))]
				k.answers[id] = unsure
				if err = c.Try("sendDecision", object{"approval_id": id, "decision": "approve"}, nil); err == nil {
					k.answers[id] = accepted
				}
			}
		case choice < 8:
			var begun e2e.Launched
			for session, turn := range k.turns {
				if turn.state == "interrupted" {
					if err = c.Try("continueSession", object{"session_id": session, "query": "continue"}, &begun); err == nil {
						k.accepted(k.t, begun, "continue")
					}
					break
				}
			}
		default: // let it work
			done := make(chan struct{})
			time.AfterFunc(time.Duration(k.rand.IntN(100))*time.Millisecond, func() { close(done) })
			select {
			case <-done:
			case <-c.Ended:
			}
			err = c.Try("ping", object{}, nil)
		}
		if errors.Is(err, e2e.ErrGone) {
			return
		}
		if refused, ok := errors.AsType[*e2e.WireError](err); ok { // the question may be closed already
			require.NotEqual(k.t, -32603, refused.Code, "%v", refused)
		}
	}
}

// verify compares the program with its earlier reports.
func (k *kills) verify(c *e2e.Client) {
	t := k.t
	t.Helper()
	pending := c.Pending()
	replayed := k.replay(c)

	// All earlier events are unchanged.
	again := make(map[int64]e2e.Event)
	for _, e := range replayed {
		again[e.Seq] = e
	}
	for seq, e := range k.events {
		_, there := again[seq]
		require.True(t, there, "event %d is gone: %s %s", seq, e.Type, e.Raw)
		require.Equal(t, e.Type, again[seq].Type)
		require.JSONEq(t, string(e.Raw), string(again[seq].Raw), "event %d", seq)
	}
	texts := textsOf(replayed)
	for key, text := range k.texts {
		require.True(t, strings.HasPrefix(texts[key], text), "message %s was %.200q, it is %.200q", key, text, texts[key])
	}

	k.verifyTurns(c)
	k.verifyApprovals(c, pending)
	k.requireGapless()
	k.take(t, replayed)
}

// replay subscribes from the beginning and returns all events.
func (k *kills) replay(c *e2e.Client) []e2e.Event {
	k.t.Helper()
	last := c.Status().Subsystems.Store.LastSeq
	require.GreaterOrEqual(k.t, last, k.lastSeq)
	c.Subscribe()
	if last > 0 {
		c.Await("the replay of all events", func(e e2e.Event) bool { return e.Seq >= last })
	}
	return c.Seen()
}

// verifyTurns requires that each turn exists. A turn that had an agent must have ended, and an
// interrupted turn is ORPHANED.
func (k *kills) verifyTurns(c *e2e.Client) {
	t := k.t
	t.Helper()
	for session, turn := range k.turns {
		shown := c.Session(session)
		var task struct {
			ID        string `json:"id"`
			SessionID string `json:"session_id"`
			RunID     string `json:"run_id"`
			Prompt    string `json:"prompt"`
		}
		c.Call("task.get", object{"taskId": turn.TaskID}, &task)
		require.Equal(t, session, task.SessionID)
		require.Equal(t, turn.TaskID, task.ID)
		if turn.RunID != "" { // a reply named it
			require.Equal(t, turn.RunID, task.RunID)
			require.Equal(t, turn.query, task.Prompt)
			require.Equal(t, turn.ThreadID, shown.ThreadID)
		}
		switch {
		case e2e.Ended(turn.state):
			require.Equal(t, turn.state, shown.State, session)
		case turn.state != "" && turn.state != "queued" && turn.state != "draft": // it had an agent
			require.True(t, e2e.Ended(shown.State), "%s was %s, it is %s", session, turn.state, shown.State)
		}
		if shown.State == "interrupted" {
			require.Equal(t, "ORPHANED", shown.ErrorCode, session)
			require.NotEmpty(t, shown.Error)
		}
		for key, text := range k.texts {
			if owner, _, _ := strings.Cut(key, " "); owner == session && e2e.Ended(shown.State) {
				require.Contains(t, c.Said(session), text, "message %s", key)
			}
		}
	}
}

// verifyApprovals requires that questions keep their input and their decisions, and that open
// questions stay open or are cancelled.
func (k *kills) verifyApprovals(c *e2e.Client, pending map[string]e2e.ShownApproval) {
	t := k.t
	t.Helper()
	for id, ask := range k.asked {
		shown := c.Approval(id)
		require.JSONEq(t, string(ask.Data.ToolInput), string(shown.ToolInput))
		switch {
		case ask.resolved != "":
			require.Equal(t, ask.resolved, shown.Status)
		case k.answers[id] == accepted:
			require.Equal(t, "approved", shown.Status)
		case k.answers[id] == unsure:
			require.Contains(t, []string{"approved", "pending"}, shown.Status)
			if shown.Status == "pending" {
				delete(k.answers, id)
			}
		}
		if ask.resolved == "" && k.answers[id] == 0 && shown.Status == "pending" {
			require.Contains(t, pending, id)
			require.True(t, pending[id].Stale, "the question %s", ask.Raw)
		}
		if ask.resolved == "" && k.answers[id] == 0 && shown.Status != "pending" {
			// The turn may have ended, or asked again, without a report to the client.
			require.Equal(t, "cancelled", shown.Status, "the question %s", ask.Raw)
		}
	}
}

// requireGapless requires that the database is sound and that its event numbers have no gaps.
func (k *kills) requireGapless() {
	t := k.t
	t.Helper()
	db := k.site.OpenDatabase("?mode=ro")
	defer db.Close()
	var n, low, high int64
	require.NoError(t, db.QueryRow("SELECT count(*), coalesce(min(seq), 1), coalesce(max(seq), 0) FROM events").Scan(&n, &low, &high))
	require.Equal(t, high-low+1, n, "events are numbered without gaps")
	require.EqualValues(t, 1, low)
	var check string
	require.NoError(t, db.QueryRow("PRAGMA quick_check").Scan(&check))
	require.Equal(t, "ok", check)
}

// goOn answers one stale question and continues one interrupted turn, each to the end of the new turn.
func (k *kills) goOn(c *e2e.Client) {
	t := k.t
	t.Helper()
	for id, ask := range k.asked {
		if ask.resolved != "" || k.answers[id] != 0 || !c.Pending()[id].Stale {
			continue
		}
		k.answers[id] = unsure
		c.Approve(id)
		k.answers[id] = accepted
		k.finishSession(c, c.Approval(id).ThreadID, ask)
		k.take(t, c.Seen())
		break
	}
	for session, turn := range k.turns {
		shown := c.Session(session)
		if shown.State != "interrupted" {
			continue
		}
		begun := c.Begins("continueSession", object{"session_id": session, "query": "continue"})
		k.accepted(t, begun, "continue")
		end := k.finish(c, begun.SessionID)
		assert.Equal(t, "completed", end.Data.State, "%s continued: %s", turn.query, end.Raw)
		k.take(t, c.Seen())
		break
	}
}

// finish approves all questions of a session until its end.
func (k *kills) finish(c *e2e.Client, session string) e2e.Event {
	k.t.Helper()
	end := c.ApproveAll(session)
	for _, e := range c.Seen() {
		if e.Type == "new_approval" && e.Data.SessionID == session {
			k.answers[e.Data.ApprovalID] = accepted
		}
	}
	return end
}

// finishSession requires that the answer to a stale question resumes its session, and that the agent
// does not repeat the question.
func (k *kills) finishSession(c *e2e.Client, thread string, ask *toldAsk) {
	t := k.t
	t.Helper()
	var last e2e.Launched
	e := c.Await("a turn after the answer", func(e e2e.Event) bool {
		return e.Seq > k.lastSeq && e.Type == "session_status_changed" && e.Data.ThreadID == thread && (e.Data.State == "running" || e2e.Ended(e.Data.State))
	})
	last.SessionID = e.Data.SessionID
	end := k.finish(c, last.SessionID)
	assert.Equal(t, "completed", end.Data.State, "%s", end.Raw)
	for _, e := range c.Seen() {
		if e.Type == "new_approval" && e.Data.SessionID == last.SessionID && e.Data.ToolName == ask.Data.ToolName {
			assert.NotEqual(t, compact(t, ask.Data.ToolInput), compact(t, e.Data.ToolInput), "the agent repeated the question")
		}
	}
}

func compact(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(raw, &v))
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// killsInMidStream is the number of kills by TestResumedTextIsWhole in `make soak`, and
// fewKillsInMidStream in the default tier.
const (
	killsInMidStream    = 20
	fewKillsInMidStream = 2
)

// said returns a session's text, built from its deltas.
func said(t testing.TB, events []e2e.Event, session string) string {
	var text strings.Builder
	for _, e := range events {
		require.NotEqual(t, "lagged", e.Type, "%s", e.Raw)
		if e.Type == "message_delta" && e.Data.SessionID == session {
			text.WriteString(e.Data.Delta)
		}
	}
	return text.String()
}

// After a kill during agents' output, an editor resumes after its last event number. It then has
// the whole text of the transcript. With one agent it has no text twice.
func TestResumedTextIsWhole(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	since, again := int64(0), 0
	rounds := fewKillsInMidStream
	if testkit.Soak {
		rounds = killsInMidStream
	}
	for round := range rounds {
		c := s.Start()
		c.Call("Subscribe", object{"since": since}, nil)
		var talking []e2e.Launched
		for range 1 + round%2 {
			talking = append(talking, c.Launch("quiet stream:1000000@1500", ""))
		}
		mark := fmt.Sprintf("chunk %d ", 20+17*round) // at another moment each time
		for _, l := range talking {
			var text strings.Builder
			c.Await("text", func(e e2e.Event) bool {
				if e.Type == "message_delta" && e.Data.SessionID == l.SessionID {
					text.WriteString(e.Data.Delta)
				}
				return strings.Contains(text.String(), mark)
			})
		}
		c.Crash()
		before := c.Seen()
		since = lastSeq(before)

		c = s.Start()
		c.Call("Subscribe", object{"since": since}, nil)
		for _, l := range talking {
			end := c.AwaitEnd(l.SessionID)
			assert.Equal(t, "ORPHANED", end.Data.ErrorCode)
			since = max(since, end.Seq)
			whole, first, second := c.Said(l.SessionID), said(t, before, l.SessionID), said(t, c.Seen(), l.SessionID)
			if len(talking) == 1 {
				require.Equal(t, whole, first+second, "round %d", round)
				continue
			}
			require.True(t, strings.HasPrefix(whole, first), "round %d", round)
			require.True(t, strings.HasSuffix(whole, second), "round %d", round)
			require.GreaterOrEqual(t, len(first)+len(second), len(whole), "round %d: text is missing", round)
			if len(first)+len(second) > len(whole) {
				again++
			}
		}
		requireRising(t, c.Seen())
		c.Leave()
		since = max(since, lastSeq(c.Seen()))
	}
	t.Logf("%d times some text came twice", again)
}

// The end of an editor interrupts its turns. The next editor finds their output and their questions.
func TestEndOfInputInterruptsTurns(t *testing.T) {
	s, c := e2e.NewEditorSite(e2e.Parallel(t))
	asking, question := c.Asks("permit:2", "")
	streaming := c.Launch("stream:1000000@200", "")
	c.AwaitText(streaming)
	hanging := c.Launch("hang", "") // ignores the cancellation
	c.AwaitText(hanging)
	c.AwaitState(asking.SessionID, "waiting_input")
	c.Leave()
	s.RequireNobody("after the end of input")

	c = s.Open()
	for _, l := range []e2e.Launched{asking, streaming, hanging} {
		shown := c.Session(l.SessionID)
		assert.Equal(t, "interrupted", shown.State)
		assert.Equal(t, "SHUTDOWN", shown.ErrorCode)
		assert.NotEmpty(t, shown.Error)
	}
	require.Contains(t, c.Pending(), question.Data.ApprovalID)
	assert.True(t, c.Pending()[question.Data.ApprovalID].Stale)
	resumed := c.Next(asking, "continue")
	assert.Equal(t, "completed", c.ApproveAll(resumed.SessionID).Data.State)
	assert.Empty(t, c.Pending(), "a repeated question is open only once")
	c.Leave()
}

// A recordedSite is a site with an agent that records its approved actions.
type recordedSite struct {
	*e2e.Site
	approved map[string]int // number of approvals that the test sent, by thing
}

func newRecordedSite(t testing.TB) *recordedSite {
	s := &recordedSite{e2e.NewSite(t), make(map[string]int)}
	binary, err := os.Executable()
	require.NoError(t, err)
	s.Agents(fmt.Sprintf(`
[agents.recorder]
driver = "acp"
command = [%q]
env = { %s = %q }
`, binary, e2e.RecordingAgent, s.Home))
	return s
}

// done returns how often the agent did a thing, which must not exceed the approvals.
func (s *recordedSite) done(thing string) (n int) {
	s.T.Helper()
	text, err := os.ReadFile(filepath.Join(s.Home, e2e.RecordFile))
	if !os.IsNotExist(err) {
		require.NoError(s.T, err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == thing {
			n++
		}
	}
	require.LessOrEqual(s.T, n, s.approved[thing], "the agent did %s more often than the user approved it", thing)
	return n
}

// ask launches the agent, and waits for its question.
func (s *recordedSite) ask(c *e2e.Client, how, thing string) (e2e.Launched, e2e.Event) {
	l := c.Launch(how+" "+thing, "recorder")
	return l, c.AwaitQuestion(l.SessionID)
}

func (s *recordedSite) approve(c *e2e.Client, thing, id string) {
	s.T.Helper()
	s.approved[thing]++ // first: the agent may act before the response
	c.Approve(id)
}

// questionOf returns the open question about a thing, if there is one.
func questionOf(c *e2e.Client, thing string) (e2e.ShownApproval, bool) {
	for _, a := range c.Pending() {
		if strings.Contains(string(a.ToolInput), fmt.Sprintf("%q", "do "+thing)) {
			return a, true
		}
	}
	return e2e.ShownApproval{}, false
}

// requireCarriedOut requires that the agent does an approved thing, or that its question is open
// again with a reason. It approves the question again until the agent does the thing.
func (s *recordedSite) requireCarriedOut(c *e2e.Client, thing string) (openedAgain bool) {
	s.T.Helper()
	var a e2e.ShownApproval
	require.Eventually(s.T, func() bool {
		var open bool
		if a, open = questionOf(c, thing); open {
			openedAgain = true
			assert.NotEmpty(s.T, a.Reopened, "the repeated question has no reason")
			assert.NotEmpty(s.T, a.Reopens)
			assert.True(s.T, a.Stale)
			s.approve(c, thing, a.ID)
			return false
		}
		return s.done(thing) > 0
	}, time.Minute, 5*time.Millisecond, "the user approved %s, but the agent neither did it nor asked again", thing)
	return openedAgain
}

// requireTold requires that the agent took an answer, or that the approval names the question that
// repeats it.
func (s *recordedSite) requireTold(c *e2e.Client, id string) {
	s.T.Helper()
	a := c.Approval(id)
	assert.Equal(s.T, "approved", a.Status)
	assert.NotEqual(s.T, a.TakenAt != "", a.Reopening != "", "%+v", a)
}

// killDelays are the times between an approval and a kill. They lie before, during and after the
// action of an agent that acts at once, within a millisecond or two.
var killDelays = func() []time.Duration {
	if !testkit.Soak {
		return []time.Duration{0, 2 * time.Millisecond}
	}
	return []time.Duration{
		0, 100 * time.Microsecond, 300 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond,
	}
}()

// awaitQuiet waits until no turn is running or queued.
func awaitQuiet(c *e2e.Client) {
	c.T.Helper()
	require.Eventually(c.T, func() bool {
		var stats struct{ Running, Queued int }
		c.Call("task.stats", object{}, &stats)
		return stats.Running == 0 && stats.Queued == 0
	}, time.Minute, 5*time.Millisecond)
}

// After an acknowledged answer a kill loses nothing: the agent does the approved thing, or Duet
// asks again.
func TestAnAnswerOutlivesTheHub(t *testing.T) {
	s := newRecordedSite(e2e.Parallel(t))
	again := 0
	for i, how := range []string{"plainly", "slowly", "silently"} {
		for j, delay := range killDelays {
			thing := fmt.Sprintf("thing-%d-%d", i, j)
			c := s.Open()
			_, question := s.ask(c, how, thing)
			s.approve(c, thing, question.Data.ApprovalID)
			time.Sleep(delay) // machine: any moment will do
			c.Crash()

			c = s.Start()
			if s.requireCarriedOut(c, thing) {
				again++
			}
			awaitQuiet(c)
			c.Crash()
			c = s.Start() // nothing is left to do
			_, open := questionOf(c, thing)
			assert.False(t, open, "the agent did %s %d times", thing, s.done(thing))
			s.requireTold(c, question.Data.ApprovalID)
			c.Leave()
		}
	}
	t.Logf("Duet asked %d of %d questions again", again, 3*len(killDelays))
}
