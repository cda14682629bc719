package domain

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Kinds of errors, which are data.kind on the wire (docs/protocol.md, "Errors by family").
const (
	KindTurnNotFound       = "turn_not_found" // no turn has this id
	KindApprovalNotFound   = "approval_not_found"
	KindRuleNotFound       = "rule_not_found"
	KindTerminalNotFound   = "terminal_not_found"
	KindTriggerNotFound    = "trigger_not_found"
	KindAttachmentNotFound = "attachment_not_found"
	KindItemNotFound       = "item_not_found"
	KindProjectNotFound    = "project_not_found"
	KindNoDirectory        = "no_project_directory" // the project's directory does not exist; often that on a host
	KindTerminalTaken      = "terminal_taken"       // a client has its descriptor, or others watch it
	KindTerminalReadOnly   = "terminal_read_only"   // an agent's terminal
	KindNotCancellable     = "not_cancellable"      // the turn has ended
	KindQueueFull          = "queue_full"
	KindBudget             = "budget_reached" // the budget of the day is used up
	KindUnavailable        = "subsystem_unavailable"
	KindInvalidToken       = "invalid_session_token"
	KindInvalid            = "invalid" // a parameter is wrong: Param says which
	KindUnknownAgent       = "unknown_agent"
	KindNotTrusted         = "not_trusted"
	KindAgentOnHost        = "agent_on_host" // the agent works on a host, which the daemon here does not reach
	KindAlreadyDecided     = "already_decided"
	KindChanged            = "changed" // the question is not the one that the user saw
	KindNoAPIKey           = "no_api_key"
	KindNeedsTerminal      = "needs_terminal" // needs a person at a terminal
	KindBadState           = "bad_state"      // not possible in the turn's state
	KindListen             = "listen_failed"  // a socket cannot be opened
	KindExecutor           = "executor_failed"
	KindNoBuild            = "no_build"            // no build is configured or detected
	KindNotOffered         = "not_offered"         // the agent has no such ability
	KindSetting            = "setting_refused"     // a working agent refuses a mode, a model or an option
	KindSandbox            = "sandbox_unavailable" // the sandbox of a session does not work here

	KindEditor           = "editor_failed"       // an editor could not answer for an agent
	KindPermissionDenied = "permission_denied"   // denied by a person, a rule or a mode
	KindTaskCancelled    = "task_cancelled"      // another client ended the turn or the question
	KindMCPServer        = "mcp_server_error"    // an MCP server answered with an error, or not at all
	KindPreviewLoad      = "preview_load_failed" // there is nothing to show, or it is too long
	KindNavigation       = "navigation_failed"   // the address is refused, or has no content
	KindContextOverflow  = "context_overflow"    // the prompt does not fit into the model's context

	KindChangeNotFound = "change_not_found" // the turn has no such change
	KindChangedSince   = "changed_since"    // the lines that the turn left are no longer in the file
	KindNotKept        = "not_kept"         // the contents of a file are unknown
	KindOutside        = "outside_workspace"
	KindNotWritable    = "not_writable" // a file, or its directory

	KindNoAttempts = "no_attempts"     // the session is not one of several attempts at a prompt
	KindNoWorktree = "no_worktree"     // the session has no git worktree of its own, or no longer
	KindWorktree   = "worktree_failed" // git cannot do it
	KindConflict   = "conflict"        // both sides have changed the same files
	KindOverlap    = "overlap"         // uncommitted files of the user are in the way
	KindLosses     = "would_lose_work" // work that is not landed

	KindTooManySubscriptions = "too_many_subscriptions"
	KindSubscriptionNotFound = "subscription_not_found"
)

// An Error is a refused request and the reason. Its text is for the user: it says what to do, and
// contains no secret.
type Error struct {
	Kind     string          // one of the Kind constants
	Message  string          // the result of Error
	Dialect  string          // Message in the words of clients that say task-0001; "": the same
	Param    string          // of KindInvalid and KindUnknownAgent: the parameter
	Expected string          // of KindInvalid
	Received string          // of KindInvalid
	Accepted []string        // valid values, if there is a list
	Reason   string          // of KindPermissionDenied: what denied it, as Approval.DecidedBy or the policy says
	Answer   json.RawMessage // of KindMCPServer: the error response of the server, unchanged; absent: no response
	Err      error           // the cause, for the log
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error of a kind, with a text as of [fmt.Sprintf]. A [Label] among args names a turn to
// each client in its words.
func Errorf(kind, format string, args ...any) *Error {
	e := &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
	tasks := slices.Clone(args)
	for i, arg := range args {
		if l, ok := arg.(Label); ok {
			tasks[i] = l.Task()
			e.Dialect = fmt.Sprintf(format, tasks...)
		}
	}
	return e
}

// ErrEnding says that the hub is ending: it starts and stores nothing more.
var ErrEnding = &Error{Kind: KindUnavailable, Message: "duet-rpc is ending; connect again in a moment, and try again"}

// Invalid returns an error of KindInvalid for a parameter. accepted lists the valid values, if
// there is a list.
func Invalid(param, expected, received string, accepted ...string) *Error {
	return &Error{
		Kind: KindInvalid, Message: fmt.Sprintf("%s: expected %s, received %s", param, expected, received),
		Param: param, Expected: expected, Received: received, Accepted: accepted,
	}
}
