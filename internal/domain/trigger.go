package domain

import (
	"encoding/json"
	"time"
)

// A TriggerExecution is what a trigger has done because of an event, or is about to do.
type TriggerExecution struct {
	ID          int64           `db:"id,auto"`
	Trigger     string          `db:"name,fixed"`      // its id in the configuration
	Key         string          `db:"event_key,fixed"` // of the event: there is one execution of a trigger for it
	EventType   string          `db:"event_type,fixed"`
	EventSource string          `db:"event_source,fixed"`
	Event       json.RawMessage `db:"event,fixed"` // an object; what is long in it was cut
	Time        time.Time       `db:"at,fixed"`
	Status      string          `db:"status"`       // one of the Trigger constants
	Action      string          `db:"action,fixed"` // its type
	Does        json.RawMessage `db:"does,fixed"`   // the action with what the event has in the place of its templates
	Run         int64           `db:"run"`          // that was begun, or is a draft while a person is asked; 0: none
	Approval    string          `db:"approval"`     // the question that was asked, or ""
	Depth       int             `db:"depth,fixed"`  // how many executions led to this one
	Error       string          `db:"error"`        // what went wrong, or what was not done
}

// Values of TriggerExecution.Status. Those but the last four are AIWG's.
const (
	TriggerSubmitted  = "submitted"           // a session was begun
	TriggerNotified   = "notified"            // whoever is subscribed was told
	TriggerSent       = "webhook_sent"        // the event was sent
	TriggerDenied     = "denied"              // by whoever was asked
	TriggerNoApprover = "skipped_no_approver" // the question was closed and nobody had answered
	TriggerUnknown    = "unknown_action_type"
	TriggerError      = "error"

	TriggerWaiting      = "waiting_approval" // a person is asked
	TriggerSending      = "sending"          // the event is being sent
	TriggerDepthLimited = "depth_limited"    // too many executions led to it
	TriggerRateLimited  = "rate_limited"     // it has done too much within an hour
)

// A TriggerState is what is remembered of a trigger.
type TriggerState struct {
	Trigger string    `db:"name"`
	Enabled *bool     `db:"enabled"` // as people have switched it; nil: as configured
	Fired   time.Time `db:"fired"`   // when it did something last
	Looked  time.Time `db:"looked"`  // up to when its files, or its times, have been looked at
	Window  time.Time `db:"window"`  // when the hour began in which Count is how often it did something
	Count   int       `db:"count"`
	Limited string    `db:"limited"` // the limit that was reported since it did something last, or ""
}

// TriggerExecuted says what a trigger has done, or that it waits for a person. Of what
// it has begun the event has the run.
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
const EventTrigger EventKind = "trigger.executed"

// Kind is EventTrigger.
func (TriggerExecuted) Kind() EventKind { return EventTrigger }

// Size is about how many bytes the texts are.
func (p TriggerExecuted) Size() int { return len(p.Message) + len(p.Error) + 200 }
