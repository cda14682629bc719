package handlers

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// A family is a set of methods with the same error codes.
type family struct {
	codes  map[string]wireCode // by kind of domain.Error; missing: -32603 with its kind
	params map[string]string   // the family's names of parameters, by the domain's
	plain  bool                // messages do not begin with the name of the code
	tasks  bool                // messages call a turn task-0001: see domain.Label
}

// A wireCode is the error of a family for a kind of *domain.Error.
type wireCode struct {
	code int64
	kind string // data.kind
	// message is the name of the code in the specification, in AIWG or in the table of application
	// boundaries. The details follow it.
	message string
}

// Codes of AIWG and of Duet.
const (
	codeTaskNotFound       = -32000
	codeTaskNotCancellable = -32001
	codeQueueFull          = -32002
	codeUnavailable        = -32003
	codeNotTrusted         = -32043
	codeBudget             = -32045
)

// everywhere has the codes that all families share.
var everywhere = map[string]wireCode{
	domain.KindBudget:     {codeBudget, "budget_reached", ""},
	domain.KindNotTrusted: {codeNotTrusted, "not_trusted", ""},
}

// The families (docs/protocol.md, "Errors by family"). The systems that they come from use the same
// number for different errors, so the family of the method decides.
var (
	taskFamily = family{codes: map[string]wireCode{
		domain.KindTurnNotFound:   {codeTaskNotFound, "task_not_found", "Task not found: "},
		domain.KindNotCancellable: {codeTaskNotCancellable, "task_not_cancellable", "Task not cancellable: "},
		domain.KindQueueFull:      {codeQueueFull, "queue_full", "Queue full: "},
		domain.KindUnavailable:    {codeUnavailable, "subsystem_unavailable", "Subsystem unavailable: "},
	}, params: map[string]string{"working_dir": "cwd"}, tasks: true}
	chatFamily       = family{codes: taskFamily.codes, params: map[string]string{"prompt": "message"}, tasks: true}
	humanLayerFamily = family{codes: map[string]wireCode{
		domain.KindTurnNotFound:   {jsonrpc2.CodeInternalError, "session_not_found", "Internal error: "},
		domain.KindNotCancellable: {jsonrpc2.CodeInternalError, "session_not_running", "Internal error: "},

		domain.KindTooManySubscriptions: {server.CodeOverloaded, "too_many_subscriptions", "Overloaded: "},
	}, params: map[string]string{"prompt": "query"}, tasks: true}
	executorFamily = family{codes: map[string]wireCode{
		domain.KindTurnNotFound: {jsonrpc2.CodeInternalError, "task_not_found", "Internal error: "},
	}, params: map[string]string{"working_dir": "cwd"}, tasks: true}
)

// nativeFamily is the family of the native methods: each kind of error has one code, and the message is
// a sentence without the name of the code.
var nativeFamily = family{codes: nativeCodes(), params: map[string]string{"permission_mode": "mode", "launch_id": "start_id"}, plain: true}

// Codes of the native methods.
const (
	codeNotFound = -32050 // nothing has the id or the number
	codeRefused  = -32051 // not as things are now; another request, or the same one later, may succeed
	codeNoHub    = -32052
	codeFailed   = -32053 // what Duet ran failed: git, an agent, a build, an MCP server
)

// nativeCodes returns the native methods' table of errors. Other kinds are internal errors.
func nativeCodes() map[string]wireCode {
	codes := map[string]wireCode{
		domain.KindTurnNotFound:         {codeNotFound, "not_found", ""},
		domain.KindNotCancellable:       {codeRefused, "not_running", ""},
		domain.KindQueueFull:            {server.CodeOverloaded, domain.KindQueueFull, ""},
		domain.KindTooManySubscriptions: {server.CodeOverloaded, domain.KindTooManySubscriptions, ""},
		domain.KindUnavailable:          {codeNoHub, domain.KindUnavailable, ""},
	}
	for code, kinds := range map[int64][]string{
		codeNotFound: {
			domain.KindApprovalNotFound, domain.KindRuleNotFound, domain.KindChangeNotFound, domain.KindTerminalNotFound, domain.KindAttachmentNotFound, domain.KindItemNotFound,
			domain.KindTriggerNotFound, domain.KindSubscriptionNotFound, domain.KindProjectNotFound,
			domain.KindNoAttempts, domain.KindNoWorktree, domain.KindNoBuild,
		},
		codeRefused: {
			domain.KindBadState, domain.KindAlreadyDecided, domain.KindSetting, domain.KindNotOffered, domain.KindNeedsTerminal, domain.KindNoAPIKey,
			domain.KindChangedSince, domain.KindNotKept, domain.KindOutside, domain.KindConflict, domain.KindOverlap, domain.KindLosses,
			domain.KindTerminalTaken, domain.KindTerminalReadOnly, domain.KindPermissionDenied, domain.KindTaskCancelled,
		},
		codeFailed: {domain.KindExecutor, domain.KindWorktree, domain.KindNotWritable, domain.KindEditor, domain.KindListen, domain.KindMCPServer},
	} {
		for _, kind := range kinds {
			codes[kind] = wireCode{code, kind, ""}
		}
	}
	return codes
}

