package domain

import (
	"encoding/json"
	"time"
)

// A TriggerExecution is what a trigger has done because of an event, or is about to do.
type TriggerExecution struct {
	ID          int64
	Trigger     string // its id in the configuration
	Key         string // of the event: there is one execution of a trigger for it
	EventType   string
	EventSource string
	Event       json.RawMessage // an object; what is long in it was cut
	Time        time.Time
	Status      string          // one of the Trigger constants
	Action      string          // its type
	Does        json.RawMessage // the action with what the event has in the place of its templates
	Run         int64           // that was begun, or is a draft while a person is asked; 0: none
	Approval    string          // the question that was asked, or ""
	Depth       int             // how many executions led to this one
	Error       string          // what went wrong, or what was not done
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
	Trigger string
	Enabled *bool     // as people have switched it; nil: as configured
	Fired   time.Time // when it did something last
	Looked  time.Time // up to when its files, or its times, have been looked at
	Window  time.Time // when the hour began in which Count is how often it did something
	Count   int
	Limited string // the limit that was reported since it did something last, or ""
}

// TriggerExecuted says what a trigger has done, or that it waits for a person. Of what
// it has begun the event has the run.
type TriggerExecuted struct {
	Execution int64
	Trigger   string
	EventType string
	Action    string
	Status    string // as of TriggerExecution
	Message   string // of a notification
	Channel   string
	Approval  string
	Error     string
}

// EventTrigger is the kind of TriggerExecuted.
const EventTrigger EventKind = "trigger.executed"

// Kind is EventTrigger.
func (TriggerExecuted) Kind() EventKind { return EventTrigger }

// Size is about how many bytes the texts are.
func (p TriggerExecuted) Size() int { return len(p.Message) + len(p.Error) + 200 }
