package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// firstID is the id of the first request of a cell. It has ten digits, so that
// ids can count up without changing the length of a frame, and occurs nowhere
// else in a message.
const firstID = 1_000_000_000

// smallParams are the params of all but the large requests; the body of such a
// request has about 110 bytes.
var smallParams = []byte(`{"path":"server/dispatch.go","line":42,"column":7}`)

// frame puts an LSP header before body.
func frame(body string) []byte {
	return []byte("Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// echoRequest is a framed request with the id firstID.
func echoRequest(params []byte) []byte {
	return frame(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo","params":%s}`, firstID, params))
}

func echoNotification(params []byte) []byte {
	return frame(fmt.Sprintf(`{"jsonrpc":"2.0","method":"echo","params":%s}`, params))
}

// pingRequest is a framed request with the id firstID.
func pingRequest() []byte {
	return frame(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, firstID))
}

// numbered repeats a frame with the id firstID count times, with ids that
// count up.
func numbered(one []byte, count int) []byte {
	at := bytes.Index(one, strconv.AppendInt(nil, firstID, 10))
	if at < 0 {
		panic("bench: frame without the first id")
	}
	all := bytes.Repeat(one, count)
	for i := range count {
		strconv.AppendInt(all[i*len(one)+at:i*len(one)+at], int64(firstID+i), 10)
	}
	return all
}

// splitHeader returns the lengths in bytes of the header section at the start
// of b, blank line included, and of the body that it announces. Both are 0
// while the header section is incomplete.
func splitHeader(b []byte) (header, body int, err error) {
	fields, _, complete := bytes.Cut(b, []byte("\r\n\r\n"))
	if !complete {
		if len(b) > 4096 {
			return 0, 0, fmt.Errorf("no end of a header in %.80q", b)
		}
		return 0, 0, nil
	}
	for line := range strings.SplitSeq(string(fields), "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(name, "Content-Length") {
			body, err = strconv.Atoi(strings.TrimSpace(value))
			return len(fields) + 4, body, err
		}
	}
	return 0, 0, fmt.Errorf("no Content-Length in %.80q", fields)
}

// checkReply says what is wrong with body as the reply to the request with the
// id firstID. With params, the result has to equal them, as JSON values: a
// server may escape a string in its own way.
func checkReply(body, params []byte) error {
	var reply struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return fmt.Errorf("reply is not JSON: %w: %.120q", err, body)
	}
	switch {
	case reply.Version != "2.0" || string(reply.ID) != strconv.Itoa(firstID):
		return fmt.Errorf("reply to something else: %.120q", body)
	case reply.Error != nil:
		return fmt.Errorf("error reply: %.300q", body)
	case reply.Result == nil:
		return fmt.Errorf("reply without a result: %.120q", body)
	case params == nil || bytes.Equal(reply.Result, params):
		return nil
	}
	var got, want any
	if err := errors.Join(json.Unmarshal(reply.Result, &got), json.Unmarshal(params, &want)); err != nil {
		return err
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("echo changed its params: %.120q", reply.Result)
	}
	return nil
}
