package handlers

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/trigger"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerAutomation registers automation.* (AIWG). AIWG's rules are Duet's triggers.
func registerAutomation(reg *server.Registry, d Domain) {
	handle(reg, d, taskFamily, "automation.status", automationStatusOf, server.Doc("Lists the configured triggers and their last executions. Triggers start sessions or notify clients when an event happens; see docs/automation.md."))
	handle(reg, d, taskFamily, "automation.enable", switchAutomation(true), server.Doc("Enables one trigger, or all as a whole. That holds until it is changed again."))
	handle(reg, d, taskFamily, "automation.disable", switchAutomation(false), server.Doc("Disables one trigger, or all as a whole. That holds until it is changed again."))
	handle(reg, d, taskFamily, "automation.log", automationLog, server.Doc("Lists executions of triggers, the newest first. The last 500 are kept."))
	handle(reg, d, taskFamily, "automation.test", automationTest, server.Doc("Returns what each trigger would do for an event, and does nothing. Ignores whether a trigger is enabled, its cooldown and its limits."))
}

// recentExecutions limits the listed executions. AIWG defines the number.
const recentExecutions = 10

func automationStatusOf(ctx context.Context, h *hub.Hub, _ none) (protocol.AutomationStatus, error) {
	s, err := h.Triggers().Status(ctx, recentExecutions, !clientenv.IsRestricted(ctx))
	if err != nil {
		return protocol.AutomationStatus{}, err
	}
	r := protocol.AutomationStatus{Enabled: s.Enabled, RuleCount: len(s.Triggers), Rules: []protocol.Trigger{}, RecentExecutions: []protocol.TriggerExecution{}, Problem: s.Problem}
	if problem := h.Triggers().Sources().Watch.Problem; problem != "" {
		r.Issues = []string{problem}
	}
	for _, t := range s.Triggers {
		r.Rules = append(r.Rules, ruleOf(t))
	}
	for _, x := range s.Recent {
		r.RecentExecutions = append([]protocol.TriggerExecution{executionOf(ctx, h, x, false)}, r.RecentExecutions...)
	}
	return r, nil
}

func ruleOf(t trigger.Known) protocol.Trigger {
	r := protocol.Trigger{
		ID: t.ID, Action: t.Action, Enabled: t.On, CooldownMs: t.Cooldown.Milliseconds(), RequiresApproval: t.RequiresApproval, Description: t.Description, When: t.When(),
		Trigger: protocol.TriggerEvent{Type: t.Type, Source: t.Source, Pattern: t.Pattern, Cron: t.Cron, TimeZone: t.TimeZone, Paths: t.Paths, Extensions: t.Extensions, Ignore: t.Ignore}, From: "user", File: t.File, Line: t.Line,
	}
	if t.FromProject {
		r.From = "project"
	}
	for _, c := range t.Conditions {
		r.Conditions = append(r.Conditions, protocol.TriggerCondition(c))
	}
	if !t.State.Fired.IsZero() {
		r.LastFired = protocol.Timestamp(t.State.Fired)
	}
	if !t.Next.IsZero() {
		r.NextFire = t.Next.Format(time.RFC3339)
	}
	return r
}

func executionOf(ctx context.Context, h *hub.Hub, x domain.TriggerExecution, whole bool) protocol.TriggerExecution {
	r := protocol.TriggerExecution{
		ID: x.ID, RuleID: x.Trigger, EventType: x.EventType, Status: x.Status, Timestamp: protocol.Timestamp(x.Time), Action: x.Action, ApprovalID: x.Approval, Error: x.Error, Depth: x.Depth,
	}
	if x.Turn != 0 {
		if s, err := h.Query().TurnOf(ctx, x.Turn); err == nil { // else it was deleted
			r.TaskID, r.SessionID = domain.TaskName(s.Task), s.HumanLayerSession
		}
	}
	if whole {
		r.Does, r.Event = x.Does, x.Event
	}
	return r
}

func switchAutomation(on bool) func(context.Context, *hub.Hub, protocol.AutomationParams) (protocol.AutomationSwitched, error) {
	return func(ctx context.Context, h *hub.Hub, p protocol.AutomationParams) (protocol.AutomationSwitched, error) {
		r := protocol.AutomationSwitched{Enabled: on, Success: true, RuleID: p.RuleID}
		var err error
		switch {
		case p.RuleID != "":
			r.Success, err = h.Triggers().Switch(ctx, p.RuleID, on, !clientenv.IsRestricted(ctx))
			r.Enabled = on && r.Success
		case clientenv.IsRestricted(ctx):
			err = domain.Errorf(domain.KindNotTrusted, "this editor does not trust the workspace (workspaceTrusted is false), so it does not switch triggers as a whole")
		default:
			err = h.Triggers().SwitchAll(ctx, on)
		}
		return r, err
	}
}

func automationLog(ctx context.Context, h *hub.Hub, p protocol.AutomationLogParams) (protocol.AutomationLogResult, error) {
	list, err := h.Triggers().Executions(ctx, p.RuleID, pageSize(p.Limit, 50, 500), !clientenv.IsRestricted(ctx))
	r := protocol.AutomationLogResult{Executions: []protocol.TriggerExecution{}}
	for _, x := range list {
		r.Executions = append(r.Executions, executionOf(ctx, h, x, true))
	}
	return r, err
}

func automationTest(ctx context.Context, h *hub.Hub, p protocol.AutomationTestParams) (protocol.AutomationTestResult, error) {
	trials, err := h.Triggers().Try(p.Type, p.Source, p.Payload, !clientenv.IsRestricted(ctx))
	r := protocol.AutomationTestResult{Rules: []protocol.AutomationTrial{}}
	for _, t := range trials {
		trial := protocol.AutomationTrial{RuleID: t.Trigger, Fits: t.Fits, Why: t.Why}
		if t.Fits {
			trial.Does = &t.Does
		}
		r.Rules = append(r.Rules, trial)
	}
	return r, err
}
