package intake

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// records is a desk whose intake writes to a real store.
type records struct {
	desk
	store   store.Store
	turn    domain.Turn
	changed int // calls of Changed

	reconsidered int // calls of Reconsider

	announced func() // if not nil, called by the writer with each announcement
}

func (r *records) Changed(store.Tx, int64) { r.changed++ }

func (r *records) AgentStarted(int64) {}

func (r *records) Done(store.Tx, domain.Turn, string) error { return nil }

func (r *records) Taken(t store.Tx, turn int64, approvals []string) error {
	for _, id := range approvals {
		if err := t.TakeAnswer(id, turn); err != nil {
			return err
		}
	}
	return nil
}

func (r *records) Reconsider(store.Tx, int64) error {
	r.reconsidered++
	return nil
}

func newRecords(t *testing.T) *records {
	t.Helper()
	path := filepath.Join(t.TempDir(), "duet.db")
	r := &records{}
	s, err := sqlite.Opener(path)(t.Context(), store.Options{Committed: func([]domain.Event, store.Reader) {
		if r.announced != nil {
			r.announced()
		}
	}})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	r.store = s
	r.Intake = New(t.Context(), Options{
		Store: s, Transcript: transcript.New(t.Context(), func(int64) (domain.TurnInSession, bool) { return domain.TurnInSession{}, false }),
		Turns: r, Answers: r, Health: r, Root: func(string) string { return "/root" },
	})
	t.Cleanup(r.Close)
	require.NoError(t, s.Write(t.Context(), func(tx store.Tx) error {
		session := domain.Session{UUID: "session", CWD: "/", Agent: "fake", Mode: "default", NativeSession: "old", Created: tx.Now(), Active: tx.Now()}
		if err := tx.InsertSession(&session); err != nil {
			return err
		}
		r.turn = domain.Turn{UUID: "turn", HumanLayerSession: "session_id", HumanLayerRun: "run_id", Session: session.ID, State: domain.Running, Agent: "fake", Created: tx.Now(), Active: tx.Now()}
		return tx.InsertTurn(&r.turn)
	}))
	r.desk.turn = r.Begin(r.turn.ID, r.turn.UUID, &redact.Secrets{})
	return r
}

// report has an executor report something, and returns the payloads of the resulting events.
func (r *records) report(t *testing.T, kind, data string) (list []domain.Payload) {
	t.Helper()
	last, err := r.store.LastSeq(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.ReportMessage(t.Context(), catalog.ReportMessageParams{SessionToken: token, EventType: kind, EventData: json.RawMessage(data)}))
	require.NoError(t, r.store.Write(t.Context(), func(store.Tx) error { return nil })) // waits for the report
	events, err := r.store.Events(t.Context(), last, 100)
	require.NoError(t, err)
	for _, e := range events {
		list = append(list, e.Payload)
	}
	return list
}

// note returns the announcement of a system message.
func note(subtype, text string) []domain.Payload {
	return []domain.Payload{domain.MessageAdded{Type: domain.ItemSystem, Role: "system", Text: text, Subtype: subtype}}
}

