package domain

import (
	"encoding/json"
	"fmt"
)

// Kinds of errors, which are data.kind on the wire (docs/protocol.md, "Errors by family").
const (
	KindRunNotFound        = "run_not_found" // no run has this id
	KindApprovalNotFound   = "approval_not_found"
	KindRuleNotFound       = "rule_not_found"
	KindTerminalNotFound   = "terminal_not_found"
	KindAttachmentNotFound = "attachment_not_found"
	KindTerminalTaken      = "terminal_taken"     // a client has its descriptor, or others watch it
	KindTerminalReadOnly   = "terminal_read_only" // it is an agent's
	KindNotCancellable     = "not_cancellable"    // the run has ended
	KindQueueFull          = "queue_full"
	KindBudget             = "budget_reached" // the budget of the day is used up
	KindUnavailable        = "subsystem_unavailable"
	KindInvalidToken       = "invalid_session_token"
	KindInvalid            = "invalid" // a parameter is wrong: Param says which
	KindUnknownAgent       = "unknown_agent"
	KindNotTrusted         = "not_trusted"
	KindAlreadyDecided     = "already_decided"
	KindNoAPIKey           = "no_api_key"
	KindNeedsTerminal      = "needs_terminal" // needs a person at a terminal
	KindBadState           = "bad_state"      // the run is not in a state in which this can be done
	KindExecutor           = "executor_failed"
	KindNoBuild            = "no_build"        // no build is configured or detected
	KindNotOffered         = "not_offered"     // the agent has no such ability
	KindSetting            = "setting_refused" // an agent that works does not take a mode, a model or an option

	KindPermissionDenied = "permission_denied"   // denied by a person, a rule or a mode
	KindTaskCancelled    = "task_cancelled"      // another client ended the run or the question
	KindMCPServer        = "mcp_server_error"    // an MCP server answered with an error, or not at all
	KindPreviewLoad      = "preview_load_failed" // nothing can be shown, or not this
	KindNavigation       = "navigation_failed"   // an address that is refused, or has nothing
	KindContextOverflow  = "context_overflow"    // the prompt does not fit into the model's context

	KindChangeNotFound = "change_not_found" // the run has not changed that file, or not so
	KindChangedSince   = "changed_since"    // a file has other lines than a run has left there
	KindNotKept        = "not_kept"         // what was in a file is not known
	KindOutside        = "outside_workspace"
	KindNotWritable    = "not_writable" // a file, or where it lies

	KindTooManySubscriptions = "too_many_subscriptions"
	KindSubscriptionNotFound = "subscription_not_found"
)

// An Error is a request that is refused, and why. Its text is for the person at
// the other end: it says what to do, and holds no secret.
type Error struct {
	Kind     string          // one of the Kind constants
	Message  string          // what Error returns
	Param    string          // of KindInvalid and KindUnknownAgent: the parameter
	Expected string          // of KindInvalid
	Received string          // of KindInvalid
	Accepted []string        // what would do, where it can be listed
	Reason   string          // of KindPermissionDenied: who has denied it, as Approval.DecidedBy and the policy say
	Answer   json.RawMessage // of KindMCPServer: the error that the server answered, as it is; absent: it did not answer
	Err      error           // the cause, for the log
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// Errorf is an error of a kind, with a text as of [fmt.Sprintf].
func Errorf(kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// ErrEnding says that the hub ends: nothing more is begun, or kept.
var ErrEnding = Errorf(KindUnavailable, "duet-rpc is ending; connect again in a moment, and try again")

// Invalid is an error of KindInvalid: what a parameter has to be, and what it
// was instead. accepted are the values that would do, where they can be listed.
func Invalid(param, expected, received string, accepted ...string) *Error {
	return &Error{
		Kind: KindInvalid, Message: fmt.Sprintf("%s: expected %s, received %s", param, expected, received),
		Param: param, Expected: expected, Received: received, Accepted: accepted,
	}
}
