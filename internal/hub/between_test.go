package hub

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/query"
)

// Session updates that an agent sends between two turns are stored and announced as in a turn.
func TestWhatAnAgentTellsBetweenTwoTurns(t *testing.T) {
	const secret = "sk-very-secret-0123456789"
	var daemon catalog.Daemon
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		daemon = x.daemon
		_, err := x.daemon.GetAPIKey(ctx, catalog.GetAPIKeyParams{SessionToken: x.p.SessionToken, Service: "environmental"})
		assert.NoError(t, err)
		return choosy(ctx, x)
	}, func(o *Options) { o.Getenv = func(string) string { return secret } })
	heard := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventAgentSession, domain.EventAgentMode}}, -1)
	s := await(t, h, launch(t, h, "p"))
	tell := func(task, session string, reported catalog.Session) {
		require.NoError(t, daemon.ReportSession(t.Context(), catalog.ReportSessionParams{SessionID: session, TaskID: task, Session: reported}))
	}
	tell(s.UUID, s.Session.UUID, catalog.Session{
		Mode: &catalog.Selection{Current: "code"}, Commands: []domain.AgentCommand{{Name: "late"}}, Info: &domain.SessionInfo{Title: "It has " + secret},
	})
	heard.until(t, func() bool { return slices.Contains(heard.kinds(), domain.EventAgentMode) })
	all := heard.all()
	require.Len(t, all, 3)
	reported := all[1].Payload.(domain.AgentSessionChanged).AgentSession
	assert.Equal(t, s.Turn.ID, all[1].Turn)
	assert.Equal(t, []domain.AgentCommand{{Name: "late"}}, reported.Commands)
	assert.Equal(t, &domain.SessionInfo{Title: "It has [secret]"}, reported.Info, "the agent has its keys still")
	assert.Equal(t, domain.AgentModeChanged{Mode: "code"}, all[2].Payload)
	seen := must(h.store.AgentSession(t.Context(), s.Turn.Session))(t)
	assert.Equal(t, "code", seen.Mode())
	assert.Equal(t, []domain.AgentCommand{{Name: "late"}}, seen.Commands)
	after := turnOf(t, h, s.UUID)
	assert.Equal(t, []any{domain.Completed, "code"}, []any{after.State, after.AgentMode}, "the next turn goes on in it")

	// An update without a change is ignored.
	next := must(h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: "on"}))(t)
	await(t, h, next)
	last := h.events.Last()
	tell(next.UUID, s.Session.UUID, catalog.Session{})
	tell(next.UUID, s.Session.UUID, catalog.Session{Commands: []domain.AgentCommand{}})
	until(t, h, func() bool { return h.events.Last() > last }, "the last report")
	assert.Equal(t, last+1, h.events.Last())
}

// Usage and notices that an agent reports after a turn count for that turn.
func TestWhatAnAgentTellsLateIsBookedOnItsTurn(t *testing.T) {
	var daemon catalog.Daemon
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		daemon = x.daemon
		x.report(catalog.EventUsage, catalog.Usage{ContextUsed: 5, ContextSize: 100, CostUSD: 0.25})
		return completed
	})
	s := await(t, h, launch(t, h, "p"))
	late := func(kind string, data any) error {
		return daemon.ReportLate(t.Context(), catalog.ReportLateParams{SessionID: s.Session.UUID, TaskID: s.UUID, EventType: kind, EventData: encode(data)})
	}
	require.NoError(t, late(catalog.EventUsage, catalog.Usage{ContextUsed: 12, ContextSize: 100, CostUSD: 0.75}))
	require.NoError(t, late(catalog.EventNotice, catalog.Notice{Severity: "error", Title: "Between"}))
	assert.Equal(t, domain.KindInvalid, kindOf(t, late(catalog.EventContent, catalog.MessageContent{})))
	said := func() bool {
		c := transcriptOf(t, h, s.UUID)
		return slices.ContainsFunc(c.Entries, func(e query.Entry) bool { return strings.Contains(e.Content, "Between") })
	}
	until(t, h, said, "the notice")
	now := turnOf(t, h, s.UUID)
	assert.Equal(t, []any{domain.Completed, 0.75, int64(12)}, []any{now.State, now.Tokens.CostUSD, now.Tokens.ContextUsed})
}

