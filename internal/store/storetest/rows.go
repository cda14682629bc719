package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func testAliasesFindTurns(t *testing.T, k kind) {
	s := k.openNew(t)
	session := NewSession(t, s, "session")
	first := AddTurn(t, s, session.ID, domain.Completed, func(r *domain.Turn) { r.CallerID = "mine" })
	last := AddTurn(t, s, session.ID, domain.Queued)
	for alias, want := range map[string]int64{
		first.UUID: first.ID, first.HumanLayerSession: first.ID, first.HumanLayerRun: first.ID, "task-0001": first.ID, "mine": first.ID,
		last.UUID: last.ID, "task-0002": last.ID, session.UUID: last.ID, "session": last.ID,
		"1": last.ID, "1.1": first.ID, "1.2": last.ID,
	} {
		got, err := s.Find(ctx, alias)
		require.NoError(t, err, alias)
		assert.Equal(t, want, got, alias)
		found, err := s.FindSession(ctx, alias)
		require.NoError(t, err, alias)
		assert.Equal(t, session.ID, found, alias)
	}
	for _, none := range []string{
		"", "task-0003", "task-1", "nobody", "%", "0", "2", "01", "-1", "1.", "1.0", "1.3", "1.01", "1.1.1", ".1", "99999999999999999999",
	} {
		_, err := s.Find(ctx, none)
		assert.ErrorIs(t, err, store.ErrNotFound, none)
		_, err = s.FindSession(ctx, none)
		assert.ErrorIs(t, err, store.ErrNotFound, none)
	}
	for alias, want := range map[string]bool{session.UUID: true, "1": true, first.UUID: false, "1.1": false, "none": false} {
		whole, err := s.NamesSession(ctx, alias)
		require.NoError(t, err)
		assert.Equal(t, want, whole, alias)
	}
}

// A client may give its turn an id that looks like a number; the id wins.
func testIDsBeforeNumbers(t *testing.T, k kind) {
	s := k.openNew(t)
	one, two := NewSession(t, s, ""), NewSession(t, s, "")
	AddTurn(t, s, one.ID, domain.Queued)
	AddTurn(t, s, two.ID, domain.Queued)
	Write(t, s, func(tx store.Tx) error {
		taken, err := tx.IsTaken("1")
		assert.False(t, taken)
		return err
	})
	_, err := s.FindID(ctx, "1")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.FindSessionID(ctx, "1")
	require.ErrorIs(t, err, store.ErrNotFound)
	named := AddTurn(t, s, two.ID, domain.Queued, func(r *domain.Turn) { r.CallerID = "1" })
	got, err := s.Find(ctx, "1")
	require.NoError(t, err)
	assert.Equal(t, named.ID, got)
}

// Numbers are never reused: a number that a user noted down never names another turn.
func testTurnNumbersAreNotReused(t *testing.T, k kind) {
	s := k.openNew(t)
	session := NewSession(t, s, "")
	first := AddTurn(t, s, session.ID, domain.Completed)
	second := AddTurn(t, s, session.ID, domain.Completed)
	Write(t, s, func(tx store.Tx) error { return tx.DeleteTurns(session.ID, first.ID) })
	third := AddTurn(t, s, session.ID, domain.Completed)
	assert.Equal(t, []int64{1, 2, 3}, []int64{first.Number, second.Number, third.Number})
	assert.Equal(t, "1.3", third.Name())
}

func testSessionWithoutTurns(t *testing.T, k kind) {
	s := k.openNew(t)
	session := NewSession(t, s, "")
	_, err := s.Find(ctx, session.UUID)
	assert.ErrorIs(t, err, store.ErrNotFound)
}

