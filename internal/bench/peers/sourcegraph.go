//go:build linux

package main

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/sourcegraph/jsonrpc2"
)

// serveSourcegraph serves echo and ping with github.com/sourcegraph/jsonrpc2
// as its documentation shows it: a buffered stream with VSCodeObjectCodec, and
// a handler that runs on the read loop (no AsyncHandler).
func serveSourcegraph() {
	stdio := struct {
		io.Reader
		io.WriteCloser
	}{os.Stdin, os.Stdout}
	stream := jsonrpc2.NewBufferedStream(stdio, jsonrpc2.VSCodeObjectCodec{})
	conn := jsonrpc2.NewConn(context.Background(), stream, responder{})
	<-conn.DisconnectNotify()
}

// responder copies params into the response without the encoding of Conn.Reply: the best case of the
// library.
type responder struct{}

var pong = json.RawMessage(`"pong"`)

func (responder) Handle(ctx context.Context, conn *jsonrpc2.Conn, request *jsonrpc2.Request) {
	if request.Notif {
		return
	}
	response := &jsonrpc2.Response{ID: request.ID}
	switch request.Method {
	case "echo":
		response.Result = request.Params
	case "ping":
		response.Result = &pong
	default:
		response.Error = &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "method not found"}
	}
	if err := conn.SendResponse(ctx, response); err != nil {
		os.Exit(1)
	}
}
