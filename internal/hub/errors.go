package hub

import (
	"errors"
	"fmt"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Kinds of errors: what data.kind says on the wire (docs/protocol.md, "Errors by family").
const (
	KindRunNotFound      = "run_not_found"      // no run has this id
	KindApprovalNotFound = "approval_not_found" //
	KindRuleNotFound     = "rule_not_found"     //
	KindTerminalNotFound = "terminal_not_found" //
	KindTerminalTaken    = "terminal_taken"     // somebody has its descriptor, or others watch it
	KindTerminalReadOnly = "terminal_read_only" // it is an agent's
	KindNotCancellable   = "not_cancellable"    // the run has ended
	KindQueueFull        = "queue_full"         //
	KindUnavailable      = "subsystem_unavailable"
	KindInvalidToken     = "invalid_session_token"
	KindInvalid          = "invalid" // a parameter is wrong: Param says which
	KindUnknownAgent     = "unknown_agent"
	KindNotTrusted       = "not_trusted"
	KindAlreadyDecided   = "already_decided"
	KindNoAPIKey         = "no_api_key"
	KindBadState         = "bad_state" // the run is not in a state in which this can be done
	KindExecutor         = "executor_failed"
)

// An Error is what the hub refuses, and why. Its text is for the person at
// the other end: it says what to do, and holds no secret.
type Error struct {
	Kind     string
	Message  string
	Param    string   // of KindInvalid and KindUnknownAgent: the parameter
	Expected string   // of KindInvalid
	Received string   // of KindInvalid
	Accepted []string // what would do, where it can be listed
	Err      error    // the cause, for the log
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

func errorf(kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

func invalid(param, expected, received string, accepted ...string) *Error {
	return &Error{
		Kind: KindInvalid, Message: fmt.Sprintf("%s: expected %s, received %s", param, expected, received),
		Param: param, Expected: expected, Received: received, Accepted: accepted,
	}
}

// stored makes an error of the store fit to be told.
func stored(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrClosed):
		return errClosing
	case store.IsFull(err):
		return &Error{Kind: KindUnavailable, Message: "the disk is full: nothing was changed; free some space and try again", Err: err}
	case store.IsLost(err):
		return &Error{Kind: KindUnavailable, Message: lostIssue + "; nothing of this was kept: try again", Err: err}
	case store.IsLocked(err):
		return &Error{Kind: KindUnavailable, Message: "another process has the database and does not let go of it: nothing was changed; end it (sqlite3, a backup, or a duet-rpc that was stopped) and try again", Err: err}
	case store.IsDamaged(err):
		return &Error{Kind: KindUnavailable, Message: damagedIssue, Err: err}
	}
	return err
}