func testStartableOrder(t *testing.T, k kind) {
	s := k.openNew(t)
	priority := func(n int) func(*domain.Turn) { return func(r *domain.Turn) { r.Priority = n } }
	sessions := make([]domain.Session, 6)
	for i := range sessions {
		sessions[i] = NewSession(t, s, "")
	}
	old := AddTurn(t, s, sessions[0].ID, domain.Queued)
	AddTurn(t, s, sessions[0].ID, domain.Queued) // after the old one
	high := AddTurn(t, s, sessions[1].ID, domain.Queued, priority(5))
	AddTurn(t, s, sessions[2].ID, domain.Queued)
	urgent := AddTurn(t, s, sessions[2].ID, domain.Queued, priority(1)) // goes first in its own session, too
	low := AddTurn(t, s, sessions[3].ID, domain.Queued, priority(-1))
	for i, busy := range []domain.State{domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting} {
		session := NewSession(t, s, fmt.Sprint("busy", i))
		AddTurn(t, s, session.ID, busy)
		AddTurn(t, s, session.ID, domain.Queued, priority(100))
	}
	AddTurn(t, s, sessions[4].ID, domain.Draft, priority(100))
	AddTurn(t, s, sessions[5].ID, domain.Completed)
	ended := AddTurn(t, s, sessions[5].ID, domain.Queued)

	list, err := s.Startable(ctx, 10)
	require.NoError(t, err)
	var ids []int64
	for _, r := range list {
		ids = append(ids, r.Turn.ID)
	}
	assert.Equal(t, []int64{high.ID, urgent.ID, old.ID, ended.ID, low.ID}, ids)
	list, err = s.Startable(ctx, 2)
	require.NoError(t, err)
	assert.Len(t, list, 2)

	load, err := s.Load(ctx)
	require.NoError(t, err)
	assert.Equal(t, domain.Counts{domain.Queued: 11, domain.Starting: 1, domain.Running: 1, domain.Interrupting: 1}, load)
	counts, err := s.Counts(ctx)
	require.NoError(t, err)
	assert.Equal(t, domain.Counts{
		domain.Queued: 11, domain.Starting: 1, domain.Running: 1, domain.Interrupting: 1, domain.WaitingInput: 1, domain.Draft: 1,
		domain.Completed: 1,
	}, counts)
}

func testSessionsAreFilteredAndPaged(t *testing.T, k kind) {
	s := k.openNew(t)
	a, b := NewSession(t, s, ""), NewSession(t, s, "")
	b.Archived = true
	Write(t, s, func(tx store.Tx) error { return tx.UpdateSession(b) })
	for i := range 10 {
		session := []domain.Session{a, b}[i%2]
		AddTurn(t, s, session.ID, []domain.State{domain.Completed, domain.Failed, domain.Queued}[i%3], func(r *domain.Turn) {
			r.Agent = []string{"x", "y"}[i/5]
			r.Source = []string{"task", "chat"}[i%2]
			r.Parent = int64(i / 2) // 0 for the first two
		})
	}
	ids := func(f domain.TurnFilter) (list []int64) {
		t.Helper()
		turns, err := s.TurnsInSessions(ctx, f)
		require.NoError(t, err)
		for _, s := range turns {
			list = append(list, s.Turn.ID)
		}
		return list
	}
	yes, no := true, false
	assert.Equal(t, []int64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, ids(domain.TurnFilter{}))
	assert.Equal(t, []int64{9, 6, 3}, ids(domain.TurnFilter{States: []domain.State{domain.Queued}}))
	assert.Equal(t, []int64{9, 8, 6, 5, 3, 2}, ids(domain.TurnFilter{States: []domain.State{domain.Queued, domain.Failed}}))
	assert.Equal(t, []int64{10, 9, 8, 7, 6}, ids(domain.TurnFilter{Agent: "y"}))
	assert.Equal(t, []int64{10, 8, 6, 4, 2}, ids(domain.TurnFilter{Source: "chat"}))
	assert.Equal(t, []int64{10, 8, 6, 4, 2}, ids(domain.TurnFilter{Archived: &yes}))
	assert.Equal(t, []int64{9, 7}, ids(domain.TurnFilter{Archived: &no, Agent: "y"}))
	assert.Equal(t, []int64{9, 7, 5, 3, 1}, ids(domain.TurnFilter{Session: a.ID}))
	assert.Equal(t, []int64{10, 9}, ids(domain.TurnFilter{Leaves: true}))

	var paged []int64
	for before, pages := int64(0), 0; ; pages++ {
		page := ids(domain.TurnFilter{Before: before, Limit: 3})
		if len(page) == 0 {
			assert.Equal(t, 4, pages)
			break
		}
		paged = append(paged, page...)
		before = page[len(page)-1]
	}
	assert.Equal(t, ids(domain.TurnFilter{}), paged, "each once")

	first, err := s.TurnInSession(ctx, 1)
	require.NoError(t, err)
	assert.Empty(t, first.ParentHumanLayerSession)
	third, err := s.TurnInSession(ctx, 3)
	require.NoError(t, err)
	assert.Equal(t, first.HumanLayerSession, third.ParentHumanLayerSession)
}

