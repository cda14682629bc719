//go:build unix

package main_test

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
	_ "modernc.org/sqlite" // the driver
)

// A database that cannot be used is left as it is, byte for byte, with all
// that lies beside it.
func TestABrokenDatabaseIsNotTouched(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, s *site)
		why   string
	}{
		{"random bytes", func(t *testing.T, s *site) {
			noise := make([]byte, 64<<10)
			crand.Read(noise)
			require.NoError(t, os.WriteFile(s.database(), noise, 0o600))
		}, "damaged"},
		{"a few bytes", func(t *testing.T, s *site) {
			require.NoError(t, os.Truncate(s.database(), 50))
		}, "damaged"},
		{"the first page alone", func(t *testing.T, s *site) {
			require.NoError(t, os.Truncate(s.database(), 4096))
		}, "damaged"},
		{"half of it", func(t *testing.T, s *site) {
			info, err := os.Stat(s.database())
			require.NoError(t, err)
			require.NoError(t, os.Truncate(s.database(), info.Size()/2))
		}, "damaged"},
		{"pages of noise behind the first", func(t *testing.T, s *site) {
			content := []byte(readFile(t, s.database()))
			crand.Read(content[4096:])
			require.NoError(t, os.WriteFile(s.database(), content, 0o600))
		}, "damaged"},
		{"a newer format", func(t *testing.T, s *site) {
			db := s.openDatabase("")
			defer db.Close()
			_, err := db.Exec("PRAGMA user_version = 4711")
			require.NoError(t, err)
		}, "newer"},
		{"a directory in its place", func(t *testing.T, s *site) {
			require.NoError(t, os.Remove(s.database()))
			require.NoError(t, os.Mkdir(s.database(), 0o700))
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := newEditorSite(parallel(t))
			c.runs("tools:200 stream:100")
			c.leave()
			test.spoil(t, s)
			before := contents(t, s.state())

			c = s.start()
			c.requireCore()
			c.requireUnavailable("duet-rpc doctor")
			c.requireUnavailable(test.why)
			c.requireDegraded("duet-rpc doctor")
			c.requireCore()
			c.leave()
			after := contents(t, s.state())
			for _, name := range []string{"lock", "starting", "stopped", "daemon.log", "socket", "project.json"} {
				delete(before, filepath.Join(s.state(), name))
				delete(after, filepath.Join(s.state(), name))
			}
			assert.Equal(t, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
			for path, old := range before {
				assert.True(t, bytes.Equal(old, after[path]), "%s has changed", path)
			}
		})
	}
}

// contents are the files under a directory.
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

// The home directory and one that cannot be written are projects as any other, if one says so.
func TestNothingIsPutIntoTheTree(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		place func(t *testing.T, s *site)
	}{
		{"the home directory", func(_ *testing.T, s *site) { s.root = s.home }},
		{"a directory that cannot be written", func(t *testing.T, s *site) { readOnly(t, s.root) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(parallel(t))
			test.place(t, s)
			c := s.open()
			begun := c.runs("quiet")
			c.leave()
			require.NoDirExists(t, filepath.Join(s.root, ".duet"))
			requireMode(t, s.state(), 0o700)

			c = s.start()
			assert.Equal(t, "completed", c.session(begun.SessionID).State, "it is found again")
			c.leave()
		})
	}
}

