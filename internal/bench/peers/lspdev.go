//go:build linux

package main

import (
	"context"
	"io"
	"os"

	"go.lsp.dev/jsonrpc2"
)

// serveLSPDev serves echo and ping with go.lsp.dev/jsonrpc2: its LSP framing, its default codec, and a
// handler on its read loop. duet-rpc's targets are relative to it.
func serveLSPDev() {
	stream := jsonrpc2.NewHeaderStream(struct {
		io.Reader
		io.WriteCloser
	}{os.Stdin, os.Stdout})
	conn := jsonrpc2.NewConn(stream)
	conn.Go(context.Background(), answer)
	<-conn.Done()
}

// answer returns params unchanged for echo; the library writes them out raw.
func answer(_ context.Context, request *jsonrpc2.Request) (any, error) {
	switch request.Method() {
	case "echo":
		return request.Params(), nil
	case "ping":
		return "pong", nil
	default:
		return nil, jsonrpc2.ErrMethodNotFound
	}
}