func testTurnsOfASession(t *testing.T, k kind) {
	s := k.openNew(t)
	session := NewSession(t, s, "")
	one := AddTurn(t, s, session.ID, domain.Completed)
	two := AddTurn(t, s, session.ID, domain.Running)
	AddTurn(t, s, session.ID, domain.Draft)
	list, err := s.TurnsOfSession(ctx, session.ID, 0)
	require.NoError(t, err)
	assert.Len(t, list, 3)
	list, err = s.TurnsOfSession(ctx, session.ID, one.ID)
	require.NoError(t, err)
	assert.Len(t, list, 1)
	last, err := s.LastTurn(ctx, session.ID)
	require.NoError(t, err)
	assert.Equal(t, two.ID, last.ID, "drafts aside")
	list, err = s.TurnsIn(ctx, domain.Draft, domain.Running)
	require.NoError(t, err)
	assert.Len(t, list, 2)
	code := func(c string) func(*domain.Turn) { return func(r *domain.Turn) { r.ErrorCode = c } }
	AddTurn(t, s, session.ID, domain.Failed, code("FULL"))
	three := AddTurn(t, s, session.ID, domain.Failed, code("FULL"))
	AddTurn(t, s, session.ID, domain.Failed, code("ELSE"))
	AddTurn(t, s, session.ID, domain.TimedOut, code("FULL"))
	four := AddTurn(t, s, session.ID, domain.Failed, code("FULL"))
	list, err = s.TurnsFailedWith(ctx, "FULL", three.ID)
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, []int64{three.ID, four.ID}, []int64{list[0].ID, list[1].ID})
	_, err = s.Turn(ctx, 99)
	assert.ErrorIs(t, err, store.ErrNotFound)
	err = s.Write(ctx, func(tx store.Tx) error { return tx.UpdateTurn(domain.Turn{ID: 99}) })
	assert.ErrorIs(t, err, store.ErrNotFound)
}

// A session's own directory is in most of its paths, and would be a match of each.
func testSearchIgnoresDirectory(t *testing.T, k kind) {
	s := k.openNew(t)
	session := domain.Session{UUID: "u", CWD: "/home/me/Parser", Agent: "a", Created: time.Unix(1, 0), Active: time.Unix(1, 0)}
	Write(t, s, func(tx store.Tx) error { return tx.InsertSession(&session) })
	r := AddTurn(t, s, session.ID, domain.Running)
	for _, content := range []string{
		"cd /home/me/Parser && go test", "Write /home/me/Parser/main.go", "The parser of /home/me/Parser/main.go is slow", "Read /home/me/Parser-2/a.go",
	} {
		i := domain.Item{Session: session.ID, Turn: r.ID, Kind: "message", Content: content, Created: time.Now(), Updated: time.Now()}
		Write(t, s, func(tx store.Tx) error { return tx.InsertItem(&i) })
	}
	for words, want := range map[string]int{"parser": 2, "Parser slow": 1, "parser write": 0, "main": 2, "go": 4, "home": 1, "/home/me/parser/main.go": 2} {
		hits, err := s.Search(t.Context(), words, 10, 0)
		require.NoError(t, err)
		assert.Len(t, hits, want, words)
	}
}