func first(list []domain.Payload) domain.Payload {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func TestWhatReportsBecome(t *testing.T) {
	r := newRecords(t)
	for _, c := range []struct {
		kind, data string
		want       []domain.Payload
	}{
		{catalog.EventContentDelta, `{"delta":{"text":"hello"}}`, []domain.Payload{domain.MessageDelta{Key: "msg-1", Text: "hello"}}},
		{catalog.EventMessageStop, `{}`, []domain.Payload{domain.MessageAdded{Type: domain.ItemMessage, Key: "msg-1", Role: "assistant", Text: "hello"}}},
		{catalog.EventThinkingChunk, `{"delta":{"text":"hm"}}`, []domain.Payload{domain.MessageDelta{Key: "msg-3", Text: "hm", Thought: true}}},
		{catalog.EventToolCall, `{"tool_id":"1","tool":"Bash"}`, []domain.Payload{
			domain.MessageAdded{Type: domain.ItemThinking, Key: "msg-3", Role: "assistant", Text: "hm"},
			domain.ToolCallChanged{ID: "1", Name: "Bash", Status: "pending"},
		}},
		{catalog.EventToolResult, `{"tool_id":"1","result":"done"}`, []domain.Payload{
			domain.ToolCallChanged{ID: "1", Name: "Bash", Status: "completed", Ended: true, Result: "done"},
		}},
		{catalog.EventPlan, `{}`, []domain.Payload{domain.PlanChanged{Entries: []domain.PlanEntry{}}}},
		{catalog.EventUsage, `{"input_tokens":7,"cost_usd":0.5}`, []domain.Payload{domain.UsageReported{InputTokens: 7, CostUSD: 0.5}}},
		{catalog.EventFileChange, `{"path":"/root/a","after":"new\n"}`, []domain.Payload{
			domain.FileChanged{Path: "/root/a", Diff: "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+new\n", Added: 1},
		}},
		{catalog.EventNativeSession, `{"session_id":"new","primed":true}`, []domain.Payload{
			domain.MessageAdded{Type: domain.ItemSystem, Key: "sys-10", Role: "system", Text: "The agent had lost its session. A new one received the transcript so far: the messages and which tools were used, but not their results.", Subtype: "session_replaced"},
			domain.NativeSessionChanged{NativeSession: "new", Replaced: true},
		}},
		{catalog.EventMode, `{"current":"plan","available":["plan"]}`, []domain.Payload{domain.AgentModeChanged{Mode: "plan", Modes: []string{"plan"}}}},
		{catalog.EventError, `{"message":"x"}`, []domain.Payload{domain.AgentErrorReported{Report: json.RawMessage(`{"message":"x"}`)}}},
		{catalog.EventRaw, `{"x":1}`, []domain.Payload{domain.AgentUpdated{Update: json.RawMessage(`{"x":1}`)}}},
		{catalog.EventSilence, `{"since_ms":7000,"note":"n","tool_id":"t","tool":"T"}`, []domain.Payload{domain.AgentSilent{Since: time.Unix(7, 0).UTC(), Note: "n", ToolID: "t", Tool: "T"}}},
		{"never heard of", `1`, []domain.Payload{domain.AgentUpdated{Update: json.RawMessage(`{"data":1,"type":"never heard of"}`)}}},
		{catalog.EventNotice, `{"severity":"warning","title":"Mind the gap","description":"It is wide."}`, note("notice", "Warning: Mind the gap\n\nIt is wide.")},
		{catalog.EventNotice, `{"severity":"info","title":"Hello"}`, note("notice", "Hello")},
		{catalog.EventCompaction, `{"status":"in_progress"}`, nil},
		{catalog.EventCompaction, `{"status":"completed","summary":"short"}`, note("compaction", "The agent has compacted its context.\n\nshort")},
		{catalog.EventCompaction, `{"status":"failed","error":"no room"}`, note("compaction", "The agent could not compact its context: no room")},
		{catalog.EventProcess, `{"pid":7,"mark":"m"}`, nil},
		{catalog.EventPermissionTaken, `{"approval_ids":["nobody's"]}`, nil},
	} {
		got := r.report(t, c.kind, c.data)
		if m, is := first(got).(domain.MessageAdded); is && (m.Subtype == "notice" || m.Subtype == "compaction") {
			m.Key = "" // the number of its event
			got[0] = m
		}
		assert.Equal(t, c.want, got, c.kind)
	}
	assert.Equal(t, 2, r.changed, "its own session, and its mode")
	turn, err := r.store.Turn(t.Context(), r.turn.ID)
	require.NoError(t, err)
	assert.EqualValues(t, 7, turn.Tokens.Input)
	assert.Equal(t, "hello", turn.Result)
	processes, err := r.store.Processes(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []domain.Process{{PID: 7, Mark: "m", Turn: r.turn.ID}}, processes)
}

// Values that a usage report omits stay unchanged.
func TestUsageIsKeptAsItWasToldLast(t *testing.T) {
	r := newRecords(t)
	r.report(t, catalog.EventUsage, `{"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4,"context_used":5,"context_size":6,"cost_usd":0.5}`)
	r.report(t, catalog.EventUsage, `{"output_tokens":7}`)
	turn, err := r.store.Turn(t.Context(), r.turn.ID)
	require.NoError(t, err)
	assert.Equal(t, domain.Tokens{Input: 1, Output: 7, CacheRead: 3, CacheWrite: 4, ContextUsed: 5, ContextSize: 6, CostUSD: 0.5}, turn.Tokens)
}

// The usage of many turns is added up, so implausible values are refused.
func TestFiguresThatMakeNoSenseAreNotKept(t *testing.T) {
	r := newRecords(t)
	r.report(t, catalog.EventUsage, `{"input_tokens":1,"output_tokens":9223372036854775807,"cache_read_tokens":-3,"context_used":5,"context_size":9223372036854775807,"cost_usd":1e308}`)
	turn, err := r.store.Turn(t.Context(), r.turn.ID)
	require.NoError(t, err)
	assert.Equal(t, domain.Tokens{Input: 1, ContextUsed: 5}, turn.Tokens)
}

// A history keeps its order: a human's message follows the earlier output.
func TestAHistoryIsKeptInItsOrder(t *testing.T) {
	r := newRecords(t)
	said := func(text string) catalog.ReplayedPart {
		return catalog.ReplayedPart{EventType: catalog.EventContentDelta, EventData: json.RawMessage(fmt.Sprintf(`{"delta":{"text":%q}}`, text))}
	}
	h := r.ReadHistory([]catalog.ReplayedPart{
		{Role: "user", Text: "first"},
		said("hel"), said("lo"),
		{EventType: catalog.EventContentDelta, EventData: json.RawMessage(`[]`)},
		{Role: "user", Text: "second"},
		said("bye"),
		{EventType: catalog.EventPlan, EventData: json.RawMessage(`{}`)},
		said("end"),
		{EventType: catalog.EventMessageStop},
	}, &redact.Secrets{})
	require.NoError(t, r.store.Write(t.Context(), func(tx store.Tx) error { return r.RecordHistory(tx, r.turn.ID, h) }))
	items, err := r.store.ItemsOfTurn(t.Context(), r.turn.ID)
	require.NoError(t, err)
	var got []string
	for _, i := range items {
		got = append(got, i.Kind+" "+i.Role+": "+i.Content)
	}
	assert.Equal(t, []string{"message user: first", "message assistant: hello", "message user: second", "message assistant: bye", "plan assistant: ", "message assistant: end"}, got)
}

func TestTheSilenceOfAnAgentIsKnownWhileItLasts(t *testing.T) {
	r := newRecords(t)
	_, silent := r.Silence(r.turn.ID)
	assert.False(t, silent)
	reported := false
	r.announced = func() { _, reported = r.Silence(r.turn.ID) }
	r.report(t, catalog.EventSilence, `{"since_ms":7000,"note":"n"}`)
	s, silent := r.Silence(r.turn.ID)
	assert.True(t, reported, "a client that receives it may ask for it")
	assert.True(t, silent)
	assert.Equal(t, "n", s.Note)
	r.report(t, catalog.EventSilence, `{"since_ms":7000,"ended":true}`)
	_, silent = r.Silence(r.turn.ID)
	assert.False(t, silent)
	r.report(t, catalog.EventSilence, `{"since_ms":7000}`)
	r.End(r.turn.ID)
	_, silent = r.Silence(r.turn.ID)
	assert.False(t, silent, "with its turn it has ended")
}

// The complaint of a silent agent stays in the transcript, and so does a long silence. A pause of
// a thinking model or a running tool does not.
func TestASilenceStaysInTheTranscript(t *testing.T) {
	for _, c := range []struct {
		about, data string
		ago         time.Duration
		want        string
	}{
		{"a retry", `"note":"API error 500\ntrying again"`, 7 * time.Second, "fake said nothing for 7 s: API error 500\ntrying again"},
		{"in a tool", `"note":"429","tool_id":"t","tool":"make"`, 150 * time.Second, "fake said nothing for 2 min, in the middle of: make: 429"},
		{"a pause", ``, 59 * time.Second, ""},
		{"a long pause", ``, 61 * time.Second, "fake said nothing for 61 s"},
		{"a tool that takes long", `"tool_id":"t","tool":"make"`, time.Hour, ""},
		{"a slow start", `"note":"it is starting, or opening its session"`, 20 * time.Second, ""},
		{"a slow start with output", `"note":"it is starting, or opening its session\nserver listens"`, 20 * time.Second, ""},
		{"a start with trouble", `"note":"it is starting, or opening its session\nno network"`, 70 * time.Second, "fake said nothing for 70 s: it is starting, or opening its session\nno network"},
	} {
		t.Run(c.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecords(t)
				r.report(t, catalog.EventContentDelta, `{"delta":{"text":"one "}}`)
				data := fmt.Sprintf(`{"since_ms":%d,"ended":%%t`, time.Now().Add(-c.ago).UnixMilli())
				if c.data != "" {
					data += "," + c.data
				}
				assert.Len(t, r.report(t, catalog.EventSilence, fmt.Sprintf(data+"}", false)), 1, "while it lasts it is reported alone")
				reported := r.report(t, catalog.EventSilence, fmt.Sprintf(data+"}", true))[1:]
				if c.want == "" {
					assert.Empty(t, reported)
				} else if assert.Len(t, reported, 1) {
					m := reported[0].(domain.MessageAdded)
					assert.Equal(t, []string{domain.ItemSystem, "agent_silent", c.want}, []string{m.Type, m.Subtype, m.Text})
				}
				assert.Equal(t, []domain.Payload{domain.MessageDelta{Key: "msg-1", Text: "two"}}, r.report(t, catalog.EventContentDelta, `{"delta":{"text":"two"}}`))
				stop := r.report(t, catalog.EventMessageStop, `{}`)
				assert.Equal(t, []domain.Payload{domain.MessageAdded{Type: domain.ItemMessage, Key: "msg-1", Role: "assistant", Text: "one two"}}, stop, "the message went on")
			})
		})
	}
}

