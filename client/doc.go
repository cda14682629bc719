// Package client is a JSON-RPC 2.0 client for Go: of duet-rpc, and of any
// server that speaks JSON-RPC over a Unix socket or over the pipes of a
// process.
//
//	c, err := client.Dial(ctx, client.Socket("/run/user/1000/duet/socket"))
//	if err != nil { … }
//	defer c.Close()
//	var stats struct{ Running, Queued int }
//	err = c.Call(ctx, "task.stats", nil, &stats)
//
// What it connects to is a [Target]: a [Socket] (newline-delimited JSON,
// unless told), a [Command] that it starts (LSP framing) and ends, an
// [Opener], or a transport that is there already ([OverTransport]).
//
// # Calls
//
// [Client.Call] waits 30 s unless told ([WithTimeout]). Any number of calls may
// be under way at once. Errors are to be looked at with errors.Is and
// errors.As:
//
//	var e *client.Error
//	switch {
//	case errors.Is(err, client.Kind("task_not_found")): // the condition that error.data.kind names
//	case errors.As(err, &e):                            // any other answer with an error: e.Code, e.Message, e.Data
//	case errors.Is(err, client.ErrTimeout):             // no answer in time; the server was told
//	case errors.Is(err, client.ErrDisconnected):        // errors.As a *DisconnectedError: was it sent?
//	case errors.Is(err, client.ErrClosed):              // Close was called
//	}
//
// # Loss of the connection
//
// What is pending fails at once, with a [*DisconnectedError]. A socket is then
// opened again, after 100 ms, 200 ms, … up to 30 s, beginning anew once a
// connection has brought a message; calls meanwhile wait for it within their
// own timeout, and are never sent twice. [Client.OnState] tells.
//
// # What the server sends
//
// [Client.On] hears notifications, [Client.Handle] answers requests, and
// [Client.Subscribe] hears the events of duet-rpc's log: after a loss it goes
// on behind the last one, so that none is lost and none comes twice. Handlers
// of notifications and events run one after the other, apart from the
// goroutine that reads: they may make calls. No handler, and nothing that a
// server sends, makes the client hold more than its limits allow, or stop
// reading.
//
// Messages that are not JSON-RPC 2.0, and responses that nobody waits for, are
// ignored. The package is built on package server: both ends of a connection
// are the same thing.
package client
