package turn

import (
	"errors"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// This file says what the hub refuses in the words of who has typed a command.

// InWords is an error with what the hub says of it as a sentence, on a line, if it is
// one that the hub gave; any other stays as it is. Parameters are called by their flags.
func InWords(err error) error {
	r, ok := wire.RefusalOf(err)
	if !ok {
		return err
	}
	text := r.Message
	if flag := flagOf(r.Param); flag != "" && strings.HasPrefix(text, r.Param+": ") {
		text = flag + strings.TrimPrefix(text, r.Param)
	}
	unlisted := func(value string) bool { return !strings.Contains(text, value) }
	if !slices.ContainsFunc(r.Accepted, unlisted) {
		return errors.New(term.Line(text + whereToLook(r.Kind)))
	}
	return errors.New(term.Line(text + "; there is " + strings.Join(r.Accepted, ", ")))
}

// whereToLook says which command lists what was not found, or nothing.
func whereToLook(kind string) string {
	switch kind {
	case "session_not_found", "task_not_found":
		return "; `duet-rpc session list` lists the newest"
	case "approval_not_found":
		return "; `duet-rpc approvals --list` lists the open questions"
	case "rule_not_found":
		return "; `duet-rpc approvals rules` lists the rules"
	}
	return ""
}

// flagOf is the flag by which the user has given a parameter, or "".
func flagOf(param string) string {
	switch param {
	case "permission_mode", "mode":
		return "--mode"
	case "working_dir", "cwd":
		return "--cwd"
	case "additional_directories":
		return "--add-dir"
	case "options":
		return "--option"
	case "agent", "model", "title", "limit", "status", "state", "since", "priority", "pattern", "scope":
		return "--" + param
	}
	return ""
}
