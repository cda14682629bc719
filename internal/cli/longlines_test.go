//go:build soak

package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/export"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// shapes are repeated to make one long line.
var shapes = []string{
	"a", "lorem ipsum ", "1", "a:1", "1:", "(", "[", "]", "[a](", "![", "<", "<a ", "/", "\\", ".", "-", "a/", "a.b", "`", "`a", "~", "*", "*a ", "_a", ">", "|",
	"http://", "&", " ", "\t", "\r", "\x1b[", "\x1b[31ma", "\x1b]0;", "+", "=", "\u200b", "é", "\"", "'", "$(", "{", "a;", "a && ",
}

// TestLongLinesTakeLinearTime passes one line of 5 MB to each function that reads text of
// agents and tools. Linear work takes about a second; quadratic work takes hours.
func TestLongLinesTakeLinearTime(t *testing.T) {
	const length, patience = 5 << 20, 5 * time.Minute
	marks := visible.ForLocale(func(string) string { return "C.UTF-8" })
	asInput := func(text string) json.RawMessage {
		raw, _ := json.Marshal(map[string]string{"command": text})
		return raw
	}
	var secrets redact.Secrets
	secrets.Add("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab")
	for name, read := range map[string]func(text string){
		"Markdown": func(text string) { (&term.Renderer{Columns: 80, Marks: marks}).Text(text) },
		"Markdown in pieces": func(text string) {
			s := term.Stream{Renderer: term.Renderer{Columns: 80, Marks: marks}}
			for ; len(text) > 4096; text = text[4096:] {
				s.Next(text[:4096])
			}
			s.Next(text)
			s.End()
		},
		"Go code":   func(text string) { term.For("go").Line(text) },
		"a script":  func(text string) { term.For("sh").Line(text) },
		"markup":    func(text string) { term.For("html").Line(text) },
		"exact":     func(text string) { marks.Exact(text) },
		"a line":    func(text string) { marks.Line(text) },
		"prose":     func(text string) { marks.Prose(text) },
		"no colour": func(text string) { visible.WithoutColors(text) },
		"a fence":   func(text string) { visible.Fence(text) },
		"a question": func(text string) {
			turn.Lay(turn.Question{Tool: "Bash", Title: text, Input: asInput(text), Details: text, Plan: text, Diff: "+" + text}, marks)
		},
		"a diff": func(text string) {
			before := text + "b"
			unified := diff.Unified("/", "/a", &before, &text)
			diff.Count(unified)
			diff.Hunks(unified)
		},
		"diagnostics": func(text string) {
			p := usercommand.NewParser("/", "/")
			for line := range strings.Lines(text) {
				p.Line(line)
			}
		},
		"secrets": func(text string) {
			secrets.Text(text)
			secrets.JSON(asInput(text))
		},
		"an input": func(text string) {
			toolinput.Read(asInput(text))
			toolinput.Fingerprint(asInput(text))
		},
		"a command":   func(text string) { shellcommand.Read(text).CouldRun(shellcommand.Glob("*x*y*")) },
		"a short one": func(text string) { term.Short(text) },
		"a wrapped one": func(text string) {
			term.Wrapped(text, 80, "  ")
			term.CutToFit(text, 80)
		},
		"a session": func(text string) {
			r := turn.Transcript{Diff: text, Items: []*protocol.SessionItem{
				{Item: protocol.Item{Type: protocol.ItemMessage, Role: "assistant", Text: text}},
				{Item: protocol.Item{Type: protocol.ItemToolCall, Key: "1", ToolName: "Bash", Title: text, ToolInput: asInput(text), Result: text}},
			}}
			r.Text(turn.Look{Columns: 80, Color: true})
			for _, i := range r.Items {
				_, _ = export.In(protocol.ExportMarkdown).Item(i, false)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, shape := range shapes {
				text := strings.Repeat(shape, length/len(shape)) + "x"
				done := make(chan struct{})
				began := time.Now()
				go func() {
					defer close(done)
					read(text)
				}()
				select {
				case <-done:
				case <-time.After(patience):
					assert.Fail(t, "it takes too long", "%q", shape)
					return
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Logf("%q: %s", shape, took.Round(time.Second))
				}
			}
		})
	}
}
