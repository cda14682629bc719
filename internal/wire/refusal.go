package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
)

// Refusal is an error with what the hub says of it as a sentence, on a line, if it is
// one that the hub gave; any other stays as it is.
func Refusal(err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	var wrong struct {
		Param    string   `json:"param"`
		Accepted []string `json:"accepted"`
	}
	_ = json.Unmarshal(refused.Data, &wrong) // what it does not say is not used
	text := withoutCode(refused.Message)
	if flag := flagOf(wrong.Param); flag != "" && strings.HasPrefix(text, wrong.Param+": ") {
		text = flag + strings.TrimPrefix(text, wrong.Param)
	}
	unlisted := func(value string) bool { return !strings.Contains(text, value) }
	if !slices.ContainsFunc(wrong.Accepted, unlisted) {
		return errors.New(output.Line(text))
	}
	return errors.New(output.Line(text + "; there is " + strings.Join(wrong.Accepted, ", ")))
}

// withoutCode is a message without the name of its code, as docs/protocol.md lists
// them: what follows is the sentence.
func withoutCode(message string) string {
	for _, name := range []string{
		"Invalid params: ", "Invalid Request: ", "Internal error: ", "Task not found: ", "Task not cancellable: ", "Queue full: ", "Subsystem unavailable: ", "Overloaded: ",
	} {
		if sentence, found := strings.CutPrefix(message, name); found {
			return sentence
		}
	}
	return message
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
