package relay

import (
	"encoding/json"

	"github.com/sourcegraph/jsonrpc2"
)

// codeHubLost tells a request that the hub it went to has gone.
const codeHubLost = -32042

// KindHubLost is the kind of the error that a request is answered with whose hub has gone.
const KindHubLost = "hub_lost"

func hubLost(why string) *jsonrpc2.Error {
	data := json.RawMessage(`{"kind":"` + KindHubLost + `","retry":true}`)
	return &jsonrpc2.Error{Code: codeHubLost, Message: "Hub lost: " + why, Data: &data}
}

var (
	lostUnanswered = hubLost("the process that runs the agents has gone before it answered; another one takes its place, so the request may be sent again")
	lostUnsent     = hubLost("no process that runs the agents could be reached in time; the request was not carried out and may be sent again")
)

// codeHubSilent tells a request that the hub does not answer.
const codeHubSilent = -32044

func hubSilent(message string, retry bool) *jsonrpc2.Error {
	data, _ := json.Marshal(struct {
		Kind  string `json:"kind"`
		Retry bool   `json:"retry"`
	}{"hub_silent", retry})
	return &jsonrpc2.Error{Code: codeHubSilent, Message: "Hub silent: " + message, Data: (*json.RawMessage)(&data)}
}

// unsentError is what a request is told that no hub got; r.mu is held.
func (r *Relay) unsentError() *jsonrpc2.Error {
	if r.silence != "" {
		return hubSilent(r.silence+"; the request was not carried out and may be sent again", true)
	}
	if r.problem != "" {
		return hubLost(r.problem + "; the request was not carried out and may be sent again")
	}
	return lostUnsent
}
