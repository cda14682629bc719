package testkit

import (
	"reflect"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Payloads returns two events' payloads of each kind that clients get: one without values, and one with
// all of them.
func Payloads() (list []domain.Payload) {
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
		Fill(full, &n)
		if p, ok := full.Interface().(domain.ApprovalRequested); ok {
			p.Rule.Covers, p.Elicitation.Mode, p.Elicitation.URL = domain.CoversCommand, domain.ElicitURL, "https://example.com/a"
			full.Set(reflect.ValueOf(p))
		}
		list = append(list, zero, full.Interface().(domain.Payload))
	}
	return list
}
