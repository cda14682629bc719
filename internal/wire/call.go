package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Call calls a method, and returns the result decoded and as it came.
func Call[R any](ctx context.Context, c *client.Client, method string, params any) (result R, raw json.RawMessage, err error) {
	if err := c.Call(ctx, method, params, &raw); err != nil {
		return result, nil, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, nil, fmt.Errorf("reading what the hub answered to %s: %w", method, err)
	}
	return result, raw, nil
}

// KindHubLost is the kind of the error of a request whose hub has gone before it answered,
// told by the process that stands between.
const KindHubLost client.Kind = "hub_lost"

// ErrHubGone says that the hub went while something was waited for.
var ErrHubGone = errors.New("the hub has gone; what it ran can be continued once another one runs")

// WhileConnected is a context that ends with the connection: what is waited for
// does not come from another hub.
func WhileConnected(ctx context.Context, c *client.Client) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	off := c.OnState(func(state client.State) {
		if state != client.Connected {
			cancel(ErrHubGone)
		}
	})
	return ctx, func() { off(); cancel(nil) }
}

// OrGone is an error of what was done with a context of WhileConnected, or
// ErrHubGone if the connection's end is why.
func OrGone(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrHubGone) || errors.Is(err, client.ErrDisconnected) {
		return ErrHubGone
	}
	return err
}

// A PreviewFile is what fetch answers.
type PreviewFile struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"` // in base64
}

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

// A HubStatus is the status of a daemon.
type HubStatus struct {
	protocol.DaemonStatus
	Raw json.RawMessage `json:"-"` // all of it, as it came
}

// LastSeq is the number of the last event in the log.
func LastSeq(ctx context.Context, c *client.Client) (int64, error) {
	status, err := Status(ctx, c)
	return status.Subsystems.Store.LastSeq, err
}

// Status asks a hub how it is.
func Status(ctx context.Context, c *client.Client) (HubStatus, error) {
	status, raw, err := Call[HubStatus](ctx, c, "daemon.status", nil)
	status.Raw = raw
	return status, err
}