func testSearchAcceptsAnyText(t *testing.T, k kind) {
	s := k.openNew(t)
	session := NewSession(t, s, "")
	r := AddTurn(t, s, session.ID, domain.Running)
	add := func(content string) domain.Item {
		i := domain.Item{Session: session.ID, Turn: r.ID, Kind: "message", Content: content, Created: time.Now(), Updated: time.Now()}
		Write(t, s, func(tx store.Tx) error { return tx.InsertItem(&i) })
		return i
	}
	greeting := add("Grüße aus Köln, said the C++ compiler's author")
	add(`a "quoted phrase" and file_name.go:12`)
	tool := domain.Item{
		Session: session.ID, Turn: r.ID, Kind: "tool_call", Key: "k", Title: "List files", Result: "alpha.txt", Status: "pending",
		Created: time.Now(), Updated: time.Now(),
	}
	Write(t, s, func(tx store.Tx) error { return tx.InsertItem(&tool) })

	for words, want := range map[string]int{
		"Grüße": 1, "grusse": 0, "gruße": 1, "KOLN": 1, "köl": 1, "ln": 0, "author köln": 1, "köln nothing": 0,
		`"quoted phrase"`: 1, `"quoted`: 1, `quoted"`: 1, `"`: 0, `""`: 0, "file_name": 1, "go:12": 1,
		"list": 1, "alpha": 1, "alpha.txt": 1, "C++": 1, "compiler's": 1,
		// FTS5 syntax has no meaning here.
		"quoted AND": 1, "NOT": 0, "quoted OR nothing": 0, "content:quoted": 0, "quo*": 1, "(quoted": 1, "NEAR(quoted phrase)": 0, "^quoted": 1,
		"-quoted": 1, "{title}: list": 0,
		"": 0, "   \t\n": 0, "*": 0, "'; DROP TABLE items; --": 0, "\x00": 0,
	} {
		hits, err := s.Search(ctx, words, 10, 0)
		if assert.NoError(t, err, "%q", words) {
			assert.Len(t, hits, want, "%q", words)
		}
	}
	hits, err := s.Search(ctx, "köl", 10, 0)
	require.NoError(t, err)
	assert.Contains(t, hits[0].Snippet, "«Köln»")
	assert.Equal(t, greeting.ID, hits[0].ID)

	tool.Result, tool.Status = "beta.txt", "completed"
	Write(t, s, func(tx store.Tx) error { return tx.UpdateItem(tool) })
	for words, want := range map[string]int{"alpha": 0, "beta": 1, "list": 1} {
		hits, err := s.Search(ctx, words, 10, 0)
		require.NoError(t, err)
		assert.Len(t, hits, want, words)
	}
	for i := range 5 {
		add(fmt.Sprint("page ", i))
	}
	seen := map[int64]bool{}
	for offset := 0; offset < 6; offset += 2 {
		hits, err := s.Search(ctx, "page", 2, offset)
		require.NoError(t, err)
		for _, h := range hits {
			seen[h.ID] = true
		}
	}
	assert.Len(t, seen, 5)
}

