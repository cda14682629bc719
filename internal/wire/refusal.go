package wire

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
)

// A Refusal is what the hub says of a request that it does not carry out.
type Refusal struct {
	Message  string   `json:"-"`        // a sentence, without the name of the error's code
	Kind     string   `json:"kind"`     // the condition, such as "session_not_found"; or ""
	Param    string   `json:"param"`    // the parameter that it is about; or ""
	Accepted []string `json:"accepted"` // the values that would do, where they can be listed
}

// RefusalOf is the refusal that an error is; ok is false for an error that the hub did
// not give.
func RefusalOf(err error) (r Refusal, ok bool) {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return r, false
	}
	_ = json.Unmarshal(refused.Data, &r) // what it does not say is empty
	r.Message = withoutCode(refused.Message)
	return r, true
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
