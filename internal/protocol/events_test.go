package protocol_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// TestEventData pins what clients get of each kind of event, of one without values and of one
// with all of them.
func TestEventData(t *testing.T) {
	var text strings.Builder
	for _, zero := range []domain.Payload{
		domain.TurnStateChanged{},
		domain.MessageDelta{},
		domain.MessageAdded{},
		domain.ToolCallChanged{},
		domain.ApprovalRequested{},
		domain.ApprovalResolved{},
		domain.SettingsChanged{},
		domain.NativeSessionChanged{},
		domain.AgentModeChanged{},
		domain.AgentSessionChanged{},
		domain.PlanChanged{},
		domain.UsageReported{},
		domain.FileChanged{},
		domain.ProgressReported{},
		domain.AgentErrorReported{},
		domain.AgentUpdated{},
		domain.AgentSilent{},
		domain.TerminalPrinted{},
		domain.TerminalExited{},
		domain.TerminalLagged{},
		domain.SecretRequested{},
		domain.Lagged{},
		domain.LogDamaged{},
		domain.SessionDeleted{},
		domain.TriggerExecuted{},
		domain.QueueChanged{},
		domain.ChangeDecided{},
		domain.BuildProgressed{},
		domain.IterationStarted{},
		domain.GateStarted{},
		domain.GateChecked{},
		domain.LoopEnded{},
	} {
		n := 0
		full := reflect.New(reflect.TypeOf(zero)).Elem()
		testkit.Fill(full, &n)
		if p, ok := full.Interface().(domain.ApprovalRequested); ok {
			p.Rule.Covers, p.Elicitation.Mode, p.Elicitation.URL = domain.CoversCommand, domain.ElicitURL, "https://example.com/a"
			full.Set(reflect.ValueOf(p))
		}
		for _, p := range []domain.Payload{zero, full.Interface().(domain.Payload)} {
			ref := domain.TurnRef{HumanLayerSession: "s", HumanLayerRun: "r", Task: 3}
			sent := protocol.Data(domain.Event{Ref: ref, Payload: p})
			decodeAgain(t, protocol.TypeOf(p.Kind()), sent)
			data, err := json.MarshalIndent(sent, "", "\t")
			require.NoError(t, err)
			text.WriteString(string(p.Kind()) + " " + protocol.TypeOf(p.Kind()) + "\n" + string(data) + "\n\n")
		}
	}
	none := protocol.AgentSessionOf(domain.AgentSession{Modes: &domain.Selection{}, Options: []domain.AgentOption{{ID: "o"}}})
	data, err := json.Marshal(none)
	require.NoError(t, err)
	text.WriteString(string(data) + "\n")
	testkit.GoldenBytes(t, "testdata/events.txt", []byte(text.String()))
}

// decodeAgain checks that an event's type has all members of the event's data.
func decodeAgain(t *testing.T, eventType string, sent json.RawMessage) {
	t.Helper()
	e, err := protocol.DecodeEvent(eventType, sent)
	require.NoError(t, err, eventType)
	assert.Equal(t, eventType, e.Kind())
	if eventType == protocol.TypeProgress || eventType == protocol.TypeError { // an executor's report, as it came
		return
	}
	again, err := json.Marshal(e)
	require.NoError(t, err)
	assert.Equal(t, string(sent), string(again), eventType)
}

func TestEveryKindOfEventHasItsType(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range protocol.EventKinds {
		assert.False(t, seen[k.Type], k.Type)
		seen[k.Type] = true
		e, err := protocol.DecodeEvent(k.Type, json.RawMessage("{}"))
		require.NoError(t, err)
		assert.Equal(t, reflect.PointerTo(k.Data), reflect.TypeOf(e), k.Type)
		assert.Zero(t, e.Turn())
	}
}

func TestDecodeEventKeepsWhatItCanRead(t *testing.T) {
	e, err := protocol.DecodeEvent(protocol.TypePlan, json.RawMessage(`{"session_id":"s","entries":7}`))
	require.Error(t, err)
	assert.Equal(t, &protocol.PlanEvent{TurnIDs: protocol.TurnIDs{SessionID: "s"}}, e)

	data := json.RawMessage(`{"session_id":"s","new":1}`)
	e, err = protocol.DecodeEvent("newer", data)
	require.NoError(t, err)
	assert.Equal(t, &protocol.UnknownEvent{TurnIDs: protocol.TurnIDs{SessionID: "s"}, Type: "newer", Data: data}, e)

	e, err = protocol.DecodeEvent(protocol.TypeError, json.RawMessage(`{"task_id":"task-0001","code":"C","message":"m","more":1}`))
	require.NoError(t, err)
	assert.Equal(t, &protocol.ErrorEvent{TurnIDs: protocol.TurnIDs{TaskID: "task-0001"}, Code: "C", Message: "m"}, e)
}