func testApprovalByCallID(t *testing.T, k kind) {
	s := k.openNew(t)
	for i, status := range []string{domain.ApprovalPending, domain.ApprovalDenied} {
		Write(t, s, func(tx store.Tx) error {
			return tx.InsertApproval(&domain.Approval{
				ID: fmt.Sprint("a", i), Session: 1, Turn: int64(i + 1), Type: domain.FunctionCall, CallID: "call", Status: status, Paths: []string{"x"},
				Created: time.Unix(int64(i+1), 0), Input: []byte(`{"a":1}`),
			})
		})
	}
	a, err := s.Approval(ctx, "call")
	require.NoError(t, err)
	assert.Equal(t, "a0", a.ID, "the one that waits before a later one that does not")
	a.Status, a.Carried, a.Question, a.Decided = domain.ApprovalApproved, true, "q", time.Unix(9, 0)
	Write(t, s, func(tx store.Tx) error { return tx.UpdateApproval(a) })
	other, err := s.Approval(ctx, "a1")
	require.NoError(t, err)
	assert.Equal(t, []string{"call.a1", "call"}, []string{other.CallID, other.ToolUseID()}, "no two have the same")
	other, err = s.Approval(ctx, "call.a1")
	require.NoError(t, err)
	assert.Equal(t, "a1", other.ID)
	for i, taken := range []string{"a0", "call.a1"} { // an id of another approval, of either kind
		id := fmt.Sprint("b", i)
		Write(t, s, func(tx store.Tx) error {
			return tx.InsertApproval(&domain.Approval{ID: id, CallID: taken, Status: domain.ApprovalDenied})
		})
		found, err := s.Approval(ctx, id)
		require.NoError(t, err)
		assert.Equal(t, []string{taken + "." + id, taken}, []string{found.CallID, found.ToolUseID()})
	}
	again, err := s.Approval(ctx, "a0")
	require.NoError(t, err)
	assert.Equal(t, []string{"x"}, again.Paths)
	assert.Equal(t, time.Unix(9, 0).UTC(), again.Decided)
	pending, err := s.PendingApprovals(ctx, 0)
	require.NoError(t, err)
	assert.Empty(t, pending)
	_, err = s.Approval(ctx, "none")
	assert.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.CarriedDecision(ctx, 2, "q")
	assert.ErrorIs(t, err, store.ErrNotFound, "another session's")
	assert.ErrorIs(t, s.Write(ctx, func(tx store.Tx) error { return tx.UpdateApproval(domain.Approval{ID: "none"}) }), store.ErrNotFound)
}

func testChangeKeepsFirstContent(t *testing.T, k kind) {
	s := k.openNew(t)
	text := func(s string) *string { return &s }
	put := func(c domain.Change) { Write(t, s, func(tx store.Tx) error { return tx.PutChange(c) }) }
	put(domain.Change{Turn: 1, Path: "b", After: text("1"), Seq: 1, Updated: time.Unix(1, 0)})
	put(domain.Change{Turn: 1, Path: "a", Before: text("0"), After: text("1"), Seq: 2, Updated: time.Unix(1, 0)})
	put(domain.Change{Turn: 1, Path: "a", Before: text("1"), After: nil, Seq: 3, Updated: time.Unix(2, 0)})
	list, err := s.Changes(ctx, 1)
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, "0", *list[0].Before)
	assert.Nil(t, list[0].After, "deleted")
	assert.EqualValues(t, 3, list[0].Seq)
	assert.Nil(t, list[1].Before, "new")
}

func testRulesAndKeyAccesses(t *testing.T, k kind) {
	s := k.openNew(t)
	for range 2 { // the same rule counts once
		Write(t, s, func(tx store.Tx) error {
			return errors.Join(tx.PutRule(domain.Rule{Session: 1, Effect: "allow", Tool: "Write"}),
				tx.PutRule(domain.Rule{Effect: "deny", Tool: "Bash", Command: "rm"}))
		})
	}
	rules, err := s.Rules(ctx, 1)
	require.NoError(t, err)
	assert.Len(t, rules, 2)
	assert.Equal(t, domain.Rule{ID: rules[0].ID, Session: 1, Effect: "allow", Tool: "Write", Created: rules[0].Created}, rules[0])
	for _, r := range []domain.Rule{{Session: 3, Effect: "allow", Tool: "Bash", Command: "rm *"}, {
		Session: 3, Effect: "allow", Tool: "Bash", Command: "rm *", Pattern: true,
	}, {Session: 3, Effect: "allow", Tool: "Write", Path: "/p/*"}} {
		Write(t, s, func(tx store.Tx) error { return tx.PutRule(r) })
		all, err := s.Rules(ctx, 3)
		require.NoError(t, err)
		last := all[len(all)-1]
		r.ID, r.Created = last.ID, last.Created
		assert.Equal(t, r, last)
	}
	rules, err = s.Rules(ctx, 2)
	require.NoError(t, err)
	assert.Len(t, rules, 1, "only the project's")

	for i := range 3 {
		Write(t, s, func(tx store.Tx) error { return tx.NoteKeyAccess(int64(i), "anthropic", "configured") })
	}
	accesses, err := s.KeyAccesses(ctx, 2)
	require.NoError(t, err)
	require.Len(t, accesses, 2)
	assert.EqualValues(t, 2, accesses[0].Turn, "the newest first")
	assert.Equal(t, "configured", accesses[0].Outcome)
}

