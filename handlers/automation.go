package handlers

import (
	"context"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/trigger"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerAutomation registers automation.* (AIWG): what AIWG calls a rule is a trigger.
func registerAutomation(reg *server.Registry, d Domain) {
	handle(reg, d, taskFamily, "automation.status", automationStatusOf, server.Doc("Tells the triggers of the configuration, which begin sessions and tell people by themselves, and what they have done last. See docs/automation.md."))
	handle(reg, d, taskFamily, "automation.enable", switchAutomation(true), server.Doc("Switches triggers on: one, or all as a whole. That holds until it is switched again."))
	handle(reg, d, taskFamily, "automation.disable", switchAutomation(false), server.Doc("Switches triggers off: one, or all as a whole. That holds until it is switched again."))
	handle(reg, d, taskFamily, "automation.log", automationLog, server.Doc("Tells what triggers have done, the newest first. The last 500 are kept."))
	handle(reg, d, taskFamily, "automation.test", automationTest, server.Doc("Tells what each trigger would do for an event, and does none of it. Whether one is switched on, its cooldown and its limits do not count."))
}

// recentExecutions is how many AIWG tells.
const recentExecutions = 10

type automationStatus struct {
	Enabled          bool              `json:"enabled" doc:"As a whole."`
	RuleCount        int               `json:"ruleCount"`
	Rules            []automationRule  `json:"rules"`
	RecentExecutions []executionResult `json:"recentExecutions" doc:"The last 10, the newest last."`
	Problem          string            `json:"problem,omitempty" doc:"Why no trigger does anything."`
	Issues           []string          `json:"issues,omitempty" doc:"What triggers are not told, and what to do: the system lets no more directories be watched."`
}

type automationRule struct {
	ID               string             `json:"id"`
	Trigger          triggerEvent       `json:"trigger" doc:"What it is for."`
	Action           config.Action      `json:"action" doc:"What it does."`
	Enabled          bool               `json:"enabled"`
	CooldownMs       int64              `json:"cooldownMs"`
	RequiresApproval bool               `json:"requiresApproval" doc:"A person is asked first."`
	Description      string             `json:"description,omitempty"`
	Conditions       []triggerCondition `json:"conditions,omitempty"`
	When             string             `json:"when" doc:"What it is for, in words."`
	LastFired        string             `json:"lastFired,omitempty" doc:"When it did something last."`
	NextFire         string             `json:"nextFire,omitempty" doc:"When its time comes."`
	From             string             `json:"from" doc:"Whose configuration it stands in: user or project."`
	File             string             `json:"file,omitempty"`
	Line             int                `json:"line,omitempty"`
}

type triggerEvent struct {
	Type       string   `json:"type,omitempty"`
	Source     string   `json:"source,omitempty"`
	Pattern    string   `json:"pattern,omitempty"`
	Cron       string   `json:"cron,omitempty"`
	TimeZone   string   `json:"time_zone,omitempty"`
	Paths      []string `json:"paths,omitempty"`
	Extensions []string `json:"extensions,omitempty"`
	Ignore     []string `json:"ignore,omitempty"`
}

type triggerCondition struct {
	Field    string `json:"field"`
	Operator string `json:"operator"`
	Value    any    `json:"value,omitempty"`
}

type executionResult struct {
	ID         int64           `json:"id"`
	RuleID     string          `json:"ruleId"`
	EventType  string          `json:"eventType"`
	Status     string          `json:"status" doc:"submitted, notified, webhook_sent, denied, skipped_no_approver, unknown_action_type, error, waiting_approval, sending, depth_limited or rate_limited."`
	Timestamp  string          `json:"timestamp"`
	Action     string          `json:"action"`
	TaskID     string          `json:"taskId,omitempty" doc:"Of the session that was begun, or that has the question."`
	SessionID  string          `json:"session_id,omitempty"`
	ApprovalID string          `json:"approval_id,omitempty"`
	Error      string          `json:"error,omitempty"`
	Depth      int             `json:"depth,omitempty" doc:"How many sessions in a row triggers had begun before."`
	Does       json.RawMessage `json:"does,omitempty" doc:"The action with what the event has in the place of its templates."`
	Event      json.RawMessage `json:"event,omitempty"`
}

func automationStatusOf(ctx context.Context, h *hub.Hub, _ none) (automationStatus, error) {
	s, err := h.Triggers().Status(ctx, recentExecutions, !clientenv.IsRestricted(ctx))
	if err != nil {
		return automationStatus{}, err
	}
	r := automationStatus{Enabled: s.Enabled, RuleCount: len(s.Triggers), Rules: []automationRule{}, RecentExecutions: []executionResult{}, Problem: s.Problem}
	if problem := h.Triggers().Sources().Watch.Problem; problem != "" {
		r.Issues = []string{problem}
	}
	for _, t := range s.Triggers {
		r.Rules = append(r.Rules, ruleOf(t))
	}
	for _, x := range s.Recent {
		r.RecentExecutions = append([]executionResult{executionOf(ctx, h, x, false)}, r.RecentExecutions...)
	}
	return r, nil
}

func ruleOf(t trigger.Known) automationRule {
	r := automationRule{
		ID: t.ID, Action: t.Action, Enabled: t.On, CooldownMs: t.Cooldown.Milliseconds(), RequiresApproval: t.RequiresApproval, Description: t.Description, When: t.When(),
		Trigger: triggerEvent{t.Type, t.Source, t.Pattern, t.Cron, t.TimeZone, t.Paths, t.Extensions, t.Ignore}, From: "user", File: t.File, Line: t.Line,
	}
	if t.FromProject {
		r.From = "project"
	}
	for _, c := range t.Conditions {
		r.Conditions = append(r.Conditions, triggerCondition(c))
	}
	if !t.State.Fired.IsZero() {
		r.LastFired = protocol.Timestamp(t.State.Fired)
	}
	if !t.Next.IsZero() {
		r.NextFire = t.Next.Format(time.RFC3339)
	}
	return r
}

func executionOf(ctx context.Context, h *hub.Hub, x domain.TriggerExecution, whole bool) executionResult {
	r := executionResult{
		ID: x.ID, RuleID: x.Trigger, EventType: x.EventType, Status: x.Status, Timestamp: protocol.Timestamp(x.Time), Action: x.Action, ApprovalID: x.Approval, Error: x.Error, Depth: x.Depth,
	}
	if x.Run != 0 {
		if s, err := h.Query().SessionOf(ctx, x.Run); err == nil { // else it was deleted
			r.TaskID, r.SessionID = domain.TaskName(s.Task), s.SessionID
		}
	}
	if whole {
		r.Does, r.Event = x.Does, x.Event
	}
	return r
}

type automationParams struct {
	RuleID string `json:"ruleId,omitempty" doc:"One trigger; absent: all as a whole."`
}

type automationSwitched struct {
	Enabled bool   `json:"enabled" doc:"The trigger, or all as a whole."`
	Success bool   `json:"success" doc:"False: there is no such trigger."`
	RuleID  string `json:"ruleId,omitempty"`
}

func switchAutomation(on bool) func(context.Context, *hub.Hub, automationParams) (automationSwitched, error) {
	return func(ctx context.Context, h *hub.Hub, p automationParams) (automationSwitched, error) {
		r := automationSwitched{Enabled: on, Success: true, RuleID: p.RuleID}
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

type automationLogParams struct {
	RuleID string `json:"ruleId,omitempty" doc:"One trigger; absent: all."`
	Limit  *uint  `json:"limit,omitempty" doc:"How many; 50 unless told, 500 at most."`
}

type automationLogResult struct {
	Executions []executionResult `json:"executions"`
}

func automationLog(ctx context.Context, h *hub.Hub, p automationLogParams) (automationLogResult, error) {
	list, err := h.Triggers().Executions(ctx, p.RuleID, pageSize(p.Limit, 50, 500), !clientenv.IsRestricted(ctx))
	r := automationLogResult{Executions: []executionResult{}}
	for _, x := range list {
		r.Executions = append(r.Executions, executionOf(ctx, h, x, true))
	}
	return r, err
}

type automationTestParams struct {
	Type    string          `json:"type" doc:"Such as run.failed or file.modify."`
	Source  string          `json:"source" doc:"watch, schedule, run or approval."`
	Payload json.RawMessage `json:"payload,omitempty" doc:"An object: what the event has besides."`
}

type automationTestResult struct {
	Rules []automationTrial `json:"rules"`
}

type automationTrial struct {
	RuleID string         `json:"ruleId"`
	Fits   bool           `json:"fits"`
	Why    string         `json:"why,omitempty" doc:"It is not for the event."`
	Does   *config.Action `json:"does,omitempty" doc:"What it would do."`
}

func automationTest(ctx context.Context, h *hub.Hub, p automationTestParams) (automationTestResult, error) {
	trials, err := h.Triggers().Try(p.Type, p.Source, p.Payload, !clientenv.IsRestricted(ctx))
	r := automationTestResult{Rules: []automationTrial{}}
	for _, t := range trials {
		trial := automationTrial{RuleID: t.Trigger, Fits: t.Fits, Why: t.Why}
		if t.Fits {
			trial.Does = &t.Does
		}
		r.Rules = append(r.Rules, trial)
	}
	return r, err
}
