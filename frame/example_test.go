package frame_test

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/frame"
)

// netstrings is a custom framing: each message is its length in decimal, a colon, the body and a
// comma.
type netstrings struct{}

func (netstrings) String() string { return "netstrings" }
func (netstrings) AppendHeader(dst []byte, n int) []byte {
	return append(strconv.AppendInt(dst, int64(n), 10), ':')
}
func (netstrings) AppendTrailer(dst []byte) []byte { return append(dst, ',') }
func (netstrings) OneLine() bool                   { return false }
func (netstrings) NewSplitter() frame.Splitter     { return netstringSplitter{} }

type netstringSplitter struct{}

func (netstringSplitter) NotJSON() {} // the next message begins after the comma in any case

func (netstringSplitter) Next(in *frame.Input) ([]byte, error) {
	for {
		have := in.Bytes()
		need := len(have) + 1
		if colon := bytes.IndexByte(have, ':'); colon >= 0 {
			n, err := strconv.Atoi(string(have[:colon]))
			if err != nil || n < 0 || n > in.Limits().MaxFrame {
				in.Discard(colon + 1)
				in.EndFrame()
				return nil, &frame.Refusal{Reason: frame.ReasonBadContentLength, Detail: "a netstring begins with its length"}
			}
			need = colon + 1 + n + 1
			if len(have) >= need {
				in.Discard(need)
				in.EndFrame()
				return have[colon+1 : need-1], nil
			}
		}
		err := in.Fill(need, len(have) > 0)
		if errors.Is(err, frame.ErrTimeout) {
			in.Discard(len(have))
			in.EndFrame()
		}
		if err != nil {
			return nil, err
		}
	}
}

// A program may bring its own framing.
func ExampleFraming() {
	sent := frame.Append(nil, netstrings{}, []byte(`{"jsonrpc":"2.0","method":"one"}`))
	sent = append(sent, "nonsense:"...)
	sent = frame.Append(sent, netstrings{}, []byte(`{"jsonrpc":"2.0","method":"two"}`))
	fmt.Println(string(sent))

	r := frame.NewReader(strings.NewReader(string(sent)), netstrings{}, frame.Limits{})
	var m frame.Message
	for {
		err := r.Next(&m)
		var refusal *frame.Refusal
		switch {
		case err == nil:
			fmt.Println(string(m.Method))
		case errors.As(err, &refusal):
			fmt.Println(refusal.Detail)
		default:
			fmt.Println(err)
			return
		}
	}
	// Output:
	// 32:{"jsonrpc":"2.0","method":"one"},nonsense:32:{"jsonrpc":"2.0","method":"two"},
	// "one"
	// a netstring begins with its length
	// "two"
	// EOF
}