// Text that an agent sends after the end of its turn joins the turn's last message. Secrets are
// redacted, also one that the end has split. Clients get the whole message again, under its key.
func TestLateTextIsPartOfItsMessage(t *testing.T) {
	const secret = "sk-very-secret-0123456789"
	var daemon catalog.Daemon
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		daemon = x.daemon
		_, err := x.daemon.GetAPIKey(ctx, catalog.GetAPIKeyParams{SessionToken: x.p.SessionToken, Service: "environmental"})
		assert.NoError(t, err)
		x.report(catalog.EventContentDelta, catalog.ContentDelta{MessageID: "m", Delta: catalog.Delta{Text: "It begins"}})
		return completed
	}, func(o *Options) { o.Getenv = func(string) string { return secret } })
	heard := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventMessage, domain.EventTurnState}}, -1)
	s := await(t, h, launch(t, h, "p"))
	for _, text := range []string{", goes on ", secret + " sk-very-", "secret-0123456789."} {
		require.NoError(t, daemon.ReportLate(t.Context(), catalog.ReportLateParams{
			SessionID: s.Session.UUID, TaskID: s.UUID, EventType: catalog.EventContentDelta, EventData: encode(catalog.ContentDelta{MessageID: "m", Delta: catalog.Delta{Text: text}}),
		}))
	}
	const want = "It begins, goes on [secret] [secret]."
	messages := func() (list []domain.MessageAdded) {
		for _, e := range heard.all() {
			if m, ok := e.Payload.(domain.MessageAdded); ok && m.Role == "assistant" {
				list = append(list, m)
			}
		}
		return list
	}
	heard.until(t, func() bool { all := messages(); return len(all) > 0 && all[len(all)-1].Text == want })
	for _, m := range messages() {
		assert.Equal(t, messages()[0].Key, m.Key)
	}
	c := transcriptOf(t, h, s.UUID)
	require.Len(t, c.Entries, 2, "the prompt and one message")
	assert.Equal(t, []any{want, false}, []any{c.Entries[1].Content, c.Entries[1].Open})
	now := turnOf(t, h, s.UUID)
	assert.Equal(t, []any{domain.Completed, want, 1}, []any{now.State, now.Result, now.Messages})
}

// Agent-initiated turns keep the depth of the configured trigger that caused them.
func TestAgentInitiatedTurnKeepsTriggerDepth(t *testing.T) {
	after := func(source, metadata string, trigger *catalog.TurnTrigger) domain.Turn {
		t.Helper()
		text := must(ownTurnAfter(domain.Turn{Source: source, Metadata: json.RawMessage(metadata)}, trigger))(t)
		return domain.Turn{Source: domain.SourceAgent, Metadata: text}
	}
	first := after(domain.SourceTrigger, `{"trigger":"nightly","trigger_depth":3,"plan":[]}`, &catalog.TurnTrigger{Kind: "goal"})
	assert.JSONEq(t, `{"turn_trigger":{"kind":"goal"},"trigger":"nightly","trigger_depth":3}`, string(first.Metadata))
	assert.Equal(t, "Continued by itself: working towards its goal", ownTurnOf(first).trigger().String())
	second := after(domain.SourceAgent, string(first.Metadata), nil)
	assert.JSONEq(t, `{"trigger":"nightly","trigger_depth":3}`, string(second.Metadata))
	forged := after(domain.SourceSession, `{"trigger":"forged","trigger_depth":9}`, nil)
	assert.JSONEq(t, `{}`, string(forged.Metadata))
	long := after(domain.SourceSession, ``, &catalog.TurnTrigger{Kind: "task", Label: strings.Repeat("ä", 1<<20)})
	assert.Less(t, len(ownTurnOf(long).trigger().String()), 600)
}

