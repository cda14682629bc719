//go:build linux

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
)

func framed(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

func TestEchoFrames(t *testing.T) {
	request := framed(`{"jsonrpc":"2.0","id":1000000000,"method":"echo","params":{}}`)
	notification := framed(`{"jsonrpc":"2.0","method":"echo","params":{"id":1}}`)
	large := framed(`{"jsonrpc":"2.0","id":1000000001,"method":"echo","params":"` + strings.Repeat("x", 200<<10) + `"}`)
	in := notification + request + request + notification + notification + large + request + notification
	want := request + request + large + request

	var whole, split bytes.Buffer
	if err := echoFrames(strings.NewReader(in), &whole); err != nil || whole.String() != want {
		t.Errorf("whole: %v, %d bytes of %d", err, whole.Len(), len(want))
	}
	if err := echoFrames(iotest.OneByteReader(strings.NewReader(in)), &split); err != nil || split.String() != want {
		t.Errorf("split: %v, %d bytes of %d", err, split.Len(), len(want))
	}
	for _, bad := range []string{"Content-Length: x\r\n\r\n", strings.Repeat("y", 64), "x\r\n\r\n"} {
		if echoFrames(strings.NewReader(bad), &whole) == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
