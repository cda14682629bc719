package domain

import (
	"encoding/json"
	"time"
)

// A TriggerExecution is a trigger's reaction to an event, done or under way.
type TriggerExecution struct {
	ID          int64           `db:"id,auto"`
	Trigger     string          `db:"name,fixed"`      // its id in the configuration
	Key         string          `db:"event_key,fixed"` // of the event: a trigger has one execution for it
	EventType   string          `db:"event_type,fixed"`
	EventSource string          `db:"event_source,fixed"`
	Event       json.RawMessage `db:"event,fixed"` // an object; long texts in it are cut
	Time        time.Time       `db:"at,fixed"`
	Status      string          `db:"status"`       // one of the Trigger constants
	Action      string          `db:"action,fixed"` // its type
	Does        json.RawMessage `db:"does,fixed"`   // the action with the event's values in place of its templates
	Turn        int64           `db:"turn"`         // the started turn, or a draft while a person is asked; 0: none
	Approval    string          `db:"approval"`     // the question, or ""
	Depth       int             `db:"depth,fixed"`  // how many executions led to this one
	Error       string          `db:"error"`        // the error, or the omitted action
}

// Values of TriggerExecution.Status. Those but the last four are AIWG's.
const (
	TriggerSubmitted  = "submitted"           // a session was started
	TriggerNotified   = "notified"            // subscribers were notified
	TriggerSent       = "webhook_sent"        // the event was sent
	TriggerDenied     = "denied"              // by a person
	TriggerNoApprover = "skipped_no_approver" // the question was closed without an answer
	TriggerUnknown    = "unknown_action_type"
	TriggerError      = "error"

	TriggerWaiting      = "waiting_approval" // a person is asked
	TriggerSending      = "sending"          // the event is being sent
	TriggerDepthLimited = "depth_limited"    // too many executions in a row
	TriggerRateLimited  = "rate_limited"     // more executions than an hour allows
)

// A TriggerState is the state of a trigger.
type TriggerState struct {
	Trigger string    `db:"name"`
	Enabled *bool     `db:"enabled"` // switched by a person; nil: as configured
	Fired   time.Time `db:"fired"`   // its last execution
	Looked  time.Time `db:"looked"`  // its files or times were checked up to here
	Window  time.Time `db:"window"`  // the start of the hour that Count counts
	Count   int       `db:"count"`
	Limited string    `db:"limited"` // the limit that was reported since the last execution, or ""
}

// TriggerExecuted is a trigger's execution, or its question. The event has the started turn.
type TriggerExecuted struct {
	Execution int64  `json:"execution"`
	Trigger   string `json:"trigger"`
	EventType string `json:"event"`
	Action    string `json:"action"`
	Status    string `json:"status"`            // as of TriggerExecution
	Message   string `json:"message,omitempty"` // of a notification
	Channel   string `json:"channel,omitempty"`
	Approval  string `json:"approval,omitempty"`
	Error     string `json:"error,omitempty"`
}

// EventTrigger is the kind of TriggerExecuted.
const EventTrigger EventKind = "trigger.fired"

func (TriggerExecuted) Kind() EventKind { return EventTrigger }

// Size is the approximate length of the texts, in bytes.
func (p TriggerExecuted) Size() int { return len(p.Message) + len(p.Error) + 200 }

// A TriggerAction is what a trigger does.
type TriggerAction struct {
	Type     string `json:"type"`
	Prompt   string `json:"prompt,omitempty"`   // of ActionAgent, a template
	Agent    string `json:"agent,omitempty"`    // "": the default one
	Priority int    `json:"priority,omitempty"` // higher first
	Message  string `json:"message,omitempty"`  // of ActionNotify, a template
	Channel  string `json:"channel,omitempty"`  // for the recipient
	URL      string `json:"url,omitempty"`      // of ActionWebhook
}

// Values of TriggerAction.Type.
const (
	ActionAgent   = "agent"   // begins a session
	ActionNotify  = "notify"  // notifies subscribers
	ActionWebhook = "webhook" // sends the event to an address
)

// String describes the action in one line.
func (a TriggerAction) String() string {
	switch a.Type {
	case ActionAgent:
		who := a.Agent
		if who == "" {
			who = "the default agent"
		}
		return "ask " + who + ": " + a.Prompt
	case ActionNotify:
		return "notify: " + a.Message
	case ActionWebhook:
		return "send to " + a.URL
	}
	return a.Type
}
