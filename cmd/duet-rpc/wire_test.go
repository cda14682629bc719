package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// framed puts a header before a message.
func framed(message string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(message), message)
}

// A frameReader reads frames as the pickiest client would: it knows no header
// but "Content-Length: N\r\n\r\n", and nothing between frames. It shares no
// code with the program.
type frameReader struct{ r *bufio.Reader }

func newFrameReader(r io.Reader) frameReader { return frameReader{bufio.NewReaderSize(r, 64<<10)} }

// next is the body of the next frame, or io.EOF where a frame could begin.
func (f frameReader) next() ([]byte, error) {
	line, err := f.r.ReadString('\n')
	if err == io.EOF && line == "" {
		return nil, io.EOF
	}
	digits, isLength := strings.CutPrefix(line, "Content-Length: ")
	digits, isWhole := strings.CutSuffix(digits, "\r\n")
	n, notNumber := strconv.Atoi(digits)
	if !isLength || !isWhole || notNumber != nil || strconv.Itoa(n) != digits {
		return nil, fmt.Errorf("no header: %.200q (%v)", line, err)
	}
	var blank [2]byte
	if _, err := io.ReadFull(f.r, blank[:]); err != nil || string(blank[:]) != "\r\n" {
		return nil, fmt.Errorf("no blank line after %q: %q (%v)", line, blank, err)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(f.r, body); err != nil {
		return nil, fmt.Errorf("the body of %d bytes is cut short: %w", n, err)
	}
	return body, nil
}

// requireFrames requires that out is frames and nothing else, and that each of
// them is a response, or a batch of them.
func requireFrames(t testing.TB, out []byte) (bodies []string) {
	t.Helper()
	frames := newFrameReader(bytes.NewReader(out))
	for {
		body, err := frames.next()
		if err == io.EOF {
			return bodies
		}
		require.NoError(t, err, "standard output: %.2000q", out)
		require.NoError(t, checkBody(body), "standard output: %.2000q", out)
		bodies = append(bodies, string(body))
	}
}

// checkBody says what is wrong with a response or a batch of them.
func checkBody(body []byte) error {
	if !utf8.Valid(body) {
		return fmt.Errorf("not UTF-8: %.200q", body)
	}
	if !bytes.HasPrefix(body, []byte("[")) {
		return checkResponse(body)
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(body, &batch); err != nil {
		return err
	}
	if len(batch) == 0 {
		return errors.New("an empty batch")
	}
	for _, response := range batch {
		if err := checkResponse(response); err != nil {
			return err
		}
	}
	return nil
}

// checkResponse says what is wrong with one response: it must have the members
// that JSON-RPC names and no others, since jsonrpc.el never answers its caller
// if an error has one more.
func checkResponse(response []byte) error {
	var r map[string]json.RawMessage
	if err := json.Unmarshal(response, &r); err != nil {
		return fmt.Errorf("%w: %.200q", err, response)
	}
	if string(r["jsonrpc"]) != `"2.0"` || r["id"] == nil || len(r) != 3 {
		return fmt.Errorf("not a response: %.200q", response)
	}
	if r["result"] != nil {
		return nil
	}
	var e map[string]json.RawMessage
	if err := json.Unmarshal(r["error"], &e); err != nil {
		return fmt.Errorf("no error object: %.200q", response)
	}
	allowed := 2
	if e["data"] != nil {
		allowed = 3
	}
	var code int
	var message string
	if json.Unmarshal(e["code"], &code) != nil || json.Unmarshal(e["message"], &message) != nil || len(e) != allowed {
		return fmt.Errorf("not an error: %.200q", response)
	}
	return nil
}

var timestamp = regexp.MustCompile(`"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)

// withoutTime replaces timestamps by one of the same length.
func withoutTime(out []byte) []byte {
	return timestamp.ReplaceAll(out, []byte(`"timestamp":"2000-01-01T00:00:00.000Z"`))
}
