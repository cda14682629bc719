// Package server is one JSON-RPC 2.0 endpoint: it reads messages from a
// transport, runs the handlers that a program registered, and answers. Both
// directions share a connection: any code that has the [Conn], such as a handler,
// may send notifications and requests to the peer.
//
// This is a whole program, for an editor or a script to start and to talk to
// over its standard input and output:
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"log"
//		"os"
//		"os/signal"
//
//		"github.com/duet-rpc/duet-rpc/frame"
//		"github.com/duet-rpc/duet-rpc/server"
//		"github.com/duet-rpc/duet-rpc/server/stdio"
//	)
//
//	type numbers struct {
//		A float64 `json:"a" doc:"What is divided."`
//		B float64 `json:"b" doc:"By what."`
//	}
//
//	func divide(ctx context.Context, p numbers) (float64, error) {
//		if p.B == 0 {
//			return 0, errors.New("b is 0") // for the log; the client learns only that it failed
//		}
//		return p.A / p.B, nil
//	}
//
//	func main() {
//		methods := server.NewRegistry()
//		server.Handle(methods, "divide", divide, server.Doc("Divides a number by another."))
//
//		framing := frame.LSP // a Content-Length header before each message, as editors send them
//		if len(os.Args) > 1 && os.Args[1] == "--lines" {
//			framing = frame.NDJSON // a message a line
//		}
//		transport, err := stdio.Take() // all other output goes to standard error from now on
//		if err != nil {
//			log.Fatal(err)
//		}
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//		defer stop()
//		// It ends when its input does, or the signal comes.
//		if err := server.New(methods, server.Options{}).Serve(ctx, transport, framing); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// With it running as ./divide,
//
//	printf 'Content-Length: 65\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"divide","params":{"a":6,"b":4}}' | ./divide
//
// prints
//
//	Content-Length: 37
//
//	{"jsonrpc":"2.0","id":1,"result":1.5}
//
// and
//
//	printf '{"jsonrpc":"2.0","id":1,"method":"divide","params":{"a":6,"b":4}}\n' | ./divide --lines
//
// prints
//
//	{"jsonrpc":"2.0","id":1,"result":1.5}
//
// To serve the same methods over a Unix socket, where the first byte of each
// connection selects its framing, write
//
//	listener, err := net.Listen("unix", path)
//	…
//	err = server.New(methods, server.Options{}).ServeListener(ctx, listener)
//
// and package client calls them.
//
// One registration gives dispatch, parameter checks with errors that say
// which parameter is wrong, and the method's description ([Registry.Methods]).
// [Handle] says how parameters are named.
//
// # Order
//
// Requests start in the order in which they arrive. A handler is inline: it
// ends before the next message is looked at, so replies come in the order of
// requests, without a goroutine or a lock for each. A method registered with
// [LongRunning] runs beside the others, answers when it is done, and can be
// cancelled by $/cancelRequest.
//
// # Limits
//
// A peer that sends bad messages, or does not read, can end only its own
// connection, and cannot use more memory than [Options] allow. A panic in a
// handler becomes an error response (-32603), and its stack goes to the log.
//
// # Related packages
//
// Package stdio takes over standard input and output. Package schema describes the
// types of parameters and results. Package frame has the framings; a program may
// bring its own ([frame.Framing]).
//
// The package knows no method and no agent.
package server
