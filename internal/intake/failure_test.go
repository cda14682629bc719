package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

var errBroken = errors.New("the store is broken")

// failing counts the calls of a transaction and fails one of them.
type failing struct {
	n     int // the failing call, counted from 1
	calls int
}

func (f *failing) attempt() error {
	f.calls++
	if f.calls == f.n {
		return errBroken
	}
	return nil
}

func (f *failing) Called(store.Tx, domain.Turn) error { return f.attempt() }

func (f *failing) CallEnded(store.Tx, domain.Turn, string) error { return f.attempt() }

func (f *failing) Used(store.Tx, domain.Turn) error { return f.attempt() }

func (f *failing) Taken(store.Tx, int64, []string) error { return f.attempt() }

func (f *failing) Done(store.Tx, domain.Turn, string) error { return f.attempt() }

func (f *failing) Reconsider(store.Tx, int64) error { return f.attempt() }

// failingTx is a transaction whose calls are counted.
type failingTx struct {
	store.Tx
	of *failing
}

// get makes a call that returns a T, unless it is to fail.
func get[T any](t failingTx, call func() (T, error)) (found T, err error) {
	if err := t.of.attempt(); err != nil {
		return found, err
	}
	return call()
}

func (t failingTx) put(call func() error) error {
	if err := t.of.attempt(); err != nil {
		return err
	}
	return call()
}

func (t failingTx) Turn(ctx context.Context, id int64) (domain.Turn, error) {
	return get(t, func() (domain.Turn, error) { return t.Tx.Turn(ctx, id) })
}

func (t failingTx) Find(ctx context.Context, id string) (int64, error) {
	return get(t, func() (int64, error) { return t.Tx.Find(ctx, id) })
}

func (t failingTx) LastTurn(ctx context.Context, session int64) (domain.Turn, error) {
	return get(t, func() (domain.Turn, error) { return t.Tx.LastTurn(ctx, session) })
}

func (t failingTx) Session(ctx context.Context, id int64) (domain.Session, error) {
	return get(t, func() (domain.Session, error) { return t.Tx.Session(ctx, id) })
}

func (t failingTx) AgentSession(ctx context.Context, session int64) (domain.AgentSessionSeen, error) {
	return get(t, func() (domain.AgentSessionSeen, error) { return t.Tx.AgentSession(ctx, session) })
}

func (t failingTx) Append(e domain.Event) (int64, error) {
	return get(t, func() (int64, error) { return t.Tx.Append(e) })
}

func (t failingTx) PutAgentSession(s domain.AgentSessionSeen) error {
	return t.put(func() error { return t.Tx.PutAgentSession(s) })
}

func (t failingTx) UpdateTurn(r domain.Turn) error {
	return t.put(func() error { return t.Tx.UpdateTurn(r) })
}

func (t failingTx) UpdateSession(session domain.Session) error {
	return t.put(func() error { return t.Tx.UpdateSession(session) })
}

func (t failingTx) PutProcess(p domain.Process) error {
	return t.put(func() error { return t.Tx.PutProcess(p) })
}

func (t failingTx) InsertItem(i *domain.Item) error {
	return t.put(func() error { return t.Tx.InsertItem(i) })
}

// A report is refused if any call of the store, of Answers or of the budget fails. Each of these
// calls is made.
func TestNoErrorOfAReportIsLost(t *testing.T) {
	for _, c := range []struct {
		kind, data string
		calls      int // at least
	}{
		{catalog.EventMessageStop, `{}`, 1},
		{catalog.EventToolCall, `{"tool_id":"1","tool":"Bash"}`, 4},
		{catalog.EventToolResult, `{"tool_id":"1","tool":"Bash","result":"done"}`, 4},
		{catalog.EventContent, `{"content":{"type":"resource_link","uri":"u"}}`, 3},
		{catalog.EventPlan, `{}`, 3},
		{catalog.EventNativeSession, `{"session_id":"new","primed":true}`, 6},
		{catalog.EventUsage, `{"input_tokens":7}`, 4},
		{catalog.EventProcess, `{"pid":7,"mark":"m"}`, 2},
		{catalog.EventMode, `{"current":"plan","available":["plan"]}`, 6},
		{catalog.EventSession, `{"mode":{"current":"ask"},"model":{"current":"small"}}`, 6},
		{catalog.EventSilence, `{"since_ms":7000,"note":"n","ended":true}`, 4},
		{catalog.EventError, `{"message":"x","code":"` + transcript.ContentRefused + `"}`, 3},
		{catalog.EventRaw, `{"x":1}`, 2},
		{catalog.EventRaw, ``, 2},
		{catalog.EventPermissionTaken, `{"approval_ids":["a"]}`, 2},
		{catalog.EventElicitationDone, `{"approval_id":"a"}`, 2},
		{kindProgress, `{"percent":7}`, 3},
		{kindSessionBetween, `{"mode":{"current":"ask"}}`, 12},
		{"never heard of", `1`, 2},
	} {
		t.Run(c.kind, func(t *testing.T) {
			r := newRecords(t)
			f := &failing{}
			opts := &r.recorder.opts
			opts.Budget, opts.Answers = f, f
			opts.Keys = func(int64) *redact.Secrets { return &redact.Secrets{} }
			reported, err := r.reportOf(r.turn.ID, c.kind, json.RawMessage(c.data))
			require.NoError(t, err)
			if c.kind == catalog.EventContent {
				reported.blocks = []domain.Content{{Block: domain.Block{Type: "resource_link", URI: "u"}}}
			}
			if c.kind == kindSessionBetween {
				reported.between = &between{"session", "turn"}
			}
			for {
				*f = failing{n: f.n + 1}
				err := r.store.Write(t.Context(), func(tx store.Tx) error { return r.recorder.record(failingTx{tx, f}, reported) })
				if f.calls < f.n {
					require.NoError(t, err)
					break
				}
				require.ErrorIs(t, err, errBroken, "call %d", f.n)
			}
			assert.GreaterOrEqual(t, f.calls, c.calls)
		})
	}
}

