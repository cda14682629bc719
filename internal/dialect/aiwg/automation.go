package aiwg

import (
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// RuleParams name a rule.
type RuleParams struct {
	RuleID string `json:"ruleId,omitempty" doc:"One trigger. Absent: all as a whole."`
}

// A Switched is the result of automation.enable and automation.disable.
type Switched struct {
	Enabled bool   `json:"enabled" doc:"The state of the trigger, or of all as a whole."`
	Success bool   `json:"success" doc:"false: the trigger does not exist."`
	RuleID  string `json:"ruleId,omitempty"`
}

// AutomationOf returns the triggers in AIWG's form.
func AutomationOf(l protocol.TriggerList) protocol.AutomationStatus {
	r := protocol.AutomationStatus{Enabled: l.Enabled, RuleCount: len(l.Triggers), Rules: []protocol.AutomationRule{}, RecentExecutions: []protocol.AutomationExecution{}, Problem: l.Problem, Issues: l.Issues}
	for _, t := range l.Triggers {
		r.Rules = append(r.Rules, protocol.AutomationRule{
			ID: t.ID, Trigger: t.Event, Action: t.Action, Enabled: t.Enabled, CooldownMS: t.CooldownMS, RequiresApproval: t.RequiresApproval,
			Description: t.Description, Conditions: t.Conditions, When: t.When, LastFired: t.LastFired, NextFire: t.NextFire, From: t.From, File: t.File, Line: t.Line,
		})
	}
	for _, x := range slices.Backward(l.Recent) {
		one := protocol.AutomationExecution{
			ID: x.ID, RuleID: x.Trigger, EventType: x.EventType, Status: x.Status, Timestamp: x.Time, Action: x.Action,
			SessionID: x.TurnUUID, ApprovalID: x.ApprovalID, Error: x.Error, Depth: x.Depth,
		}
		if x.Of.Task > 0 {
			one.TaskID = domain.TaskName(x.Of.Task)
		}
		r.RecentExecutions = append(r.RecentExecutions, one)
	}
	return r
}