// A silence within a message does not end the message.
func TestSilenceIsNoEndOfAMessage(t *testing.T) {
	r := newRecords(t)
	r.report(t, catalog.EventContentDelta, `{"delta":{"text":"one "}}`)
	r.report(t, catalog.EventSilence, `{"since_ms":7000}`)
	assert.Equal(t, []domain.Payload{domain.MessageDelta{Key: "msg-1", Text: "two"}}, r.report(t, catalog.EventContentDelta, `{"delta":{"text":"two"}}`))
}

// A report that arrives after its turn has ended changes nothing, except a process to be ended with
// the turn.
func TestALateReportChangesNothing(t *testing.T) {
	r := newRecords(t)
	require.NoError(t, r.store.Write(t.Context(), func(tx store.Tx) error {
		r.turn.State = domain.Completed
		return tx.UpdateTurn(r.turn)
	}))
	for kind, data := range map[string]string{
		catalog.EventContentDelta: `{"delta":{"text":"too late"}}`, catalog.EventPlan: `{"entries":[]}`, catalog.EventRaw: `{}`, catalog.EventProcess: `{"pid":7}`,
	} {
		assert.Empty(t, r.report(t, kind, data), kind)
	}
	processes, err := r.store.Processes(t.Context())
	require.NoError(t, err)
	assert.Len(t, processes, 1)
}
