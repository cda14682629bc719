package protocol

import (
	"encoding/json"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A TriggerList has the configured triggers.
type TriggerList struct {
	Enabled  bool               `json:"enabled" doc:"Whether triggers are enabled as a whole."`
	Triggers []Trigger          `json:"triggers"`
	Recent   []TriggerExecution `json:"recent" doc:"The last 10 executions, the newest first."`
	Problem  string             `json:"problem,omitempty" doc:"Why no trigger works."`
	Issues   []string           `json:"issues,omitempty" doc:"Changes that triggers cannot see because the system allows no more watches, and the remedy."`
}

// A Trigger acts by itself when an event happens.
type Trigger struct {
	ID               string               `json:"trigger" doc:"Its id in the configuration."`
	Enabled          bool                 `json:"enabled"`
	When             string               `json:"when" doc:"The events that it reacts to, for people."`
	Event            TriggerEvent         `json:"event" doc:"The events that it reacts to."`
	Conditions       []TriggerCondition   `json:"conditions,omitempty"`
	Action           domain.TriggerAction `json:"action"`
	CooldownMS       int64                `json:"cooldown_ms" doc:"The shortest time between two actions, in milliseconds."`
	RequiresApproval bool                 `json:"requires_approval" doc:"A person must approve the action first."`
	Description      string               `json:"description,omitempty"`
	LastFired        string               `json:"last_fired,omitempty" doc:"When it acted last."`
	NextFire         string               `json:"next_fire,omitempty" doc:"The next scheduled time."`
	From             string               `json:"from" doc:"The configuration that defines it: user or project."`
	File             string               `json:"file,omitempty"`
	Line             int                  `json:"line,omitempty"`
}

type TriggerEvent struct {
	Type       string   `json:"type,omitempty"`
	Source     string   `json:"source,omitempty"`
	Pattern    string   `json:"pattern,omitempty"`
	Cron       string   `json:"cron,omitempty"`
	TimeZone   string   `json:"time_zone,omitempty"`
	Paths      []string `json:"paths,omitempty"`
	Extensions []string `json:"extensions,omitempty"`
	Ignore     []string `json:"ignore,omitempty"`
}

type TriggerCondition struct {
	Field    string `json:"field"`
	Operator string `json:"operator"`
	Value    any    `json:"value,omitempty"`
}

// A TriggerExecution is what a trigger did for an event.
type TriggerExecution struct {
	ID         int64           `json:"execution_id"`
	Trigger    string          `json:"trigger"`
	EventType  string          `json:"event_type"`
	Status     string          `json:"status" doc:"submitted, notified, webhook_sent, denied, skipped_no_approver, unknown_action_type, error, waiting_approval, sending, depth_limited or rate_limited."`
	Time       string          `json:"time"`
	Action     string          `json:"action"`
	Turn       string          `json:"turn,omitempty" doc:"The turn that it started, or that has the question."`
	TurnUUID   string          `json:"turn_uuid,omitempty"`
	ApprovalID string          `json:"approval,omitempty" doc:"The question that it waits for."`
	Error      string          `json:"error,omitempty"`
	Depth      int             `json:"depth,omitempty" doc:"Number of executions in a row that led to this one."`
	Does       json.RawMessage `json:"does,omitempty" doc:"The action, with values of the event in place of its templates."`
	Event      json.RawMessage `json:"event,omitempty"`

	Of domain.TurnInSession `json:"-"` // for dialects, whose ids it has; zero: it started none
}

type TriggerParams struct {
	Trigger string `json:"trigger,omitempty" doc:"One trigger, by its id. Absent: all as a whole."`
}

type TriggerSwitched struct {
	Enabled bool `json:"enabled" doc:"The state of the trigger, or of all as a whole."`
}

type TriggerLogParams struct {
	Trigger string `json:"trigger,omitempty" doc:"Only this trigger."`
	Limit   *uint  `json:"limit,omitempty" doc:"Default 50, at most 500."`
}

type TriggerLog struct {
	Executions []TriggerExecution `json:"executions" doc:"The newest first."`
}

type TriggerTestParams struct {
	Type    string          `json:"type" doc:"The event's type, such as turn.failed or file.modify."`
	Source  string          `json:"source" doc:"watch, schedule, turn or approval."`
	Payload json.RawMessage `json:"payload,omitempty" doc:"The event's other members: an object."`
}

type TriggerTrials struct {
	Trials []TriggerTrial `json:"trials"`
}

// A TriggerTrial is what a trigger would do for an event.
type TriggerTrial struct {
	Trigger string                `json:"trigger"`
	Fits    bool                  `json:"fits"`
	Why     string                `json:"why,omitempty" doc:"Why the trigger does not fit the event."`
	Does    *domain.TriggerAction `json:"does,omitempty" doc:"The action that it would do."`
}

// An AutomationStatus is the result of automation.status and a part of daemon.status, both in AIWG's
// form. AIWG's rules are Duet's triggers.
type AutomationStatus struct {
	Enabled          bool                  `json:"enabled" doc:"Whether triggers are enabled as a whole."`
	RuleCount        int                   `json:"ruleCount"`
	Rules            []AutomationRule      `json:"rules"`
	RecentExecutions []AutomationExecution `json:"recentExecutions" doc:"The last 10, the newest last."`
	Problem          string                `json:"problem,omitempty" doc:"Why no trigger works."`
	Issues           []string              `json:"issues,omitempty" doc:"Changes that triggers cannot see because the system allows no more watches, and the remedy."`
}

// An AutomationRule is a trigger in AIWG's form.
type AutomationRule struct {
	ID               string               `json:"id"`
	Trigger          TriggerEvent         `json:"trigger" doc:"The events that it reacts to."`
	Action           domain.TriggerAction `json:"action" doc:"The action."`
	Enabled          bool                 `json:"enabled"`
	CooldownMS       int64                `json:"cooldownMs"`
	RequiresApproval bool                 `json:"requiresApproval" doc:"A person must approve the action first."`
	Description      string               `json:"description,omitempty"`
	Conditions       []TriggerCondition   `json:"conditions,omitempty"`
	When             string               `json:"when" doc:"The events that it reacts to, for people."`
	LastFired        string               `json:"lastFired,omitempty" doc:"When it acted last."`
	NextFire         string               `json:"nextFire,omitempty" doc:"The next scheduled time."`
	From             string               `json:"from" doc:"The configuration that defines it: user or project."`
	File             string               `json:"file,omitempty"`
	Line             int                  `json:"line,omitempty"`
}

// An AutomationExecution is the execution of a trigger in AIWG's form.
type AutomationExecution struct {
	ID         int64  `json:"id"`
	RuleID     string `json:"ruleId"`
	EventType  string `json:"eventType"`
	Status     string `json:"status" doc:"As in trigger.log."`
	Timestamp  string `json:"timestamp"`
	Action     string `json:"action"`
	TaskID     string `json:"taskId,omitempty" doc:"The task id of the turn that it started, or that has the question."`
	SessionID  string `json:"session_id,omitempty"`
	ApprovalID string `json:"approval_id,omitempty"`
	Error      string `json:"error,omitempty"`
	Depth      int    `json:"depth,omitempty" doc:"Number of executions in a row that led to this one."`
}

// AutomationOf returns the triggers as daemon.status has them.
func AutomationOf(l TriggerList) AutomationStatus {
	r := AutomationStatus{
		Enabled: l.Enabled, RuleCount: len(l.Triggers), Rules: []AutomationRule{}, RecentExecutions: []AutomationExecution{}, Problem: l.Problem,
		Issues: l.Issues,
	}
	for _, t := range l.Triggers {
		r.Rules = append(r.Rules, AutomationRule{
			ID: t.ID, Trigger: t.Event, Action: t.Action, Enabled: t.Enabled, CooldownMS: t.CooldownMS, RequiresApproval: t.RequiresApproval,
			Description: t.Description, Conditions: t.Conditions, When: t.When, LastFired: t.LastFired, NextFire: t.NextFire, From: t.From,
			File: t.File, Line: t.Line,
		})
	}
	for _, x := range slices.Backward(l.Recent) {
		one := AutomationExecution{
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
