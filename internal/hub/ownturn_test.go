package hub

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Agent-initiated runs keep the depth of the configured trigger that caused them.
func TestAgentInitiatedRunKeepsTriggerDepth(t *testing.T) {
	after := func(source, metadata string, trigger *catalog.TurnTrigger) domain.Run {
		t.Helper()
		text, err := ownTurnAfter(domain.Run{Source: source, Metadata: json.RawMessage(metadata)}, trigger)
		require.NoError(t, err)
		return domain.Run{Source: domain.SourceAgent, Metadata: text}
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
		return string(metaFor(domain.Run{Metadata: json.RawMessage(metadata)}))
	}
	assert.Equal(t, `{"n":1}`, meta(`{"source":"acp","client":"x","_meta":{"n":1}}`))
	for _, other := range []string{``, `{"source":"acp"}`, `{"_meta":{"n":1}}`, `{"source":"acp","_meta":[]}`, `{"source":"acp","_meta":{"n":"` + strings.Repeat("x", catalog.MaxMeta) + `"}}`} {
		assert.Empty(t, meta(other))
	}
}

// One background task of an agent is stopped, or an error says that the agent can only stop all of
// them.
func TestABackgroundTaskIsStopped(t *testing.T) {
	var daemon catalog.Daemon
	h := openHub(t, database(t), func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		daemon = x.daemon
		return completed
	})
	s := await(t, h, launch(t, h, "p"))
	require.NoError(t, daemon.ReportSession(t.Context(), catalog.ReportSessionParams{
		SessionID: s.Thread.UUID, TaskID: s.UUID, Session: catalog.Session{Background: []domain.BackgroundTask{{ID: "b", Kind: "terminal"}}},
	}))
	requireIdle(t, h, false, "its agent works in the background")
	var asked catalog.ReleaseSessionParams
	result := catalog.ReleaseSessionResult{Reason: catalog.ReleaseCancelled}
	h.executors.(*executors).release = func(p catalog.ReleaseSessionParams) catalog.ReleaseSessionResult {
		asked = p
		return result
	}
	stopped, err := h.StopBackgroundTask(t.Context(), s.SessionID, "b")
	require.NoError(t, err)
	assert.Equal(t, s.SessionID, stopped.SessionID)
	assert.Equal(t, catalog.ReleaseSessionParams{SessionID: s.Thread.UUID, Background: "b"}, asked)
	var refused *domain.Error
	_, err = h.StopBackgroundTask(t.Context(), s.SessionID, "c")
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, []string{domain.KindInvalid, "background", "b"}, append([]string{refused.Kind, refused.Param}, refused.Accepted...))
	for _, result = range []catalog.ReleaseSessionResult{{Reason: catalog.ReleaseKept}, {Reason: "busy"}, {Reason: catalog.ReleaseKept, Error: "no such method"}} {
		_, err = h.StopBackgroundTask(t.Context(), s.SessionID, "b")
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, domain.KindNotOffered, refused.Kind)
		assert.ErrorContains(t, err, "without a task to stop all of")
		assert.ErrorContains(t, err, result.Error)
	}
}
