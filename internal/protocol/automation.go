package protocol

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

type AutomationStatus struct {
	Enabled          bool               `json:"enabled" doc:"As a whole."`
	RuleCount        int                `json:"ruleCount"`
	Rules            []Trigger          `json:"rules"`
	RecentExecutions []TriggerExecution `json:"recentExecutions" doc:"The last 10, the newest last."`
	Problem          string             `json:"problem,omitempty" doc:"Why no trigger does anything."`
	Issues           []string           `json:"issues,omitempty" doc:"What triggers are not told, and what to do: the system lets no more directories be watched."`
}

type Trigger struct {
	ID               string             `json:"id"`
	Trigger          TriggerEvent       `json:"trigger" doc:"What it is for."`
	Action           config.Action      `json:"action" doc:"What it does."`
	Enabled          bool               `json:"enabled"`
	CooldownMs       int64              `json:"cooldownMs"`
	RequiresApproval bool               `json:"requiresApproval" doc:"A person is asked first."`
	Description      string             `json:"description,omitempty"`
	Conditions       []TriggerCondition `json:"conditions,omitempty"`
	When             string             `json:"when" doc:"What it is for, in words."`
	LastFired        string             `json:"lastFired,omitempty" doc:"When it did something last."`
	NextFire         string             `json:"nextFire,omitempty" doc:"When its time comes."`
	From             string             `json:"from" doc:"Whose configuration it stands in: user or project."`
	File             string             `json:"file,omitempty"`
	Line             int                `json:"line,omitempty"`
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

type TriggerExecution struct {
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

type AutomationParams struct {
	RuleID string `json:"ruleId,omitempty" doc:"One trigger; absent: all as a whole."`
}

type AutomationSwitched struct {
	Enabled bool   `json:"enabled" doc:"The trigger, or all as a whole."`
	Success bool   `json:"success" doc:"False: there is no such trigger."`
	RuleID  string `json:"ruleId,omitempty"`
}

type AutomationLogParams struct {
	RuleID string `json:"ruleId,omitempty" doc:"One trigger; absent: all."`
	Limit  *uint  `json:"limit,omitempty" doc:"How many; 50 unless told, 500 at most."`
}

type AutomationLogResult struct {
	Executions []TriggerExecution `json:"executions"`
}

type AutomationTestParams struct {
	Type    string          `json:"type" doc:"Such as run.failed or file.modify."`
	Source  string          `json:"source" doc:"watch, schedule, run or approval."`
	Payload json.RawMessage `json:"payload,omitempty" doc:"An object: what the event has besides."`
}

type AutomationTestResult struct {
	Rules []AutomationTrial `json:"rules"`
}

type AutomationTrial struct {
	RuleID string         `json:"ruleId"`
	Fits   bool           `json:"fits"`
	Why    string         `json:"why,omitempty" doc:"It is not for the event."`
	Does   *config.Action `json:"does,omitempty" doc:"What it would do."`
}