func testProcessesAndPaths(t *testing.T, k kind) {
	s := k.openNew(t)
	Write(t, s, func(tx store.Tx) error {
		return errors.Join(tx.PutProcess(domain.Process{PID: 5, Mark: "m", Turn: 1}), tx.PutProcess(domain.Process{PID: 6, Mark: "m", Turn: 2}),
			tx.PutProcess(domain.Process{PID: 7, Mark: "n", Turn: 2}))
	})
	list, err := s.Processes(ctx)
	require.NoError(t, err)
	assert.ElementsMatch(t, []domain.Process{{PID: 6, Mark: "m", Turn: 2}, {PID: 7, Mark: "n", Turn: 2}}, list)
	Write(t, s, func(tx store.Tx) error { return tx.DropProcess("m") })
	list, err = s.Processes(ctx)
	require.NoError(t, err)
	assert.Len(t, list, 1)

	for range 2 {
		NewSession(t, s, "")
	}
	paths, err := s.RecentPaths(ctx, 10)
	require.NoError(t, err)
	require.Len(t, paths, 1)
	assert.Equal(t, domain.RecentPath{Path: "/p", LastUsed: time.Unix(1, 0).UTC(), Count: 2}, paths[0])
}

func testOpenDeltas(t *testing.T, k kind) {
	s := k.openNew(t)
	session := NewSession(t, s, "")
	r := AddTurn(t, s, session.ID, domain.Running)
	delta := func(key, text string) {
		Write(t, s, func(tx store.Tx) error {
			_, err := tx.Append(domain.Event{Turn: r.ID, Session: session.ID, Payload: domain.MessageDelta{Key: key, Text: text}})
			return err
		})
	}
	delta("1", "a")
	Write(t, s, func(tx store.Tx) error {
		seq, err := tx.Append(domain.Event{Turn: r.ID, Payload: domain.MessageAdded{Type: "message", Key: "1", Text: "a"}})
		if err != nil {
			return err
		}
		return tx.InsertItem(&domain.Item{Session: session.ID, Turn: r.ID, Seq: seq, Kind: "message", Content: "a"})
	})
	last, err := s.LastItem(ctx, r.ID)
	require.NoError(t, err)
	assert.Equal(t, "a", last.Content)
	Write(t, s, func(tx store.Tx) error {
		return tx.InsertItem(&domain.Item{Session: session.ID, Turn: r.ID, Kind: domain.ItemSystem, Content: "of the hub"})
	})
	last, err = s.LastItem(ctx, r.ID)
	require.NoError(t, err)
	assert.Equal(t, "a", last.Content, "a note of the hub does not count")
	_, err = s.LastItem(ctx, r.ID+1)
	assert.ErrorIs(t, err, store.ErrNotFound)
	delta("2", "b")
	delta("2", "c")
	open, err := s.OpenDeltas(ctx, r.ID)
	require.NoError(t, err)
	require.Len(t, open, 2)
	assert.Equal(t, domain.MessageDelta{Key: "2", Text: "b"}, open[0].Payload)
}

