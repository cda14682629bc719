package demoagent_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/demoagent"
)

// one runs one turn of a new session.
func one(t *testing.T, text string) *client {
	c := start(t, demoagent.Options{}, everything)
	c.turn(c.session(t.TempDir()), text)
	return c
}

func TestTextOnly(t *testing.T) {
	c := one(t, "quiet, please")
	assert.Contains(t, c.shape(), "call:edit", "quiet, as people write it")
	c = one(t, "QUIET.")
	assert.Equal(t, "usage", c.shape())
	assert.Equal(t, "Hello from the demo agent. You asked: QUIET. That is all. ", c.text())
	assert.Contains(t, one(t, "quietly").shape(), "call:edit", "only whole words count")
	assert.Equal(t, "usage", one(t, "hang crash\nThe user's next message follows.\nquiet").shape(), "a transcript does not count")
	assert.Contains(t, one(t, "ask edit").shape(), "call:edit")
}

// Ordinary prompts are no scripts, whatever words they contain.
func TestProseHasNoKeywords(t *testing.T) {
	for _, prose := range []string{
		"Why does the build fail?", "Fail early in the parser", "fail early", "Crash: why?", "crash on start, see crash", "Hang on, is it slow?",
		"ask him", "Ask me before you edit", "Think hard", "unknown flags are refused: refuse them", "Terminal colours are wrong", "edit it, then fail",
		"slow tests: stream:5", "please stream:0", "say: crash", "Note: mode:none",
	} {
		c := one(t, prose)
		assert.Regexp(t, "^plan:ppp .*call:edit:pending update:completed .*usage$", c.shape(), prose)
		assert.Contains(t, c.text(), "That is all. ", prose)
		assert.Equal(t, 1, c.asked(), prose)
	}
	for text, said := range map[string]string{
		"quiet stream:2 of many": "chunk 2 That", "stream:2 why does it fail?": "chunk 2 That", "quiet ask": "You answered", "Think! quiet": "That is all",
	} {
		assert.Contains(t, one(t, text).text(), said, text)
	}
}

func TestStream(t *testing.T) {
	c := one(t, "quiet stream:500")
	var want strings.Builder
	for i := range 500 {
		fmt.Fprintf(&want, "chunk %d ", i+1)
	}
	assert.Contains(t, c.text(), want.String())
	assert.Equal(t, 500, strings.Count(strings.Join(c.raw.lines(), "\n"), `"text":"chunk `))
}

func TestStreamAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := one(t, "stream:21@100")
		assert.Equal(t, 200*time.Millisecond, time.Since(began), "20 intervals of 10 ms")
		assert.Contains(t, c.text(), "chunk 21 ")
	})
}

func TestArgumentsHaveLimits(t *testing.T) {
	c := start(t, demoagent.Options{}, everything)
	id := c.session(t.TempDir())
	for _, text := range []string{"stream:0", "stream:10000001", "stream:x", "stream:1@0", "tools:1000001", "tools:1@1", "permit:10001", "longline:257", "mode:none"} {
		_, err := c.prompt(id, text)
		assert.ErrorContains(t, err, "-32602", text)
	}
	c.turn(id, "quiet: a stream of tools: in one mode")
	for _, text := range []string{"stream:1", "stream:1@1000", "permit:1", "longline:1", "tools:1"} {
		c.turn(id, text)
	}
}

func TestTools(t *testing.T) {
	c := one(t, "tools:3")
	once := "call:execute:pending update:in_progress update:completed "
	assert.Equal(t, strings.Repeat(once, 3)+"usage", c.shape())
	ids := map[acp.ToolCallId]bool{}
	for _, u := range c.seen() {
		if u.ToolCall != nil {
			ids[u.ToolCall.ToolCallId] = true
			assert.Equal(t, map[string]any{"command": fmt.Sprintf("echo %d", len(ids))}, u.ToolCall.RawInput)
			assert.Equal(t, "Bash", u.ToolCall.Title)
		}
	}
	assert.Len(t, ids, 3)
	assert.Zero(t, c.asked())
}

func TestPermits(t *testing.T) {
	c := one(t, "permit:3")
	assert.Equal(t, 3, c.asked())
	assert.Equal(t, strings.Repeat("call:execute:pending update:completed ", 3)+"usage", c.shape())
	assert.Equal(t, map[string]any{"command": "echo 3"}, c.asks()[2].ToolCall.RawInput)
}

func TestTerminal(t *testing.T) {
	c := one(t, "terminal")
	require.Len(t, c.terminals, 4)
	assert.Equal(t, []string{"wait", "output", "release"}, c.terminals[1:])
	assert.Equal(t, "call:execute:pending update:in_progress update:completed usage", c.shape())
	for _, u := range c.seen() {
		if u.ToolCallUpdate != nil {
			assert.Equal(t, "term-1", u.ToolCallUpdate.Content[0].Terminal.TerminalId)
		}
	}
	without := start(t, demoagent.Options{}, acp.ClientCapabilities{})
	without.turn(without.session(t.TempDir()), "terminal")
	assert.Contains(t, without.text(), "The client offers no terminal. ")
}