// The _meta of an ACP editor's prompt reaches the agent; the metadata of other clients does not.
func TestMetaOfAnEditorsPrompt(t *testing.T) {
	meta := func(metadata string) string {
		return string(metaFor(domain.Turn{Metadata: json.RawMessage(metadata)}))
	}
	assert.Equal(t, `{"n":1}`, meta(`{"source":"acp","client":"x","_meta":{"n":1}}`))
	for _, other := range []string{``, `{"source":"acp"}`, `{"_meta":{"n":1}}`, `{"source":"acp","_meta":[]}`, `{"source":"acp","_meta":{"n":"` + strings.Repeat("x", catalog.MaxMeta) + `"}}`} {
		assert.Empty(t, meta(other))
	}
}

// A session whose agent works in the background is neither archived nor deleted: it would come
// back, and the agent would work on.
func TestASessionWhoseAgentGoesOnIsNotPutAway(t *testing.T) {
	var daemon catalog.Daemon
	h := openHub(t, database(t), leaves(&daemon))
	s := await(t, h, launch(t, h, "p"))
	works := func(tasks []domain.BackgroundTask) {
		require.NoError(t, daemon.ReportSession(t.Context(), catalog.ReportSessionParams{SessionID: s.Session.UUID, TaskID: s.UUID, Session: catalog.Session{Background: tasks}}))
	}
	works([]domain.BackgroundTask{{ID: "goal", Kind: "goal", Title: "/goal be fast"}})
	requireIdle(t, h, false, "its agent has a goal")
	const refused = "its agent works in the background (/goal be fast): end that first, with `duet-rpc session interrupt 1.1`"
	yes := true
	_, err := h.Settings().Update(t.Context(), s.HumanLayerSession, domain.SettingsChanged{Archived: &yes})
	require.ErrorContains(t, err, refused)
	_, err = h.Delete(t.Context(), s.HumanLayerSession)
	require.ErrorContains(t, err, refused)
	works([]domain.BackgroundTask{})
	requireIdle(t, h, true, "the goal is reached")
	must(h.Settings().Update(t.Context(), s.HumanLayerSession, domain.SettingsChanged{Archived: &yes}))(t)
	must(h.Delete(t.Context(), s.HumanLayerSession))(t)
}

// One background task of an agent is stopped, or an error says that the agent can only stop all of
// them.
func TestABackgroundTaskIsStopped(t *testing.T) {
	var daemon catalog.Daemon
	h := openHub(t, database(t), leaves(&daemon))
	s := await(t, h, launch(t, h, "p"))
	require.NoError(t, daemon.ReportSession(t.Context(), catalog.ReportSessionParams{
		SessionID: s.Session.UUID, TaskID: s.UUID, Session: catalog.Session{Background: []domain.BackgroundTask{{ID: "b", Kind: "terminal"}}},
	}))
	requireIdle(t, h, false, "its agent works in the background")
	var asked catalog.ReleaseSessionParams
	result := catalog.ReleaseSessionResult{Reason: catalog.ReleaseCancelled}
	h.executors.(*executors).release = func(p catalog.ReleaseSessionParams) catalog.ReleaseSessionResult {
		asked = p
		return result
	}
	assert.Equal(t, s.HumanLayerSession, must(h.StopBackgroundTask(t.Context(), s.HumanLayerSession, "b"))(t).HumanLayerSession)
	assert.Equal(t, catalog.ReleaseSessionParams{SessionID: s.Session.UUID, Background: "b"}, asked)
	var refused *domain.Error
	_, err := h.StopBackgroundTask(t.Context(), s.HumanLayerSession, "c")
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, []string{domain.KindInvalid, "background", "b"}, append([]string{refused.Kind, refused.Param}, refused.Accepted...))
	for _, result = range []catalog.ReleaseSessionResult{{Reason: catalog.ReleaseKept}, {Reason: "busy"}, {Reason: catalog.ReleaseKept, Error: "no such method"}} {
		_, err = h.StopBackgroundTask(t.Context(), s.HumanLayerSession, "b")
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, domain.KindNotOffered, refused.Kind)
		assert.ErrorContains(t, err, "without a task to stop all of")
		assert.ErrorContains(t, err, result.Error)
	}
}