// pagesOf are the pages of a database that hold the rows of a table, in their
// order.
func pagesOf(t *testing.T, s *site, table string) (pages []int64, size int64) {
	t.Helper()
	db := s.openDatabase("?mode=ro")
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

// change changes what some bytes of a database are.
func change(t *testing.T, s *site, at int64, to []byte) {
	t.Helper()
	f, err := os.OpenFile(s.database(), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt(to, at)
	require.NoError(t, err)
}

// A subscriber to a log of which pages are damaged learns which part is
// missing, and all the rest; health and doctor say what is wrong.
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
				s, c := newEditorSite(parallel(t))
				c.runs("tools:60 stream:100")
				c.leave()
				whole := lasting(c.seen(), 1<<60)
				pages, size := pagesOf(t, s, "events")
				require.Greater(t, len(pages), 10)
				for _, page := range pick(pages) {
					change(t, s, (page-1)*size, bytes.Repeat([]byte{noise}, int(size)))
				}

				c = s.open()
				reported := c.await("that the log is damaged", func(e event) bool { return e.Type == "log_damaged" })
				assert.Contains(t, reported.Data.Message, "duet-rpc doctor")
				// New events arrive as ever, where they can be kept.
				var begun launched
				if c.try("launchSession", object{"query": "quiet"}, &begun) == nil {
					c.awaitEnd(begun.SessionID)
				}
				missing, last := make(map[int64]bool), int64(0)
				for _, e := range c.seen() {
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
					assert.Less(t, len(missing), len(whole), "most can be read")
				}
				now := lasting(c.seen(), 1<<60)
				for seq, e := range whole {
					if !missing[seq] {
						assert.Equal(t, e, now[seq], "%d is neither reported nor missing", seq)
					}
				}
				assert.NotZero(t, last)
				requireRising(t, c.seen())
				c.requireDegraded("duet-rpc doctor")
				log := readFile(t, filepath.Join(s.state(), "daemon.log"))
				assert.Equal(t, 1, strings.Count(log, "the database is damaged"), "%s", log)
				c.closeStdin()
				c.requireGoodEnd()
			})
		}
	}
}

// What of a damaged database can be read goes out as UTF-8 and JSON, whatever it
// is.
func TestDamagedTextsAreMended(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]struct{ old, new string }{
		"UTF-8 in JSON": {`"type":"message","key"`, "\"type\":\"mess\xff\xc3e\",\"key\""},
		"no JSON":       {`"type":"message","key"`, `"type" x"message,"key"`},
		"a plain text":  {"the words of the prompt", "the words\xff of th\xf0prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newEditorSite(parallel(t))
			session := c.launch("quiet the words of the prompt", "").SessionID
			c.awaitEnd(session)
			c.leave()
			content := readFile(t, s.database())
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

			c = s.open()
			c.awaitEnd(session)
			var r struct{ Events []object }
			c.call("getConversation", object{"session_id": session}, &r)
			assert.NotEmpty(t, r.Events)
			for _, method := range []string{"listSessions", "fetchApprovals", "task.list"} {
				c.call(method, object{}, nil)
			}
			c.call("searchConversations", object{"query": "words"}, nil)
			c.call("Subscribe", object{"since": 0}, nil)
			c.requireDegraded("duet-rpc doctor")
			out, err := s.command("doctor")
			require.Error(t, err)
			assert.Contains(t, out, "is damaged")
			c.leave()
		})
	}
}

// Rounds of TestKillLosesNothing: as many as the default tier has time for, or enough to
// meet rare moments.
const (
	fewKills  = 4
	manyKills = 50
	// killsAProject is after how many a new project is begun: all that was
	// ever reported in one is checked after each kill.
	killsAProject = 12
)

// testSeed returns the seed of a test that acts at random, and logs it. The default tier
// has the same one each time, `make soak` another one, and DUET_TEST_SEED repeats one.
func testSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(1)
	if soak {
		seed = uint64(time.Now().UnixNano())
	}
	if text := os.Getenv("DUET_TEST_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("DUET_TEST_SEED=%d", seed)
	return seed
}

// Whenever the program is killed, nothing that it ever reported is gone, nothing
// runs on, and the next process goes on with it.
func TestKillLosesNothing(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	rounds := fewKills
	if soak {
		rounds = manyKills
	}
	for done := 0; done < rounds && !t.Failed(); done += killsAProject {
		killOften(t, rand.New(rand.NewPCG(seed, uint64(done))), done, min(rounds-done, killsAProject))
	}
}

// killOften kills the program in one project n times.
func killOften(t *testing.T, random *rand.Rand, done, n int) {
	k := &kills{t: t, site: newSite(t), rand: random, ledger: newLedger()}
	for i := range n {
		if !t.Run(fmt.Sprintf("kill %d", done+i+1), k.round) {
			return
		}
	}
	k.t = t
	c := k.start()
	k.verify(c)
	c.leave()
	t.Logf("%d runs, %d events, %d approvals", len(k.runs), k.lastSeq, len(k.asked))
	k.site.requireNobody("at the end")
}

