package hub

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/query"
)

// An agent's secret appears in nothing that is shown or stored of its output, however the output is
// split.
func TestAKeyIsTakenOutOfWhatAnAgentReports(t *testing.T) {
	const secret = "sk-0123456789abcdef"
	path := database(t)
	said := func(x *fakeTurn, id string, texts ...string) {
		for _, text := range texts {
			x.report(catalog.EventContentDelta, catalog.ContentDelta{MessageID: id, Delta: catalog.Delta{Text: text}})
		}
	}
	h := openHub(t, path, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		if x.p.Prompt == "again" { // the agent still has it
			said(x, "", "still "+secret)
			return completed
		}
		r, err := x.daemon.GetAPIKey(ctx, catalog.GetAPIKeyParams{SessionToken: x.p.SessionToken, Service: "x"})
		if err != nil || r.APIKey != secret {
			return lost
		}
		_, _ = x.daemon.GetAPIKey(ctx, catalog.GetAPIKeyParams{SessionToken: x.p.SessionToken, Service: "short"})
		said(x, "a", "one "+secret+" ", "two s", "k-0123", "456789abcdef three 1234567 s", "k-01") // its end is withheld
		said(x, "b", "another")
		x.report(catalog.EventThinkingChunk, catalog.ContentDelta{Delta: catalog.Delta{Text: "thought " + secret[:10]}})
		x.report(catalog.EventThinkingChunk, catalog.ContentDelta{Delta: catalog.Delta{Text: secret[10:]}})
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "t", Tool: "Bash", Title: "echo " + secret, Input: encode(map[string]string{"command": "echo " + secret})})
		_ = x.daemon.TerminalStarted(ctx, catalog.TerminalStartedParams{TerminalID: "term", TaskID: x.p.TaskID, Program: "echo", Args: []string{secret}})
		for _, p := range []catalog.TerminalOutputParams{
			{Data: "printed " + secret[:4], Encoding: "utf-8"},
			{Data: base64.StdEncoding.EncodeToString([]byte(secret[4:] + "\xff")), Encoding: "base64"},
			{Data: secret[:7], Encoding: "utf-8"},
		} {
			p.TerminalID, p.TaskID = "term", x.p.TaskID
			_ = x.daemon.TerminalOutput(ctx, p)
		}
		_ = x.daemon.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: "term", TaskID: x.p.TaskID})
		x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "t", Result: encode("was " + secret)})
		x.report("of a kind that nobody knows", json.RawMessage(`{"\u0073k-0123456789abcdef":1}`))
		_ = x.daemon.ReportError(ctx, catalog.ReportErrorParams{SessionToken: x.p.SessionToken, Error: catalog.ReportedError{Code: "X", Message: secret}})
		_ = x.daemon.ReportProgress(ctx, catalog.ReportProgressParams{SessionToken: x.p.SessionToken, Progress: catalog.Progress{Message: secret}})
		_, _ = x.daemon.CreateMessage(ctx, catalog.CreateMessageParams{SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, Message: catalog.CreateMessage{Role: "assistant", Content: encode(secret)}})
		said(x, "c", "before the question "+secret[:5])
		x.ask(ctx, "Write", map[string]string{"text": secret})
		said(x, "", "the last words "+secret[:12])
		return catalog.ExecutePromptResult{Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: "X", Message: "bad key " + secret}}
	}, func(o *Options) {
		o.Getenv = func(name string) string {
			return map[string]string{"X_API_KEY": secret, "SHORT_API_KEY": "1234567"}[name]
		}
	})
	c := subscribe(t, h, eventlog.Subscribing{}, 0)
	first := launchIn(t, h, "one", "p")
	approve(t, h, pendingOf(t, h, 1)[0], "")
	ended := await(t, h, first)
	assert.Equal(t, "bad key [secret]", ended.Error)
	assert.Equal(t, "the last words [secret]", ended.Result, "which is too much of it")
	assert.Equal(t, "still [secret]", await(t, h, launchIn(t, h, "one", "again")).Result)
	assert.Equal(t, "still "+secret, await(t, h, launchIn(t, h, "other", "again")).Result, "it is no key of that session's")
	hasEnd(t, c, 2)

	transcript := transcriptOf(t, h, first.UUID)
	texts := each(transcript.Entries, func(e query.Entry) string { return e.Content + e.Title + string(e.Input) + e.Result })
	assert.Subset(t, texts, []string{
		"one [secret] two [secret] three 1234567 sk-01", "another", "thought [secret]",
		`echo [secret]{"command":"echo [secret]"}was [secret]`, "[secret]", "before the question " + secret[:5],
	})
	printed := ""
	for _, n := range c.all() {
		if p, ok := n.Payload.(domain.TerminalPrinted); ok {
			printed += string(outputBytes(t, catalog.TerminalOutputParams(p)))
		}
		said := must(json.Marshal(n.Payload))(t)
		if !strings.Contains(string(said), "still ") {
			assert.NotContains(t, string(said), secret)
		}
	}
	assert.Equal(t, "printed [secret]\xff"+secret[:7], printed)
	require.NoError(t, h.Close())
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + suffix)
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
			assert.NotContains(t, strings.ReplaceAll(string(content), "still "+secret, ""), secret)
		}
	}
}

// A secret split over two messages appears in neither.
func TestAKeyInTwoMessages(t *testing.T) {
	const secret = "sk-0123456789abcdef"
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		if x.p.Prompt == "none" {
			return completed
		}
		_, _ = x.daemon.GetAPIKey(ctx, catalog.GetAPIKeyParams{SessionToken: x.p.SessionToken, Service: "x"})
		for i, text := range []string{"one " + secret[:4], secret[4:] + " two " + secret[:9], secret[9:] + " three " + secret[:11]} {
			x.report(catalog.EventContentDelta, catalog.ContentDelta{MessageID: string(rune('a' + i)), Delta: catalog.Delta{Text: text}})
		}
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "t", Tool: "Bash", Title: secret[11:], Input: encode(map[string]string{"first": secret[:10], "rest": secret[10:]})})
		return completed
	}, func(o *Options) {
		o.Getenv = func(string) string { return secret }
	})
	await(t, h, launch(t, h, "none"))
	s := await(t, h, launch(t, h, "p"))
	c := transcriptOf(t, h, s.UUID)
	texts := each(c.Entries, func(e query.Entry) string { return e.Content + e.Title + string(e.Input) })
	assert.Equal(t, []string{"p", "one sk-0", "[secret] two [secret]", "[secret] three [secret]", `[secret]{"first":"[secret]","rest":"[secret]"}`}, texts)
}

func outputBytes(t *testing.T, p catalog.TerminalOutputParams) []byte {
	t.Helper()
	if p.Encoding != "base64" {
		return []byte(p.Data)
	}
	return must(base64.StdEncoding.DecodeString(p.Data))(t)
}
