//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

const (
	headerStart = "Content-Length: "
	headerEnd   = "\r\n\r\n"

	// idWithin limits the search for a request's "id", in bytes from the beginning of the body.
	idWithin = 32
)

var (
	idMember     = []byte(`"id":`)
	errBadHeader = errors.New("not a frame of the load generator")
)

// echoFrames reads LSP frames, sends requests back unchanged and drops notifications. It reads only as
// much of the JSON as it needs to distinguish them. No server that parses can be faster with the same
// buffers, so it is the limit for the other figures.
//
// It understands the load generator's frames only: one Content-Length header,
// spelled so, and "id" right after "jsonrpc". It keeps the input in one buffer. It writes adjacent
// requests in one call, and copies nothing.
func echoFrames(in io.Reader, out io.Writer) error {
	buffer := make([]byte, 64<<10)
	filled := 0
	for {
		n, err := in.Read(buffer[filled:])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		filled += n

		// buffer[echoFrom:next] are requests not yet written.
		echoFrom, next, missing := 0, 0, 0
		for {
			size, isRequest, err := measureFrame(buffer[next:filled])
			if err != nil {
				return err
			}
			if size == 0 || next+size > filled {
				missing = size
				break
			}
			if !isRequest {
				if err := writeAll(out, buffer[echoFrom:next]); err != nil {
					return err
				}
				echoFrom = next + size
			}
			next += size
		}
		if err := writeAll(out, buffer[echoFrom:next]); err != nil {
			return err
		}

		if missing > len(buffer) {
			grown := make([]byte, missing)
			filled = copy(grown, buffer[next:filled])
			buffer = grown
		} else if next > 0 {
			filled = copy(buffer, buffer[next:filled])
		}
	}
}

// measureFrame returns the length in bytes, header included, of the frame at
// the start of b, or 0 while its header is incomplete. isRequest is only
// meaningful once the whole frame is in b.
func measureFrame(b []byte) (size int, isRequest bool, err error) {
	end := bytes.Index(b[:min(len(b), 64)], []byte(headerEnd))
	if end < 0 {
		if len(b) >= 64 {
			return 0, false, errBadHeader
		}
		return 0, false, nil
	}
	if end < len(headerStart) || string(b[:len(headerStart)]) != headerStart {
		return 0, false, errBadHeader
	}
	length, err := strconv.Atoi(string(b[len(headerStart):end]))
	if err != nil {
		return 0, false, errBadHeader
	}
	body := b[end+len(headerEnd):]
	return end + len(headerEnd) + length, bytes.Contains(body[:min(len(body), length, idWithin)], idMember), nil
}

func writeAll(out io.Writer, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := out.Write(b)
	return err
}