// A ledger is what the hub reported to a client, which may rely on it.
type ledger struct {
	events  map[int64]event       // that are kept as they are
	texts   map[string]string     // by message: what its deltas said so far
	runs    map[string]*toldRun   // by session
	tasks   map[string]string     // the session of a task
	asked   map[string]*toldAsk   // by approval
	answers map[string]acceptance // that were sent, by approval
	lastSeq int64
	topTask int
}

type toldRun struct {
	launched
	query string
	state string // the last that came
}

type toldAsk struct {
	event
	resolved string // how, as far as the hub reported it
}

type acceptance int

const (
	_        acceptance = iota
	unsure              // the reply never came
	accepted            // the reply came
)

func newLedger() *ledger {
	return &ledger{
		events: make(map[int64]event), texts: make(map[string]string), runs: make(map[string]*toldRun), tasks: make(map[string]string),
		asked: make(map[string]*toldAsk), answers: make(map[string]acceptance),
	}
}

// transient reports whether an event may look different when it comes again.
func transient(e event) bool {
	return e.Seq == 0 || e.Type == "message_delta" || e.Type == "thinking_delta" || e.Type == "lagged"
}

// textsOf are the texts of messages, from their deltas.
func textsOf(events []event) map[string]string {
	texts := make(map[string]string)
	for _, e := range events {
		switch e.Type {
		case "lagged": // from here on some are missing
			return texts
		case "message_delta", "thinking_delta":
			texts[e.Data.SessionID+" "+e.Data.MessageID] += e.Data.Delta
		}
	}
	return texts
}