func TestAsk(t *testing.T) {
	c := start(t, demoagent.Options{}, everything)
	id := c.session(t.TempDir())
	c.answers(choose("green"))
	c.turn(id, "ask")
	assert.Contains(t, c.text(), "You answered: green. ")
	ask := c.asks()[0]
	assert.Equal(t, map[string]any{"duet": map[string]any{"question": true}}, ask.ToolCall.Meta)
	assert.Equal(t, "Which colour do you like?", *ask.ToolCall.Title)
	require.Len(t, ask.Options, 3)
	assert.Equal(t, acp.PermissionOption{OptionId: "red", Name: "red", Kind: acp.PermissionOptionKindAllowOnce}, ask.Options[0])
	c.answers(func(context.Context, acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
		return acp.RequestPermissionResponse{
			Outcome: acp.NewRequestPermissionOutcomeCancelled(),
			Meta:    map[string]any{"duet": map[string]any{"response": "mauve"}},
		}, nil
	})
	c.turn(id, "ask")
	assert.Contains(t, c.text(), "You answered: mauve. ")
}

func TestThink(t *testing.T) {
	assert.Equal(t, "thought usage", one(t, "quiet think").shape())
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		one(t, "quiet slow")
		assert.Equal(t, 600*time.Millisecond, time.Since(began), "before the greeting and before the closing line")
	})
}

func TestEndings(t *testing.T) {
	c := start(t, demoagent.Options{}, everything)
	id := c.session(t.TempDir())
	_, err := c.prompt(id, "fail")
	assert.ErrorContains(t, err, "the demo agent was asked to fail")
	resp, err := c.prompt(id, "refuse")
	require.NoError(t, err)
	assert.Equal(t, acp.StopReasonRefusal, resp.StopReason)
	c.turn(id, "quiet")
}

func TestCrash(t *testing.T) {
	var log bytes.Buffer
	c := start(t, demoagent.Options{Stderr: &log}, everything)
	done := c.background(c.session(t.TempDir()), "crash")
	require.ErrorIs(t, c.requireEnd(), demoagent.ErrCrash)
	assert.Contains(t, log.String(), "asked to crash")
	assert.Contains(t, c.within(done), "disconnected", "the prompt is not answered")
	c.Await(c.t, func() bool { return strings.Contains(c.text(), "You asked: crash") }, "some text came")
}

func TestOddLines(t *testing.T) {
	for text, want := range map[string]string{
		"garbage": "this line is no JSON {]",
		"badutf8": "bad \xff\xfe\xc3( bytes ",
		"unknown": `"sessionUpdate":"duet_demo_unknown"`,
	} {
		t.Run(text, func(t *testing.T) {
			c := one(t, text)
			assert.Contains(t, strings.Join(c.raw.lines(), "\n"), want)
			assert.Contains(t, c.text(), "That is all. ", "it goes on")
		})
	}
	longest := 0
	for _, line := range one(t, "longline:3").raw.lines() {
		longest = max(longest, len(line)+1)
	}
	assert.Equal(t, 3<<20, longest)
}

func TestCancel(t *testing.T) {
	for _, text := range []string{"default", "ask", "permit:2", "slow quiet", "quiet stream:10000000@1"} {
		t.Run(text, func(t *testing.T) {
			c := start(t, demoagent.Options{}, everything)
			c.answers(untilEnd)
			id := c.session(t.TempDir())
			done := c.background(id, text)
			if strings.Contains(text, "quiet") {
				c.Await(c.t, func() bool { return len(c.seen()) > 0 }, "the turn has begun")
			} else {
				c.Await(c.t, func() bool { return c.asked() > 0 }, "it asks")
			}
			require.NoError(t, c.conn.Cancel(t.Context(), acp.CancelNotification{SessionId: id}))
			assert.Equal(t, acp.StopReasonCancelled, c.within(done))
			if text == "default" || text == "permit:2" {
				assert.Contains(t, c.shape(), "update:failed", "the tool call does not stay open")
			}
			c.turn(id, "quiet")
		})
	}
}

// A cancel right after the prompt finds its turn.
func TestCancelAtOnce(t *testing.T) {
	for range 50 {
		c := newWire(t)
		id := c.session(t.TempDir())
		c.send(`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"` + id + `","prompt":[{"type":"text","text":"slow"}]}}` + "\n" +
			`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + id + `"}}` + "\n")
		assert.Contains(t, c.reply(7), `"stopReason":"cancelled"`)
		c.close()
	}
}

func TestHelpListsEveryKeyword(t *testing.T) {
	for _, word := range []string{"quiet", "stream:N[@R]", "slow", "think", "terminal", "ask", "tools:N", "permit:N", "fail", "refuse", "crash", "hang", "garbage", "badutf8", "unknown", "longline:N", "mode:ID", "edit"} {
		assert.Contains(t, demoagent.Help(), "\n  "+word+" ")
	}
}
