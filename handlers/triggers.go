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

// registerTriggers registers the methods of the noun trigger.
func registerTriggers(reg *server.Registry, d Domain) {
	f := nativeFamily
	handle(reg, d, f, "trigger.list", listTriggers, server.Doc("Lists the configured triggers and their last executions. Triggers start "+
		"sessions or notify clients when an event happens; see docs/automation.md."))
	handle(reg, d, f, "trigger.enable", switchTriggers(true),
		server.Doc("Enables one trigger, or all as a whole. That holds until it is changed again."))
	handle(reg, d, f, "trigger.disable", switchTriggers(false),
		server.Doc("Disables one trigger, or all as a whole. That holds until it is changed again."))
	handle(reg, d, f, "trigger.log", triggerLog, server.Doc("Lists executions of triggers, the newest first. The last 500 are kept."))
	handle(reg, d, f, "trigger.test", testTriggers, server.Doc("Returns what each trigger would do for an event, and does nothing. Ignores "+
		"whether a trigger is enabled, its cooldown and its limits."))
}

// recentExecutions limits the listed executions. AIWG defines the number.
const recentExecutions = 10

func listTriggers(ctx context.Context, h *hub.Hub, _ none) (protocol.TriggerList, error) {
	s, err := h.Triggers().Status(ctx, recentExecutions, !clientenv.IsRestricted(ctx))
	if err != nil {
		return protocol.TriggerList{}, err
	}
	r := protocol.TriggerList{Enabled: s.Enabled, Triggers: []protocol.Trigger{}, Recent: []protocol.TriggerExecution{}, Problem: s.Problem}
	if problem := h.Triggers().Sources().Watch.Problem; problem != "" {
		r.Issues = []string{problem}
	}
	for _, t := range s.Triggers {
		r.Triggers = append(r.Triggers, triggerOf(t))
	}
	for _, x := range s.Recent {
		r.Recent = append(r.Recent, executionOf(ctx, h, x, false))
	}
	return r, nil
}

func triggerOf(t trigger.Known) protocol.Trigger {
	r := protocol.Trigger{
		ID: t.ID, Action: t.Action, Enabled: t.On, CooldownMS: t.Cooldown.Milliseconds(), RequiresApproval: t.RequiresApproval,
		Description: t.Description, When: t.When(),
		Event: protocol.TriggerEvent{
			Type: t.Type, Source: t.Source, Pattern: t.Pattern, Cron: t.Cron, TimeZone: t.TimeZone, Paths: t.Paths, Extensions: t.Extensions,
			Ignore: t.Ignore,
		},
		From: "user", File: t.File, Line: t.Line,
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
		ID: x.ID, Trigger: x.Trigger, EventType: x.EventType, Status: x.Status, Time: protocol.Timestamp(x.Time), Action: x.Action,
		ApprovalID: x.Approval, Error: x.Error, Depth: x.Depth,
	}
	if x.Turn != 0 {
		if s, err := h.Query().TurnOf(ctx, x.Turn); err == nil { // else it was deleted
			r.Turn, r.TurnUUID, r.Of = s.Turn.Name(), s.HumanLayerSession, s
		}
	}
	if whole {
		r.Does, r.Event = x.Does, x.Event
	}
	return r
}

func switchTriggers(on bool) func(context.Context, *hub.Hub, protocol.TriggerParams) (protocol.TriggerSwitched, error) {
	return func(ctx context.Context, h *hub.Hub, p protocol.TriggerParams) (protocol.TriggerSwitched, error) {
		if p.Trigger != "" {
			found, err := h.Triggers().Switch(ctx, p.Trigger, on, !clientenv.IsRestricted(ctx))
			if err == nil && !found {
				err = domain.Errorf(domain.KindTriggerNotFound, "no trigger has the id %q", p.Trigger)
			}
			return protocol.TriggerSwitched{Enabled: on}, err
		}
		if clientenv.IsRestricted(ctx) {
			return protocol.TriggerSwitched{}, domain.Errorf(domain.KindNotTrusted, "this editor does not trust the workspace (workspaceTrusted "+
				"is false), so it does not switch triggers as a whole")
		}
		return protocol.TriggerSwitched{Enabled: on}, h.Triggers().SwitchAll(ctx, on)
	}
}

func triggerLog(ctx context.Context, h *hub.Hub, p protocol.TriggerLogParams) (protocol.TriggerLog, error) {
	list, err := h.Triggers().Executions(ctx, p.Trigger, protocol.PageSize(p.Limit, 50, 500), !clientenv.IsRestricted(ctx))
	r := protocol.TriggerLog{Executions: []protocol.TriggerExecution{}}
	for _, x := range list {
		r.Executions = append(r.Executions, executionOf(ctx, h, x, true))
	}
	return r, err
}

func testTriggers(ctx context.Context, h *hub.Hub, p protocol.TriggerTestParams) (protocol.TriggerTrials, error) {
	trials, err := h.Triggers().Try(p.Type, p.Source, p.Payload, !clientenv.IsRestricted(ctx))
	r := protocol.TriggerTrials{Trials: []protocol.TriggerTrial{}}
	for _, t := range trials {
		trial := protocol.TriggerTrial{Trigger: t.Trigger, Fits: t.Fits, Why: t.Why}
		if t.Fits {
			trial.Does = &t.Does
		}
		r.Trials = append(r.Trials, trial)
	}
	return r, err
}