func testAgentSessions(t *testing.T, k kind) {
	s := k.openNew(t)
	one, two := NewSession(t, s, ""), NewSession(t, s, "")
	seen := func(session int64) domain.AgentSessionSeen {
		t.Helper()
		got, err := s.AgentSession(ctx, session)
		require.NoError(t, err)
		return got
	}
	last := func(agent string) domain.AgentSessionSeen {
		t.Helper()
		got, err := s.LastAgentSession(ctx, agent)
		require.NoError(t, err)
		return got
	}
	assert.Zero(t, seen(one.ID))
	assert.Zero(t, last("a"))
	whole := domain.AgentSessionSeen{AgentSession: agentSession(), Session: one.ID, Agent: "a", Seen: time.Unix(5, 7).UTC()}
	Write(t, s, func(tx store.Tx) error { return tx.PutAgentSession(whole) })
	assert.Equal(t, whole, seen(one.ID))
	assert.Zero(t, seen(two.ID))
	assert.Equal(t, whole, last("a"))
	assert.Zero(t, last("b"))

	later := domain.AgentSessionSeen{Session: two.ID, Agent: "a", Seen: time.Unix(6, 0).UTC()}
	Write(t, s, func(tx store.Tx) error { return tx.PutAgentSession(later) })
	assert.Equal(t, later, last("a"))
	whole.Seen, whole.Info = time.Unix(7, 0).UTC(), nil
	Write(t, s, func(tx store.Tx) error { return tx.PutAgentSession(whole) })
	assert.Equal(t, whole, last("a"), "it received another text")
	assert.Equal(t, whole, seen(one.ID))
	works, err := s.BackgroundSessions(ctx)
	require.NoError(t, err)
	assert.Equal(t, []domain.AgentSessionSeen{whole}, works)
	whole.Background = []domain.BackgroundTask{}
	Write(t, s, func(tx store.Tx) error { return tx.PutAgentSession(whole) })
	works, err = s.BackgroundSessions(ctx)
	require.NoError(t, err)
	assert.Empty(t, works)

	turn := AddTurn(t, s, one.ID, domain.Running, func(r *domain.Turn) { r.AgentMode, r.Model = "plan", "big" })
	got, err := s.Turn(ctx, turn.ID)
	require.NoError(t, err)
	assert.Equal(t, []string{"plan", "big"}, []string{got.AgentMode, got.Model})
	got.AgentMode, got.Model = "default", ""
	Write(t, s, func(tx store.Tx) error { return tx.UpdateTurn(got) })
	of, err := s.TurnInSession(ctx, turn.ID)
	require.NoError(t, err)
	assert.Equal(t, []string{"default", ""}, []string{of.AgentMode, of.Model})
}

func testChangeDecisions(t *testing.T, k kind) {
	s := k.openNew(t)
	session := NewSession(t, s, "")
	turn, other := AddTurn(t, s, session.ID, domain.Completed), AddTurn(t, s, session.ID, domain.Completed)
	decisions := func(turn int64) []domain.ChangeDecision {
		list, err := s.ChangeDecisions(ctx, turn)
		require.NoError(t, err)
		return list
	}
	put := func(d domain.ChangeDecision) domain.ChangeDecision {
		Write(t, s, func(tx store.Tx) error { return tx.PutChangeDecision(d) })
		return d
	}
	assert.Empty(t, decisions(turn.ID))
	put(domain.ChangeDecision{Turn: turn.ID, Part: "b", State: domain.ChangeAccepted})
	b := put(domain.ChangeDecision{Turn: turn.ID, Part: "b", State: domain.ChangeReverted, Mode: 0o755})
	a := put(domain.ChangeDecision{Turn: turn.ID, Part: "a", State: domain.ChangeAccepted})
	others := put(domain.ChangeDecision{Turn: other.ID, Part: "a", State: domain.ChangeAccepted})
	assert.Equal(t, []domain.ChangeDecision{a, b}, decisions(turn.ID))
	put(domain.ChangeDecision{Turn: turn.ID, Part: "a", State: domain.ChangeOpen})
	assert.Equal(t, []domain.ChangeDecision{b}, decisions(turn.ID))
	assert.Equal(t, []domain.ChangeDecision{others}, decisions(other.ID))

	Write(t, s, func(tx store.Tx) error { return tx.DeleteTurns(session.ID, turn.ID) })
	assert.Equal(t, []domain.ChangeDecision{b}, decisions(turn.ID))
	assert.Empty(t, decisions(other.ID), "they have gone with their turn")
}
