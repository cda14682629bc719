package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

func TestNumberedFramesKeepTheirLength(t *testing.T) {
	one := echoRequest(smallParams)
	block := numbered(one, 3)
	for i := range 3 {
		request := block[i*len(one) : (i+1)*len(one)]
		header, body, err := splitHeader(request)
		if err != nil || header+body != len(request) {
			t.Fatalf("frame %d: header %d, body %d, %v", i, header, body, err)
		}
		var message struct{ ID int }
		if err := json.Unmarshal(request[header:], &message); err != nil || message.ID != firstID+i {
			t.Errorf("frame %d has id %d, %v", i, message.ID, err)
		}
	}
}

func TestSplitHeader(t *testing.T) {
	for _, test := range []struct {
		in           string
		header, body int
		fails        bool
	}{
		{"", 0, 0, false},
		{"Content-Length: 12\r\n\r", 0, 0, false},
		{"Content-Length: 12\r\n\r\n{", 22, 12, false},
		{"Content-Type: x\r\ncontent-length:7\r\n\r\n", 37, 7, false},
		{"Content-Type: x\r\n\r\n", 0, 0, true},
		{"Content-Length: x\r\n\r\n", 0, 0, true},
	} {
		header, body, err := splitHeader([]byte(test.in))
		if (err != nil) != test.fails || err == nil && (header != test.header || body != test.body) {
			t.Errorf("splitHeader(%q) = %d, %d, %v", test.in, header, body, err)
		}
	}
}

func TestCheckReply(t *testing.T) {
	params := []byte(`{"a":"x<y","b":[1]}`)
	for reply, good := range map[string]bool{
		`{"jsonrpc":"2.0","id":%d,"result":{"a":"x<y","b":[1]}}`:             true,
		`{"result":{"b":[1],"a":"x\u003cy"},"id":%d,"jsonrpc":"2.0"}`:        true,
		`{"jsonrpc":"2.0","id":%d,"result":{"a":"x<y","b":[1,2]}}`:           false,
		`{"jsonrpc":"2.0","id":"%d","result":{"a":"x<y","b":[1]}}`:           false,
		`{"jsonrpc":"2.0","id":%d}`:                                          false,
		`{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"none"}}`: false,
		`{"id":%d,"result":{"a":"x<y","b":[1]}}`:                             false,
		`%d`:                                                                 false,
		`{`:                                                                  false,
	} {
		body := []byte(reply)
		if bytes.Contains(body, []byte("%d")) {
			body = fmt.Appendf(nil, reply, firstID)
		}
		if err := checkReply(body, params); (err == nil) != good {
			t.Errorf("checkReply(%s) = %v", body, err)
		}
	}
}

func TestLargeParams(t *testing.T) {
	for _, size := range []int{2_000, megabyteSize, nearMaximumSize} {
		params := largeParams(size)
		if len(params) != size || !json.Valid(params) {
			t.Errorf("%d bytes wanted: %d, valid: %t", size, len(params), json.Valid(params))
		}
		if bytes.Contains(params, fmt.Append(nil, firstID)) {
			t.Errorf("%d bytes: the first id occurs in params", size)
		}
	}
}
