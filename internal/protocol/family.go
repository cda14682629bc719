package protocol

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// A Family is a set of methods with the same table of errors: the native methods, or those of a dialect.
// It converts each *domain.Error to the error for the peer.
type Family struct {
	Name   string
	Codes  map[string]Code   // by kind of domain.Error; missing: -32603 with its kind
	Params map[string]string // the family's names of parameters, by the domain's or the native ones
	Plain  bool              // messages do not begin with the name of the code
	Tasks  bool              // messages call a turn task-0001: see domain.Label
}

// A Code is the error of a family for a kind of *domain.Error.
type Code struct {
	Code int64
	Kind string // data.kind
	// Message is the name of the code in the specification of a dialect. The details follow it.
	Message string
}

// everywhere has the codes that all families share.
var everywhere = map[string]Code{
	domain.KindBudget:     {-32045, "budget_reached", ""},
	domain.KindNotTrusted: {-32043, "not_trusted", ""},
	// The project is on a host, which has no such directory. Files that are sent there make it.
	domain.KindNoDirectory: {-32052, domain.KindNoDirectory, ""},
}

// codeNames are the names of kinds in messages of families that have no code for them.
var codeNames = map[string]string{
	domain.KindPermissionDenied: "Permission denied: ",
	domain.KindTaskCancelled:    "Task cancelled: ",
	domain.KindPreviewLoad:      "Preview load failed: ",
	domain.KindNavigation:       "Navigation failed: ",
	domain.KindMCPServer:        "MCP server error: ",
	domain.KindContextOverflow:  "Context overflow: ",
}

type familyData struct {
	Reason string `json:"reason,omitempty"`
	Kind   string `json:"kind"`

	Upstream json.RawMessage `json:"upstream,omitempty"` // the answer of an MCP server
}

// An answer is the error for the peer, with its cause for the log, and what it was converted from for
// the family of a dialect.
type answer struct {
	wire  *jsonrpc2.Error
	cause error
	of    *domain.Error
	in    string // the name of the family
}

func (t answer) Error() string { return t.cause.Error() }

func (t answer) Unwrap() []error { return []error{t.wire, t.of, t.cause} }

// Error converts a *domain.Error to the error of the family. It returns other errors unchanged:
// package server writes their text to the log only.
func (f Family) Error(err error) error {
	var e *domain.Error
	if a, is := errors.AsType[answer](err); is && a.in == f.Name || !errors.As(err, &e) {
		return err
	}
	cause := err
	if e.Err != nil {
		cause = e.Err
	}
	return answer{f.WireError(e), cause, e, f.Name}
}

// WithData is Error with other data of the error. err must be a *domain.Error.
func (f Family) WithData(err error, data any) error {
	a, ok := f.Error(err).(answer)
	if !ok {
		return err
	}
	a.wire = server.NewError(a.wire.Code, a.wire.Message, data)
	return a
}

// WireError returns the error of the family for one of the domain.
func (f Family) WireError(e *domain.Error) *jsonrpc2.Error {
	if f.Tasks && e.Dialect != "" {
		inTasks := *e
		inTasks.Message, e = e.Dialect, &inTasks
	}
	switch e.Kind {
	case domain.KindInvalid, domain.KindUnknownAgent:
		return f.invalidParam(e)
	case domain.KindInvalidToken:
		return server.NewError(jsonrpc2.CodeInvalidRequest, "Invalid Request: "+e.Message,
			familyData{Reason: "invalid-session-token", Kind: "invalid_session_token"})
	}
	code, known := f.Codes[e.Kind]
	if !known {
		code, known = everywhere[e.Kind]
	}
	if !known {
		code = Code{jsonrpc2.CodeInternalError, e.Kind, cmp.Or(codeNames[e.Kind], "Internal error: ")}
		if f.Plain {
			code.Message = ""
		}
	}
	return server.NewError(code.Code, code.Message+e.Message, familyData{Reason: e.Reason, Kind: code.Kind, Upstream: e.Answer})
}

// Kind returns the family's name for the kind of an error.
func (f Family) Kind(e *domain.Error) string {
	return cmp.Or(f.Codes[e.Kind].Kind, e.Kind)
}

// invalidParam returns an error -32602 with the family's name of the parameter.
func (f Family) invalidParam(e *domain.Error) *jsonrpc2.Error {
	p := server.ParamError{Param: e.Param, Expected: e.Expected, Received: e.Received, Accepted: e.Accepted}
	if name, renamed := f.Params[p.Param]; renamed {
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

// InvalidParam returns an error -32602 of a native method with the family's name of the parameter.
func (f Family) InvalidParam(wire *jsonrpc2.Error) *jsonrpc2.Error {
	var p server.ParamError
	if wire.Data == nil || json.Unmarshal(*wire.Data, &p) != nil {
		return wire
	}
	first, rest, _ := strings.Cut(p.Param, ".")
	name, renamed := f.Params[first]
	if !renamed {
		return wire
	}
	native := p.Param
	if p.Param = name; rest != "" {
		p.Param += "." + rest
	}
	return server.NewError(wire.Code, strings.Replace(wire.Message, native+": ", p.Param+": ", 1), p)
}