// Codes of application boundaries.
const (
	codePermissionDenied = -32003
	codeTaskCancelled    = -32004
	codePreviewLoad      = -32005
	codeNavigation       = -32006
	codeMCPServer        = -32007
	codeContextOverflow  = -32008
)

// boundaryFamily is the family of the methods by which programs ask each other and users: askUser,
// requestPermission, sendTask and others.
var boundaryFamily = family{codes: map[string]wireCode{
	domain.KindPermissionDenied: {codePermissionDenied, "permission_denied", "Permission denied: "},
	domain.KindTaskCancelled:    {codeTaskCancelled, "task_cancelled", "Task cancelled: "},
	domain.KindPreviewLoad:      {codePreviewLoad, "preview_load_failed", "Preview load failed: "},
	domain.KindNavigation:       {codeNavigation, "navigation_failed", "Navigation failed: "},
	domain.KindMCPServer:        {codeMCPServer, "mcp_server_error", "MCP server error: "},
	domain.KindContextOverflow:  {codeContextOverflow, "context_overflow", "Context overflow: "},
	domain.KindTurnNotFound:     {jsonrpc2.CodeInternalError, "task_not_found", "Internal error: "},
}, params: map[string]string{"working_dir": "cwd", "session_id": "thread"}, tasks: true}

type errorData struct {
	Reason string `json:"reason,omitempty"`
	Kind   string `json:"kind"`

	Upstream json.RawMessage `json:"upstream,omitempty"` // the answer of an MCP server
}

// An answer is the error for the peer, with its cause for the log.
type answer struct {
	wire  *jsonrpc2.Error
	cause error
}

func (t answer) Error() string { return t.cause.Error() }

func (t answer) Unwrap() []error { return []error{t.wire, t.cause} }

// Error converts a *domain.Error to the error of the family. It returns other errors unchanged:
// package server writes their text to the log only.
func (f family) Error(err error) error {
	var e *domain.Error
	if !errors.As(err, &e) {
		return err
	}
	cause := err
	if e.Err != nil {
		cause = e.Err
	}
	return answer{f.wireError(e), cause}
}

func (f family) wireError(e *domain.Error) *jsonrpc2.Error {
	if f.tasks && e.Dialect != "" {
		inTasks := *e
		inTasks.Message, e = e.Dialect, &inTasks
	}
	switch e.Kind {
	case domain.KindInvalid, domain.KindUnknownAgent:
		return f.invalidParam(e)
	case domain.KindInvalidToken:
		return server.NewError(jsonrpc2.CodeInvalidRequest, "Invalid Request: "+e.Message, errorData{Reason: "invalid-session-token", Kind: "invalid_session_token"})
	}
	code, known := f.codes[e.Kind]
	if !known {
		code, known = everywhere[e.Kind]
	}
	if !known {
		code = wireCode{jsonrpc2.CodeInternalError, e.Kind, cmp.Or(boundaryFamily.codes[e.Kind].message, "Internal error: ")}
		if f.plain {
			code.message = ""
		}
	}
	return server.NewError(code.code, code.message+e.Message, errorData{Reason: e.Reason, Kind: code.kind, Upstream: e.Answer})
}

// kind returns the family's name for the kind of an error.
func (f family) kind(e *domain.Error) string {
	return cmp.Or(f.codes[e.Kind].kind, e.Kind)
}

// invalidParam returns an error -32602 with the family's name of the parameter.
func (f family) invalidParam(e *domain.Error) *jsonrpc2.Error {
	p := server.ParamError{Param: e.Param, Expected: e.Expected, Received: e.Received, Accepted: e.Accepted}
	if name, renamed := f.params[p.Param]; renamed {
		p.Param = name
	}
	if p.Param == "" {
		p.Param = "params"
	}
	if p.Expected != "" && e.Kind == domain.KindInvalid {
		return server.InvalidParam(p)
	}
	if p.Expected == "" {
		p.Expected, p.Received = "another value", "one that will not do"
	}
	return server.NewError(jsonrpc2.CodeInvalidParams, "Invalid params: "+e.Message, p)
}

// codeGateFailed is application boundaries' code for work whose gates still fail.
const codeGateFailed = -32002

// codeBuildFailed is application boundaries' code for a failed build.
const codeBuildFailed = -32001
