package protocol_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

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
			data, err := json.MarshalIndent(protocol.Data(domain.Event{Ref: ref, Payload: p}), "", "\t")
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
