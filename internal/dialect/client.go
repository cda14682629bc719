package dialect

import (
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// A Client is how one kind of client is told of events. It is chosen once, when
// a connection asks for them.
type Client struct {
	// TellsSeq: the reply to Subscribe says after which event the events begin.
	TellsSeq bool
	// ShowsNotes: a conversation has what no agent and no human has said, as of
	// [domain.IsNote].
	ShowsNotes bool

	event     func(subscription string, seq int64, e eventBody) any
	heartbeat func(subscription string, h heartbeat) any
}

// LSP is how editors are told, with the framing of the Language Server Protocol:
// by notifications.
var LSP = &Client{
	TellsSeq: true, ShowsNotes: true,
	event: func(subscription string, seq int64, e eventBody) any {
		return notification("event", eventParams{subscription, seq, e})
	},
	heartbeat: func(subscription string, h heartbeat) any {
		h.SubscriptionID = subscription
		return notification("heartbeat", h)
	},
}

// HumanLayer is how HumanLayer's clients are told, line by line: by results that
// answer no request.
var HumanLayer = &Client{
	event: func(_ string, seq int64, e eventBody) any {
		e.Seq = seq
		return unaskedResult{"2.0", eventParams{Event: e}}
	},
	heartbeat: func(_ string, h heartbeat) any { return unaskedResult{"2.0", h} },
}

// Of is how the client of a connection is told of events: HumanLayer's speak
// lines, editors frames.
func Of(conn *server.Conn) *Client {
	if conn.Framing() == frame.LSP {
		return LSP
	}
	return HumanLayer
}

// Event is an event as a message of a subscription, which may be "". data is
// what [Data] gives, or a part of it.
func (c *Client) Event(subscription string, e domain.Event, data json.RawMessage) any {
	return c.event(subscription, e.Seq, eventBody{Type: TypeOf(e.Payload.Kind()), Timestamp: e.Time.UTC(), Data: data})
}

// Heartbeat is a message that says that a subscription lives.
func (c *Client) Heartbeat(subscription string) any {
	return c.heartbeat(subscription, heartbeat{Type: "heartbeat", Message: "Connection alive"})
}

// A Notification is one of JSON-RPC's.
type Notification struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

func notification(method string, params any) *Notification {
	return &Notification{"2.0", method, params}
}

// An unaskedResult is a result that answers no request: HumanLayer's
// notification.
type unaskedResult struct {
	JSONRPC string `json:"jsonrpc"`
	Result  any    `json:"result"`
}

// An eventBody is an event as every client has it. Seq stands here for those
// that have no other place for it.
type eventBody struct {
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Seq       int64           `json:"seq,omitempty"`
	Data      json.RawMessage `json:"data"`
}

type eventParams struct {
	SubscriptionID string    `json:"subscription_id,omitempty"`
	Seq            int64     `json:"seq,omitempty"`
	Event          eventBody `json:"event"`
}

type heartbeat struct {
	SubscriptionID string `json:"subscription_id,omitempty"`
	Type           string `json:"type"`
	Message        string `json:"message"`
}
