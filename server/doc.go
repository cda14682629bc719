// Package server is one JSON-RPC 2.0 endpoint: it reads messages from a
// transport, runs the handlers that a program registered, and answers. Both
// directions share a connection: a handler, or anything else that holds the
// [Conn], may send notifications and requests to the peer.
//
//	reg := server.NewRegistry()
//	server.Handle(reg, "add", func(ctx context.Context, p struct{ A, B int }) (int, error) {
//		return p.A + p.B, nil
//	})
//	srv := server.New(reg, server.Options{})
//	err := srv.Serve(ctx, transport, frame.LSP)
//
// One registration gives dispatch, parameter checks with errors that say
// which parameter is wrong, and the method's description ([Registry.Methods]).
//
// # Order
//
// Requests start in the order in which they arrive. A handler is inline: it
// ends before the next message is looked at, so replies come in the order of
// requests, without a goroutine or a lock for each. A method registered with
// [LongRunning] runs beside the others, answers when it is done, and can be
// cancelled by $/cancelRequest.
//
// # What a peer can do to it
//
// Nothing that a peer sends, or fails to read, ends more than its own
// connection or takes more memory than [Options] allow. A panic in a handler
// is an answer (-32603) and a stack in the log.
//
// The package knows no method and no agent.
package server
