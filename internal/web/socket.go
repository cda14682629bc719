package web

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/coder/websocket"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// A text message of a WebSocket has one or more whole lines, and each line is a JSON-RPC message.

const (
	mostRead   = frame.DefaultMaxFrame + 1 // bytes of a message of a page
	chunk      = 64 << 10                  // bytes that are passed on at once
	pingEvery  = 25 * time.Second          // shorter than proxies wait
	writesIn   = 30 * time.Second          // a page that reads nothing for so long has gone
	closeLasts = time.Second
)

// Close codes for a page.
const (
	closeUnpaired = websocket.StatusCode(4401) // it has to be paired
	closeRemoved  = websocket.StatusCode(4403) // its device was removed
)

// serveSocket serves methods on a WebSocket until it ends, or ctx does.
func serveSocket(ctx context.Context, ws *websocket.Conn, s *server.Server) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ws.SetReadLimit(mostRead)
	near, far := server.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(ctx, near, frame.NDJSON) // ends with its transport
	}()
	go func() {
		defer cancel()
		_ = fromPage(ctx, ws, far)
	}()
	go func() {
		defer cancel()
		for isAliveAfter(ctx, pingEvery) {
			within, cancel := context.WithTimeout(ctx, writesIn)
			err := ws.Ping(within)
			cancel()
			if err != nil {
				return
			}
		}
	}()
	_ = toPage(ctx, ws, far)
	cancel()
	far.Close()
	<-served
}

// fromPage passes on what a page sends.
func fromPage(ctx context.Context, ws *websocket.Conn, to server.Transport) error {
	defer to.Close()
	for {
		kind, message, err := ws.Read(ctx)
		if err != nil {
			return err
		}
		if kind != websocket.MessageText {
			return errors.New("web: a message that is no text")
		}
		if _, err := to.Write(append(message, '\n')); err != nil {
			return err
		}
	}
}

// toPage passes on what the server sends, in messages of whole lines.
func toPage(ctx context.Context, ws *websocket.Conn, from server.Transport) error {
	var lines []byte
	buffer := make([]byte, chunk)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return err
		}
		lines = append(lines, buffer[:n]...)
		end := bytes.LastIndexByte(lines, '\n') + 1
		if end == 0 {
			continue
		}
		within, cancel := context.WithTimeout(ctx, writesIn)
		err = ws.Write(within, websocket.MessageText, lines[:end])
		cancel()
		if err != nil {
			return err
		}
		if lines = append(lines[:0], lines[end:]...); cap(lines) > 16*chunk && len(lines) < chunk {
			lines = bytes.Clone(lines) // a large answer is gone
		}
	}
}

// isAliveAfter waits, and reports whether ctx is still alive.
func isAliveAfter(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
