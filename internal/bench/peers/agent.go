//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// serveAgent is an agent that speaks the Agent Client Protocol and sends
// updates at a pace, each with the time at which it was sent. The prompt says
// what: "calls N@R" are N updates of tool calls, each call begun and then
// completed, R a second; "chunks N@R" are pieces of one message; "messages N@R" are
// messages of one piece each, behind a tool call each. R 0 is as fast as it is read.
func serveAgent() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var call struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Prompt []struct {
					Text string `json:"text"`
				} `json:"prompt"`
			} `json:"params"`
		}
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			return err
		}
		if call.ID == nil {
			continue
		}
		var result string
		switch call.Method {
		case "initialize":
			result = `{"protocolVersion":1,"agentCapabilities":{}}`
		case "session/new":
			result = `{"sessionId":"bench"}`
		case "session/prompt":
			last := len(call.Params.Prompt) - 1
			if last < 0 {
				return fmt.Errorf("a prompt without a text")
			}
			if err := stream(call.Params.Prompt[last].Text); err != nil {
				return err
			}
			result = `{"stopReason":"end_turn"}`
		default:
			result = `{}`
		}
		if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", call.ID, result); err != nil {
			return err
		}
	}
	return lines.Err()
}

const (
	head  = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"bench","update":{"sessionUpdate":`
	chunk = head + `"agent_message_chunk","content":{"type":"text","text":"`
	begun = head + `"tool_call","status":"pending","kind":"execute","rawInput":{"command":"make test"},"toolCallId":"call-`
	ended = head + `"tool_call_update","status":"completed","rawOutput":"ok\n","toolCallId":"call-`
)

// stream sends what the prompt asks for.
func stream(prompt string) error {
	var kind string
	var count, rate int
	if _, err := fmt.Sscanf(prompt, "%s %d@%d", &kind, &count, &rate); err != nil {
		return fmt.Errorf("the prompt %q: %w", prompt, err)
	}
	var out []byte
	write := func() error {
		_, err := os.Stdout.Write(out)
		out = out[:0]
		return err
	}
	began := time.Now()
	for i := range count {
		if rate > 0 {
			// A timer of the runtime may be late by a millisecond.
			due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
			if wait := time.Until(due); wait > 0 {
				pause := unix.NsecToTimespec(int64(wait))
				unix.Nanosleep(&pause, nil)
			}
		}
		now := time.Now().UnixNano()
		switch {
		case kind == "chunks":
			out = append(out, chunk...)
			out = strconv.AppendInt(out, now, 10)
			out = append(out, ' ')
			out = strconv.AppendInt(out, int64(i), 10)
			out = append(out, " \"}}}}\n"...)
		case kind == "messages":
			out = toolUpdate(out, begun, i, now)
			out = append(out, chunk...)
			out = strconv.AppendInt(out, now, 10)
			out = append(out, " \"}}}}\n"...)
		case i%2 == 0:
			out = toolUpdate(out, begun, i/2, now)
		default:
			out = toolUpdate(out, ended, i/2, now)
		}
		// Real agents write each update by itself.
		if rate > 0 || len(out) > 32<<10 {
			if err := write(); err != nil {
				return err
			}
		}
	}
	return write()
}

func toolUpdate(out []byte, start string, call int, now int64) []byte {
	out = append(out, start...)
	out = strconv.AppendInt(out, int64(call), 10)
	out = append(out, `","title":"sent `...)
	out = strconv.AppendInt(out, now, 10)
	return append(out, "\"}}}\n"...)
}
