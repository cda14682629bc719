// Package hubclient has the hub's methods as Go functions, for the shell and for `duet-rpc acp`. Types
// are those of packages protocol and domain. This package adds only types that join several of
// them, such as an approval of a result or of an event.
package hubclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Call calls a method and returns the result, decoded and raw. A method that waits for an agent, a
// command of the user or git has no timeout but that of ctx.
func Call[R any](ctx context.Context, c *client.Client, method string, params any) (result R, raw json.RawMessage, err error) {
	var options []client.CallOption
	if slices.Contains(untilDone, method) {
		options = append(options, client.WithTimeout(0))
	}
	if err := c.Call(ctx, method, params, &raw, options...); err != nil {
		return result, nil, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, nil, fmt.Errorf("reading the daemon's answer to %s: %w", method, err)
	}
	return result, raw, nil
}

// KindHubLost is the error kind of a request whose hub ended before it answered.
const KindHubLost client.Kind = "hub_lost"

// ErrHubGone says that the hub ended during a wait.
var ErrHubGone = errors.New("the daemon has gone; what it ran can be continued once another one runs")

// WhileConnected returns a context that ends with the connection: another hub does not send the
// awaited event.
func WhileConnected(ctx context.Context, c *client.Client) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	off := c.OnState(func(state client.State) {
		if state != client.Connected {
			cancel(ErrHubGone)
		}
	})
	return ctx, func() { off(); cancel(nil) }
}

// OrGone returns ErrHubGone if the end of the connection caused err, and err otherwise. ctx is a
// context of WhileConnected.
func OrGone(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrHubGone) || errors.Is(err, client.ErrDisconnected) {
		return ErrHubGone
	}
	return err
}

// A Refusal is the hub's error for a request.
type Refusal struct {
	Message  string   `json:"-"`        // a sentence, without the name of the error's code
	Kind     string   `json:"kind"`     // the condition, such as "session_not_found"; or ""
	Param    string   `json:"param"`    // the parameter that it is about; or ""
	Accepted []string `json:"accepted"` // the values that would do, where they can be listed
}

// RefusalOf returns the refusal in err. ok is false if the error is not the hub's.
func RefusalOf(err error) (r Refusal, ok bool) {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return r, false
	}
	_ = json.Unmarshal(refused.Data, &r) // what it does not say is empty
	r.Message = withoutCode(refused.Message)
	return r, true
}

// withoutCode returns a message without the name of its code (docs/protocol.md).
func withoutCode(message string) string {
	for _, name := range []string{
		"Invalid params: ", "Invalid Request: ", "Internal error: ", "Task not found: ", "Task not cancellable: ", "Queue full: ",
		"Subsystem unavailable: ", "Overloaded: ",
	} {
		if sentence, found := strings.CutPrefix(message, name); found {
			return sentence
		}
	}
	return message
}

// A HubStatus is the status of a daemon.
type HubStatus struct {
	protocol.DaemonStatus
	Raw json.RawMessage `json:"-"` // all of it, as it came
}

// LastSeq returns the number of the last event in the log.
func LastSeq(ctx context.Context, c *client.Client) (int64, error) {
	status, err := Status(ctx, c)
	return status.Subsystems.Store.LastSeq, err
}

// Status asks a hub for its status.
func Status(ctx context.Context, c *client.Client) (HubStatus, error) {
	status, raw, err := Call[HubStatus](ctx, c, "daemon.status", nil)
	status.Raw = raw
	return status, err
}