// The sign-in methods in an agent's failure are limited in number and size, and redacted.
func TestAFailureIsKeptWithinBounds(t *testing.T) {
	const key = "sk-0123456789"
	var secrets redact.Secrets
	secrets.Add(key)
	assert.Nil(t, withoutKeys(nil, &secrets))
	long := strings.Repeat("é", maxAuthMethodText/2)
	failure := &catalog.ExecutionError{Message: "wrong: " + key, AuthMethods: []domain.AuthMethod{
		{Name: "no id"},
		{ID: long, Name: long, Description: "with " + key},
		{ID: long + "x", Name: "its id is too long"},
		{ID: "cut", Name: "x" + long, Description: long + "x"},
	}}
	clean := withoutKeys(failure, &secrets)
	assert.Equal(t, "wrong: "+redact.Mark, clean.Message)
	assert.Equal(t, []domain.AuthMethod{
		{ID: long, Name: long, Description: "with " + redact.Mark},
		{ID: "cut", Name: "x" + strings.TrimSuffix(long, "é") + "…", Description: long + "…"},
	}, clean.AuthMethods)
	failure.AuthMethods = nil
	for i := range maxAuthMethods + 1 {
		failure.AuthMethods = append(failure.AuthMethods, domain.AuthMethod{ID: fmt.Sprint(i)})
	}
	assert.Equal(t, failure.AuthMethods[:maxAuthMethods], withoutKeys(failure, &secrets).AuthMethods)
}

// An agent's data between prompts counts for its session while its task is the last there and the
// agent is the same.
func TestASessionBetweenTurnsIsOfTheLastTask(t *testing.T) {
	for name, c := range map[string]struct {
		from   between
		change func(store.Tx, *records) error
		want   string
	}{
		"it is the last task":       {between{"session", "turn"}, nil, "ask"},
		"of another session":        {between{"other", "turn"}, nil, ""},
		"of the turn by another id": {between{"session", "session_id"}, nil, ""},
		"of no task":                {between{"session", "x"}, nil, ""},
		"of an empty task":          {between{"session", ""}, nil, ""},
		"another task began": {between{"session", "turn"}, func(tx store.Tx, r *records) error {
			next := r.turn
			next.ID, next.UUID, next.HumanLayerSession, next.HumanLayerRun = 0, "next", "s2", "r2"
			return tx.InsertTurn(&next)
		}, ""},
		"another agent continues": {between{"session", "turn"}, func(tx store.Tx, r *records) error {
			session, err := tx.Session(t.Context(), r.turn.Session)
			session.Agent = "another"
			return errors.Join(err, tx.UpdateSession(session))
		}, ""},
	} {
		r := newRecords(t)
		r.recorder.opts.Keys = func(int64) *redact.Secrets { return &redact.Secrets{} }
		if c.change != nil {
			require.NoError(t, r.store.Write(t.Context(), func(tx store.Tx) error { return c.change(tx, r) }))
		}
		require.NoError(t, r.ReportSession(t.Context(), catalog.ReportSessionParams{
			SessionID: c.from.session, TaskID: c.from.task, Session: catalog.Session{Mode: &catalog.Selection{Current: "ask"}},
		}))
		require.NoError(t, r.store.Write(t.Context(), func(store.Tx) error { return nil })) // waits for the report
		turn, err := r.store.Turn(t.Context(), r.turn.ID)
		require.NoError(t, err)
		assert.Equal(t, c.want, turn.AgentMode, name)
	}
}

// The prompt of a history is the first text of the human that no agent inserted.
func TestThePromptOfAHistory(t *testing.T) {
	r := newRecords(t)
	user := func(text string) catalog.ReplayedPart { return catalog.ReplayedPart{Role: "user", Text: text} }
	said := catalog.ReplayedPart{EventType: catalog.EventContentDelta, EventData: json.RawMessage(`{"delta":{"text":"hello"}}`)}
	for want, list := range map[string][]catalog.ReplayedPart{
		"":     {said, user("")},
		"real": {user(""), said, user("<tag>"), user("real"), user("later")},
		"<a>":  {said, user("<a>"), user("<b>"), user("")},
	} {
		assert.Equal(t, want, r.ReadHistory(list, &redact.Secrets{}).Prompt())
	}
}

func TestPiecesOfOneMessage(t *testing.T) {
	piece := func(kind, parent, message string) report {
		return report{kind: kind, delta: catalog.ContentDelta{ParentID: parent, MessageID: message}}
	}
	first := piece(catalog.EventContentDelta, "p", "m")
	for _, c := range []struct {
		next report
		want bool
	}{
		{first, true},
		{piece(catalog.EventContentDelta, "p", ""), true},
		{piece(catalog.EventContentDelta, "p", "n"), false},
		{piece(catalog.EventContentDelta, "", "m"), false},
		{piece(catalog.EventThinkingChunk, "p", "m"), false},
	} {
		assert.Equal(t, c.want, first.continuedBy(c.next))
		assert.Equal(t, c.want, c.next.continuedBy(first))
	}
}

func TestTheSizeOfAReport(t *testing.T) {
	r := report{data: []byte("12"), delta: catalog.ContentDelta{Delta: catalog.Delta{Text: "345"}}, blocks: []domain.Content{{Data: []byte("6")}, {Data: []byte("78")}}}
	assert.Equal(t, 8, r.size())
}
