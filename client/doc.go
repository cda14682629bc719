// Package client is a JSON-RPC 2.0 client for Go, for any server that speaks
// JSON-RPC over a Unix socket or over the pipes of a process. Package
// eventstream reads duet-rpc's events with it.
//
//	c, err := client.Dial(ctx, client.Socket("/run/user/1000/duet/socket"))
//	if err != nil { … }
//	defer c.Close()
//	var stats struct{ Running, Queued int }
//	err = c.Call(ctx, "task.stats", nil, &stats)
//
// It connects to a [Target]: a [Socket] (newline-delimited JSON by default), a
// [Command] that it starts (LSP framing) and ends, an [Opener], or an existing
// transport ([OverTransport]).
//
// # Calls
//
// [Client.Call] waits 30 s by default ([WithTimeout]). Any number of calls may
// run at once. Examine errors with errors.Is and errors.As:
//
//	var e *client.Error
//	switch {
//	case errors.Is(err, client.Kind("task_not_found")): // the condition that error.data.kind names
//	case errors.As(err, &e):                            // any other answer with an error: e.Code, e.Message, e.Data
//	case errors.Is(err, client.ErrTimeout):             // no answer in time; the request was cancelled
//	case errors.Is(err, client.ErrDisconnected):        // errors.As a *DisconnectedError: was it sent?
//	case errors.Is(err, client.ErrClosed):              // Close was called
//	}
//
// # Loss of the connection
//
// Pending calls fail at once, with a [*DisconnectedError]. The client then opens
// a socket again, after 100 ms, 200 ms, … up to 30 s; a connection that brings a
// message resets the delay. Calls meanwhile wait for it within their own timeout,
// and are never sent twice. [Client.OnState] reports the changes.
//
// # Messages from the server
//
// [Client.On] receives notifications, [Client.Handle] answers requests, and
// [Client.Subscribe] requests a [Stream] of messages, again after each loss.
// Handlers of notifications and streams run one after the other,
// outside the goroutine that reads, so they may make calls. Neither a handler nor
// a server can make the client hold more than its limits allow, or stop reading.
//
// The client ignores messages that are not JSON-RPC 2.0, and responses that match
// no pending call. It is built on package server, as both ends of a connection
// work the same way.
package client