// take notes what a client received that subscribed from the beginning.
func (l *ledger) take(t testing.TB, events []event) {
	last := int64(0)
	for _, e := range events {
		if e.Seq != 0 {
			require.Greater(t, e.Seq, last, "seen numbers only rise")
			last = e.Seq
		}
		l.lastSeq = max(l.lastSeq, e.Seq)
		if !transient(e) {
			l.events[e.Seq] = e
		}
		switch e.Type {
		case "session_status_changed":
			run := l.run(e.Data.SessionID)
			run.state, run.TaskID = e.Data.State, e.Data.TaskID
			l.number(t, run.TaskID, e.Data.SessionID)
		case "new_approval":
			if l.asked[e.Data.ApprovalID] == nil {
				l.asked[e.Data.ApprovalID] = &toldAsk{event: e}
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

func (l *ledger) run(session string) *toldRun {
	run := l.runs[session]
	if run == nil {
		run = &toldRun{launched: launched{SessionID: session}}
		l.runs[session] = run
	}
	return run
}

// number notes whose a task's number is.
func (l *ledger) number(t testing.TB, task, session string) {
	if owner := l.tasks[task]; owner != "" {
		require.Equal(t, owner, session, "%s was given twice", task)
	}
	l.tasks[task] = session
	n, err := strconv.Atoi(strings.TrimPrefix(task, "task-"))
	require.NoError(t, err)
	l.topTask = max(l.topTask, n)
}

// accepted notes a run that a reply named.
func (l *ledger) accepted(t testing.TB, begun launched, query string) {
	known := l.runs[begun.SessionID]
	if known == nil {
		n, err := strconv.Atoi(strings.TrimPrefix(begun.TaskID, "task-"))
		require.NoError(t, err)
		require.Greater(t, n, l.topTask, "numbers of tasks are never used again")
	}
	run := l.run(begun.SessionID)
	run.launched, run.query = begun, query
	l.number(t, begun.TaskID, begun.SessionID)
}

// kills is TestKillLosesNothing under way.
type kills struct {
	*ledger
	t    testing.TB
	site *site
	rand *rand.Rand
}

// start starts the program and waits for the store.
func (k *kills) start() *client {
	c := k.site.start()
	c.t = k.t
	c.call("task.stats", object{}, nil)
	return c
}

// round is a life of the program, from the end of the one before to its own.
func (k *kills) round(t *testing.T) {
	k.t = t
	c := k.start()
	k.verify(c)
	k.goOn(c)

	// From here on it may end at any moment.
	after := time.Duration(k.rand.Int64N(int64(700 * time.Millisecond)))
	killed := make(chan struct{})
	timer := time.AfterFunc(after, func() {
		defer close(killed)
		_ = c.cmd.Process.Kill()
		if hub, err := os.FindProcess(k.site.lockHolder()); err == nil {
			_ = hub.Kill()
		}
	})
	defer func() {
		if !timer.Stop() {
			<-killed // else it would kill the hub of the next round
		}
	}()
	k.work(c)
	<-c.ended
	k.site.clients.Add(-1)
	c.requireGoodEnd()
	k.take(t, c.seen())
}

// work uses the program until it has gone.
func (k *kills) work(c *client) {
	prompts := []string{"permit:3 stream:200", "", "tools:50", "stream:2000@2000", "permit:1 edit", "quiet"}
	var asked []string
	for i := 0; ; i++ {
		var err error
		switch choice := k.rand.IntN(10); {
		case i < 3 || choice < 4 && i < 8: // what waits for a slot makes each round longer
			query := strings.TrimSpace(fmt.Sprintf("%s number %d", prompts[k.rand.IntN(len(prompts))], i))
			var begun launched
			if err = c.try("launchSession", object{"query": query}, &begun); err == nil {
				k.accepted(k.t, begun, query)
			}
		case choice < 7: // an answer to whatever waits
			asked = asked[:0]
			for _, e := range c.seen() {
				if e.Type == "new_approval" && k.answers[e.Data.ApprovalID] == 0 {
					asked = append(asked, e.Data.ApprovalID)
				}
			}
			if len(asked) > 0 {
				id := asked[k.rand.IntN(len(asked))]
				k.answers[id] = unsure
				if err = c.try("sendDecision", object{"approval_id": id, "decision": "approve"}, nil); err == nil {
					k.answers[id] = accepted
				}
			}
		case choice < 8:
			var begun launched
			for session, run := range k.runs {
				if run.state == "interrupted" {
					if err = c.try("continueSession", object{"session_id": session, "query": "continue"}, &begun); err == nil {
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
			case <-c.ended:
			}
			err = c.try("ping", object{}, nil)
		}
		if errors.Is(err, errGone) {
			return
		}
		if refused, ok := errors.AsType[*wireError](err); ok { // a question may have been closed meanwhile
			require.NotEqual(k.t, -32603, refused.Code, "%v", refused)
		}
	}
}

// verify compares the program with its earlier reports.
func (k *kills) verify(c *client) {
	t := k.t
	t.Helper()
	pending := c.pending()
	replayed := k.replay(c)

	// Events: all of them, as they were.
	again := make(map[int64]event)
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

	k.verifyRuns(c)
	k.verifyApprovals(c, pending)
	k.requireGapless()
	k.take(t, replayed)
}

// replay is the past as a new subscriber receives it.
func (k *kills) replay(c *client) []event {
	k.t.Helper()
	last := c.status().Subsystems.Store.LastSeq
	require.GreaterOrEqual(k.t, last, k.lastSeq)
	c.subscribe()
	if last > 0 {
		c.await("the replay of all events", func(e event) bool { return e.Seq >= last })
	}
	return c.seen()
}

// verifyRuns requires that each run is there; one that had an agent is
// interrupted, or had ended without a report to us.
func (k *kills) verifyRuns(c *client) {
	t := k.t
	t.Helper()
	for session, run := range k.runs {
		shown := c.session(session)
		var task struct {
			ID        string `json:"id"`
			SessionID string `json:"session_id"`
			RunID     string `json:"run_id"`
			Prompt    string `json:"prompt"`
		}
		c.call("task.get", object{"taskId": run.TaskID}, &task)
		require.Equal(t, session, task.SessionID)
		require.Equal(t, run.TaskID, task.ID)
		if run.RunID != "" { // a reply named it
			require.Equal(t, run.RunID, task.RunID)
			require.Equal(t, run.query, task.Prompt)
			require.Equal(t, run.ThreadID, shown.ThreadID)
		}
		switch {
		case ended(run.state):
			require.Equal(t, run.state, shown.State, session)
		case run.state != "" && run.state != "queued" && run.state != "draft": // it had an agent
			require.True(t, ended(shown.State), "%s was %s, it is %s", session, run.state, shown.State)
		}
		if shown.State == "interrupted" {
			require.Equal(t, "ORPHANED", shown.ErrorCode, session)
			require.NotEmpty(t, shown.Error)
		}
		for key, text := range k.texts {
			if owner, _, _ := strings.Cut(key, " "); owner == session && ended(shown.State) {
				require.Contains(t, c.conversation(session), text, "message %s", key)
			}
		}
	}
}

// verifyApprovals requires that what waited for an answer still does.
func (k *kills) verifyApprovals(c *client, pending map[string]shownApproval) {
	t := k.t
	t.Helper()
	for id, ask := range k.asked {
		shown := c.approval(id)
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
			// Its run may have ended, or asked again, without a report to us.
			require.Equal(t, "cancelled", shown.Status, "the question %s", ask.Raw)
		}
	}
}

// requireGapless looks into the database itself.
func (k *kills) requireGapless() {
	t := k.t
	t.Helper()
	db := k.site.openDatabase("?mode=ro")
	defer db.Close()
	var n, low, high int64
	require.NoError(t, db.QueryRow("SELECT count(*), coalesce(min(seq), 1), coalesce(max(seq), 0) FROM events").Scan(&n, &low, &high))
	require.Equal(t, high-low+1, n, "events are numbered without gaps")
	require.EqualValues(t, 1, low)
	var check string
	require.NoError(t, db.QueryRow("PRAGMA quick_check").Scan(&check))
	require.Equal(t, "ok", check)
}

// goOn brings an interrupted run to its end: by the answer to its question
// where it has one, else by continuing it.
func (k *kills) goOn(c *client) {
	t := k.t
	t.Helper()
	for id, ask := range k.asked {
		if ask.resolved != "" || k.answers[id] != 0 || !c.pending()[id].Stale {
			continue
		}
		k.answers[id] = unsure
		c.approve(id)
		k.answers[id] = accepted
		k.finishThread(c, c.approval(id).ThreadID, ask)
		k.take(t, c.seen())
		break
	}
	for session, run := range k.runs {
		shown := c.session(session)
		if shown.State != "interrupted" {
			continue
		}
		begun := c.begins("continueSession", object{"session_id": session, "query": "continue"})
		k.accepted(t, begun, "continue")
		end := k.finish(c, begun.SessionID)
		assert.Equal(t, "completed", end.Data.State, "%s continued: %s", run.query, end.Raw)
		k.take(t, c.seen())
		break
	}
}

// finish approves everything that a session asks until it has ended.
func (k *kills) finish(c *client, session string) event {
	k.t.Helper()
	end := c.approveAll(session)
	for _, e := range c.seen() {
		if e.Type == "new_approval" && e.Data.SessionID == session {
			k.answers[e.Data.ApprovalID] = accepted
		}
	}
	return end
}

// finishThread requires that the answer to a stale question makes its thread
// go on, and that the question is not asked again.
func (k *kills) finishThread(c *client, thread string, ask *toldAsk) {
	t := k.t
	t.Helper()
	var last launched
	e := c.await("a run that goes on after the answer", func(e event) bool {
		return e.Seq > k.lastSeq && e.Type == "session_status_changed" && e.Data.ThreadID == thread && (e.Data.State == "running" || ended(e.Data.State))
	})
	last.SessionID = e.Data.SessionID
	end := k.finish(c, last.SessionID)
	assert.Equal(t, "completed", end.Data.State, "%s", end.Raw)
	for _, e := range c.seen() {
		if e.Type == "new_approval" && e.Data.SessionID == last.SessionID && e.Data.ToolName == ask.Data.ToolName {
			assert.NotEqual(t, compact(t, ask.Data.ToolInput), compact(t, e.Data.ToolInput), "the question was asked again")
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

// killsInMidStream is how often TestResumedTextIsWhole kills the program where
// tests may take their time; else it is a few times.
const (
	killsInMidStream    = 20
	fewKillsInMidStream = 2
)

// said is a session's messages, built from their deltas.
func said(t testing.TB, events []event, session string) string {
	var text strings.Builder
	for _, e := range events {
		require.NotEqual(t, "lagged", e.Type, "%s", e.Raw)
		if e.Type == "message_delta" && e.Data.SessionID == session {
			text.WriteString(e.Data.Delta)
		}
	}
	return text.String()
}

// An editor whose program was killed while agents talked goes on after the
// last number that it saw: then it has all that the transcript has. Where one
// agent talked it has nothing twice either.
func TestResumedTextIsWhole(t *testing.T) {
	s := newSite(parallel(t))
	since, again := int64(0), 0
	rounds := fewKillsInMidStream
	if soak {
		rounds = killsInMidStream
	}
	for round := range rounds {
		c := s.start()
		c.call("Subscribe", object{"since": since}, nil)
		var talking []launched
		for range 1 + round%2 {
			talking = append(talking, c.launch("quiet stream:1000000@1500", ""))
		}
		mark := fmt.Sprintf("chunk %d ", 20+17*round) // at another moment each time
		for _, l := range talking {
			var text strings.Builder
			c.await("text", func(e event) bool {
				if e.Type == "message_delta" && e.Data.SessionID == l.SessionID {
					text.WriteString(e.Data.Delta)
				}
				return strings.Contains(text.String(), mark)
			})
		}
		c.crash()
		before := c.seen()
		since = lastSeq(before)

		c = s.start()
		c.call("Subscribe", object{"since": since}, nil)
		for _, l := range talking {
			end := c.awaitEnd(l.SessionID)
			assert.Equal(t, "ORPHANED", end.Data.ErrorCode)
			since = max(since, end.Seq)
			whole, first, second := c.conversation(l.SessionID), said(t, before, l.SessionID), said(t, c.seen(), l.SessionID)
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
		requireRising(t, c.seen())
		c.leave()
		since = max(since, lastSeq(c.seen()))
	}
	t.Logf("%d times some text came twice", again)
}

// An editor that ends takes its agents with it; what they did and what they
// asked is there for the next one.
func TestEndOfInputInterruptsRuns(t *testing.T) {
	s, c := newEditorSite(parallel(t))
	asking, question := c.asks("permit:2", "")
	streaming := c.launch("stream:1000000@200", "")
	c.awaitText(streaming)
	c.awaitState(asking.SessionID, "waiting_input")
	c.leave()
	s.requireNobody("after the end of input")

	c = s.open()
	for _, l := range []launched{asking, streaming} {
		shown := c.session(l.SessionID)
		assert.Equal(t, "interrupted", shown.State)
		assert.Equal(t, "SHUTDOWN", shown.ErrorCode)
		assert.NotEmpty(t, shown.Error)
	}
	require.Contains(t, c.pending(), question.Data.ApprovalID)
	assert.True(t, c.pending()[question.Data.ApprovalID].Stale)
	resumed := c.next(asking, "continue")
	assert.Equal(t, "completed", c.approveAll(resumed.SessionID).Data.State)
	assert.Empty(t, c.pending(), "a question that is asked again is asked once")
	c.leave()
}

// A recordedSite is a site whose agent keeps a record of what it did with the
// answers that it got.
type recordedSite struct {
	*site
	approved map[string]int // how often what was asked was allowed, and the reply came
}

func newRecordedSite(t testing.TB) *recordedSite {
	s := &recordedSite{newSite(t), make(map[string]int)}
	binary, err := os.Executable()
	require.NoError(t, err)
	s.agents(fmt.Sprintf(`
[agents.recorder]
driver = "acp"
command = [%q]
env = { %s = %q }
`, binary, recordingAgent, s.home))
	return s
}

// done is how often the agent did a thing.
func (s *recordedSite) done(thing string) (n int) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.home, recordFile))
	if !os.IsNotExist(err) {
		require.NoError(s.t, err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == thing {
			n++
		}
	}
	require.LessOrEqual(s.t, n, s.approved[thing], "%s was carried out more often than it was allowed", thing)
	return n
}

// ask launches the agent, and waits for its question.
func (s *recordedSite) ask(c *client, how, thing string) (launched, event) {
	l := c.launch(how+" "+thing, "recorder")
	return l, c.awaitQuestion(l.SessionID)
}

func (s *recordedSite) approve(c *client, thing, id string) {
	s.t.Helper()
	s.approved[thing]++ // first: it may be carried out before the reply
	c.approve(id)
}

// questionOf is the open question whether a thing may be done, if there is one.
func (c *client) questionOf(thing string) (shownApproval, bool) {
	for _, a := range c.pending() {
		if strings.Contains(string(a.ToolInput), fmt.Sprintf("%q", "do "+thing)) {
			return a, true
		}
	}
	return shownApproval{}, false
}

// requireCarriedOut requires that a thing that was allowed is carried out, or
// that its question is open again, and says so: then it is allowed once more,
// until it is carried out.
func (s *recordedSite) requireCarriedOut(c *client, thing string) (openedAgain bool) {
	s.t.Helper()
	var a shownApproval
	require.Eventually(s.t, func() bool {
		var open bool
		if a, open = c.questionOf(thing); open {
			openedAgain = true
			assert.NotEmpty(s.t, a.Reopened, "no reason is given for asking again")
			assert.NotEmpty(s.t, a.Reopens)
			assert.True(s.t, a.Stale)
			s.approve(c, thing, a.ID)
			return false
		}
		return s.done(thing) > 0
	}, time.Minute, 5*time.Millisecond, "%s was allowed; it was neither carried out nor asked again", thing)
	return openedAgain
}

// requireTold requires that the answer to a question was taken, or that it is
// said which question asks again.
func (s *recordedSite) requireTold(c *client, id string) {
	s.t.Helper()
	a := c.approval(id)
	assert.Equal(s.t, "approved", a.Status)
	assert.NotEqual(s.t, a.TakenAt != "", a.Reopening != "", "%+v", a)
}

// killDelays are the times after which something dies: before, while and after an agent
// that acts at once has acted, which takes it a millisecond or two.
var killDelays = func() []time.Duration {
	if !soak {
		return []time.Duration{0, 2 * time.Millisecond}
	}
	return []time.Duration{
		0, 100 * time.Microsecond, 300 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond,
	}
}()

// quiet waits until nothing runs.
func (c *client) quiet() {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		var stats struct{ Running, Queued int }
		c.call("task.stats", object{}, &stats)
		return stats.Running == 0 && stats.Queued == 0
	}, time.Minute, 5*time.Millisecond)
}

// Whenever the program is killed after it has acknowledged an answer, what was
// allowed is carried out, or is asked again.
func TestAnAnswerOutlivesTheHub(t *testing.T) {
	s := newRecordedSite(parallel(t))
	again := 0
	for i, how := range []string{"plainly", "slowly", "silently"} {
		for j, delay := range killDelays {
			thing := fmt.Sprintf("thing-%d-%d", i, j)
			c := s.open()
			_, question := s.ask(c, how, thing)
			s.approve(c, thing, question.Data.ApprovalID)
			time.Sleep(delay) // machine: any moment will do
			c.crash()

			c = s.start()
			if s.requireCarriedOut(c, thing) {
				again++
			}
			c.quiet()
			c.crash()
			c = s.start() // nothing is left to be done
			_, open := c.questionOf(thing)
			assert.False(t, open, "%s was carried out %d times", thing, s.done(thing))
			s.requireTold(c, question.Data.ApprovalID)
			c.leave()
		}
	}
	t.Logf("%d of %d were asked again", again, 3*len(killDelays))
}
