package demoagent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/acp"
)

// promptMarker is the line that ends a transcript which a client has put before the prompt.
const promptMarker = "The user's next message follows."

// requestMarker is the line after which duet-rpc repeats the request of a turn whose question was
// answered after its process had ended.
const requestMarker = "The request was:"

// blocksOf decodes the content blocks of a prompt.
func blocksOf(list []json.RawMessage) ([]acp.Content, error) {
	blocks := make([]acp.Content, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &blocks[i]); err != nil {
			return nil, acp.InvalidParams(err)
		}
	}
	return blocks, nil
}

// promptText returns the part of the prompt after a transcript.
func promptText(blocks []acp.Content) string {
	var lines []string
	for _, b := range blocks {
		if b.Type == "text" && b.Text != nil {
			lines = append(lines, strings.Split(*b.Text, "\n")...)
		}
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimRight(lines[i], " \t\r") == promptMarker {
			lines = lines[i+1:]
			break
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// requestOf returns the original request in a prompt that resumes a turn.
func requestOf(text string) (request string, ok bool) {
	const marker = "\n" + requestMarker + "\n"
	i := strings.LastIndex(text, marker)
	if i < 0 || !meansContinue(text) {
		return "", false
	}
	return strings.TrimSpace(text[i+len(marker):]), true
}

// meansContinue reports whether text starts with the word "continue".
func meansContinue(text string) bool {
	const word = "continue"
	if len(text) < len(word) || !strings.EqualFold(text[:len(word)], word) {
		return false
	}
	rest := []rune(cut(text[len(word):], 4))
	return len(rest) == 0 || !unicode.IsLetter(rest[0])
}

// quote returns the first 80 characters of text, on one line.
func quote(text string) string {
	runes := []rune(strings.Join(strings.Fields(cut(text, keptPrompt)), " "))
	return string(runes[:min(80, len(runes))])
}

// cut returns at most n bytes of text, without an incomplete character at its end.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	n = max(0, n)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// effect is the effect of a keyword on the rest of the turn.
type effect int

const (
	modifies effect = iota // the turn stays the same
	replaces               // the keyword replaces the plan and the edit
)

type keyword struct {
	name   string
	form   string // the form of its argument; "": no argument
	most   int    // the largest N; 0 if the argument is not a number
	effect effect
	early  bool                                         // before the greeting
	ends   bool                                         // ends the turn, so a continued turn omits it
	run    func(*turn, context.Context, argument) error // a method of turn
	help   string
}

// keywords lists the words that a prompt may begin with, in the order in which they act. It is a
// function because the actions look words up here, too.
func keywords() []keyword {
	return []keyword{
		{name: "quiet", help: "text only: no plan, no edit"},
		{name: "slow", help: "pauses of 300 ms between steps, so that a human can interrupt"},
		{name: "mode", form: ":ID", early: true, run: (*turn).changeMode, help: "the agent changes its own mode to ID"},
		{name: "think", early: true, run: (*turn).think, help: "thoughts first"},
		{name: "sketch", early: true, run: (*turn).sketch, help: "a thought that is an image first"},
		{name: "garbage", effect: replaces, run: (*turn).garbage, help: "prints a line that is not JSON, then goes on"},
		{name: "badutf8", effect: replaces, run: (*turn).badUTF8, help: "prints invalid UTF-8 inside a JSON string, then goes on"},
		{name: "unknown", effect: replaces, run: (*turn).unknownUpdate, help: "sends an update of an unknown kind"},
		{name: "longline", form: ":N", most: 256, effect: replaces, run: (*turn).longLine, help: "sends one line of N megabytes"},
		{name: "stream", form: ":N[@R]", most: 10_000_000, effect: replaces, run: (*turn).stream, help: "N chunks of text, as fast as it can or R a second"},
		{name: "tools", form: ":N", most: 1_000_000, effect: replaces, run: (*turn).tools, help: "N tool calls without permission, as fast as it can"},
		{name: "terminal", effect: replaces, run: (*turn).terminal, help: "runs `ls -la` in a terminal"},
		{name: "image", effect: replaces, run: (*turn).image, help: "an image in a message, and one that a tool gives back"},
		{name: "colors", effect: replaces, run: (*turn).colors, help: "a tool call whose output has colours"},
		{name: "subagent", effect: replaces, run: (*turn).subagent, help: "a tool call that is part of another one"},
		{name: "stuck", ends: true, run: (*turn).stuck, help: "a tool call of a sub-agent that never ends, until the turn is cancelled"},
		{name: "content", effect: replaces, run: (*turn).content, help: "says what came with the prompt"},
		{name: "ask", effect: replaces, run: (*turn).question, help: "asks the human a question and repeats the answer"},
		{name: "form", effect: replaces, run: (*turn).form, help: "has the human fill in a form and repeats the values"},
		{name: "link", effect: replaces, run: (*turn).link, help: "asks the human to open an address, and says that it is done"},
		{name: "editor", form: ":TOOL", effect: replaces, run: (*turn).editor, help: "calls a tool of the human's editor, such as selection, " +
			"and says its result"},
		{name: "permit", form: ":N", most: 10_000, effect: replaces, run: (*turn).permits, help: "N tool calls, each asking permission"},
		{name: "background", effect: replaces, run: (*turn).background, help: "starts a task that ends after the turn; then goes on by itself, " +
			"with an edit"},
		{name: "late", form: ":N", most: 10_000_000, effect: replaces, help: "N chunks of text after the turn, as fast as it can"},
		{name: "goal", effect: replaces, help: "begins turn after turn by itself, 20 in all, until it is cancelled"},
		{name: "fail", ends: true, run: (*turn).fail, help: "the prompt is answered with an error"},
		{name: "refuse", ends: true, run: (*turn).refuse, help: "the turn ends with the stop reason refusal"},
		{name: "crash", ends: true, run: (*turn).crash, help: "exits with status 3 in the middle of the turn"},
		{name: "hang", ends: true, run: (*turn).hang, help: "never answers; ignores session/cancel, SIGINT and SIGTERM"},
		{name: "edit", run: (*turn).edit, help: "the plan and the edit beside other words"},
	}
}

// Help describes a turn and lists every keyword, for a command's help.
func Help() string {
	var b strings.Builder
	b.WriteString(`A turn is a plan, some text, one edit of demo.txt in the session's directory
that asks permission, and a closing line. A prompt of these words alone, in any
case, changes that; what is written otherwise is taken for prose:

`)
	for _, k := range keywords() {
		fmt.Fprintf(&b, "  %-14s %s\n", k.name+k.form, k.help)
	}
	b.WriteString(`
`)
	var instead []string
	for _, k := range keywords() {
		if k.effect == replaces {
			instead = append(instead, k.name)
		}
	}
	fmt.Fprintf(&b, "Instead of the plan and the edit: %s.\n", strings.Join(instead, ", "))
	b.WriteString(`Words may be combined ("slow ask", "quiet stream:100"); they act in the order
of this list. Others may follow ("quiet stream:100 of apples") where the first
is quiet or has a colon, which prose does not begin with. Below a line "The user's next message follows.", as duet-rpc
writes it under a transcript, only what follows the last such line counts. A
prompt that starts with "continue" goes on with the last turn if that was
cancelled or its process ended; where it repeats a request below a line "The
request was:", as duet-rpc's own do, with the last such turn of that request,
else it is that request that counts.

Modes: default; acceptEdits and bypassPermissions edit without asking; plan
edits nothing.
`)
	return b.String()
}

// parseScript returns the keywords at the beginning of text. It fails for a keyword with an
// invalid argument. A word without its argument is no keyword. Some of the words also begin
// sentences ("Fail early", "ask him"). If other text follows, they count only after a word that
// never begins a sentence.
func parseScript(text string) (script, error) {
	s, table := script{}, keywords()
	marked := false
	for field := range strings.FieldsSeq(text) {
		word := strings.Trim(strings.ToLower(field), ".,;:!?\"'`()[]{}<>*_")
		name, value, _ := strings.Cut(word, ":")
		i := slices.IndexFunc(table, func(k keyword) bool { return k.name == name })
		if i < 0 || (value == "") != (table[i].form == "") {
			if !marked {
				return script{}, nil
			}
			break
		}
		marked = marked || len(s) == 0 && (field == "quiet" || value != "")
		arg, err := table[i].parse(value)
		if err != nil {
			return nil, err
		}
		s[name] = arg
	}
	return s, nil
}

func (k keyword) parse(value string) (argument, error) {
	arg := argument{word: value}
	if k.most == 0 {
		return arg, nil
	}
	number, rate, paced := strings.Cut(value, "@")
	var err error
	if arg.n, err = strconv.Atoi(number); err != nil || arg.n < 1 || arg.n > k.most {
		return arg, fmt.Errorf("%s%s takes an N from 1 to %d, got %q", k.name, k.form, k.most, value)
	}
	if !paced {
		return arg, nil
	}
	if arg.rate, err = strconv.Atoi(rate); err != nil || arg.rate < 1 || k.form != ":N[@R]" {
		return arg, fmt.Errorf("%s%s got %q", k.name, k.form, value)
	}
	return arg, nil
}

// String returns text that parses to s again.
func (s script) String() string {
	var words []string
	for _, k := range keywords() {
		if arg, ok := s[k.name]; ok {
			words = append(words, strings.TrimSuffix(k.name+":"+arg.word, ":"))
		}
	}
	return strings.Join(words, " ")
}

// edits reports whether the turn has the plan and the edit.
func (s script) edits() bool {
	if s.has("quiet") {
		return false
	}
	for _, k := range keywords() {
		if s.has(k.name) && k.effect == replaces {
			return s.has("edit")
		}
	}
	return true
}

// step is one action of a turn.
type step struct {
	name string
	run  func(context.Context, *turn) error
}

// closing is the name of the last step, which every turn has.
const closing = "closing"

// steps returns the steps of a turn before its closing line, in order. A turn that continues
// another one starts with the interrupted step, without the greeting and without the keyword that
// interrupted the turn.
func (s script) steps(continued bool, from string) []step {
	var early, late []step
	for _, k := range keywords() {
		arg, asked := s[k.name]
		if k.name == "edit" {
			asked = s.edits()
		}
		if k.run == nil || !asked || continued && (k.ends || k.early) {
			continue
		}
		st := step{k.name, func(ctx context.Context, t *turn) error { return k.run(t, ctx, arg) }}
		if k.early {
			early = append(early, st)
		} else {
			late = append(late, st)
		}
	}
	if !continued {
		early = append(early, step{"greeting", func(ctx context.Context, t *turn) error { return t.greet(ctx) }})
		return append(early, late...)
	}
	if from == closing {
		return nil
	}
	table := keywords()
	place := func(name string) int { // the greeting has none: all steps follow it
		return slices.IndexFunc(table, func(k keyword) bool { return k.name == name })
	}
	return slices.DeleteFunc(late, func(st step) bool { return place(st.name) < place(from) })
}

// argument is the value after a keyword's colon.
type argument struct {
	n    int    // a count
	rate int    // per second; 0: as fast as possible
	word string // the text
}

// script is the keywords of a prompt.
type script map[string]argument

func (s script) has(name string) bool { _, ok := s[name]; return ok }

// picture is a PNG of one red pixel.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"

func pictureContent() acp.Content {
	return acp.Content{Type: "image", Data: picture, MIMEType: "image/png"}
}

// toolContent returns a content block as a tool call's content.
func toolContent(c acp.Content) []acp.ToolContent {
	return []acp.ToolContent{{Type: "content", Content: &c}}
}

// image sends a picture, as a part of a message and as the result of a tool.
func (t *turn) image(ctx context.Context, _ argument) error {
	if err := t.say(ctx, "Here is a picture. "); err != nil {
		return err
	}
	if err := t.update(ctx, acp.MessageChunk{Kind: acp.KindAgentMessageChunk, Content: pictureContent()}); err != nil {
		return err
	}
	call := t.newCall("Read", "Read red.png", kindRead, map[string]any{"file_path": "red.png"})
	if err := t.update(ctx, call); err != nil {
		return err
	}
	call.Content = toolContent(pictureContent())
	return t.end(ctx, call, acp.ToolCompleted)
}

// sketch sends a picture as a thought.
func (t *turn) sketch(ctx context.Context, _ argument) error {
	return t.update(ctx, acp.MessageChunk{Kind: acp.KindAgentThoughtChunk, Content: pictureContent()})
}

// colors runs a tool that prints in colours.
func (t *turn) colors(ctx context.Context, _ argument) error {
	call := t.newCall("Bash", "make test", kindExecute, map[string]any{"command": "make test"})
	if err := t.update(ctx, call); err != nil {
		return err
	}
	call.Content = toolContent(acp.TextContent("\x1b[32mPASS\x1b[0m one\n\x1b[1;31mFAIL\x1b[0m two\n"))
	return t.end(ctx, call, acp.ToolCompleted)
}

// subagent makes a tool call that is the parent of another one, some text and a picture, marked
// like those of Claude Code's agent.
func (t *turn) subagent(ctx context.Context, _ argument) error {
	outer := t.newCall("Task", "Look around", kindThink, map[string]any{"prompt": "look around"})
	if err := t.update(ctx, outer); err != nil {
		return err
	}
	inner := t.newCall("Bash", "ls", kindExecute, map[string]any{"command": "ls"})
	inner.Meta["claudeCode"] = map[string]any{"toolName": "Bash", "parentToolUseId": outer.ToolCallID}
	if err := t.update(ctx, inner); err != nil {
		return err
	}
	said := textChunk(acp.KindAgentMessageChunk, "There is demo.txt.")
	said.Meta = inner.Meta
	inner.RawOutput = encode("demo.txt")
	if err := t.end(ctx, inner, acp.ToolCompleted); err != nil {
		return err
	}
	if err := t.update(ctx, said); err != nil {
		return err
	}
	shown := acp.MessageChunk{Kind: acp.KindAgentMessageChunk, Content: pictureContent()}
	shown.Meta = inner.Meta
	if err := t.update(ctx, shown); err != nil {
		return err
	}
	outer.RawOutput = encode("There is one file.")
	return t.end(ctx, outer, acp.ToolCompleted)
}

// stuck makes a tool call of a sub-agent that neither ends nor asks until the turn is cancelled,
// like opencode's calls that need a permission.
func (t *turn) stuck(ctx context.Context, _ argument) error {
	outer := t.newCall("Task", "Look around", kindThink, map[string]any{"prompt": "look around"})
	if err := t.update(ctx, outer); err != nil {
		return err
	}
	inner := t.newCall("Bash", "touch made", kindExecute, map[string]any{"command": "touch made"})
	inner.Meta["claudeCode"] = map[string]any{"toolName": "Bash", "parentToolUseId": outer.ToolCallID}
	if err := t.update(ctx, inner); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// content describes the content blocks of the prompt.
func (t *turn) content(ctx context.Context, _ argument) error {
	for _, b := range t.blocks {
		text := ""
		switch {
		case b.Type == "image":
			text = fmt.Sprintf("You gave me an image, %s, %d characters. ", b.MIMEType, len(b.Data))
		case b.Resource != nil && b.Resource.Text != nil:
			text = fmt.Sprintf("You gave me %s: %s ", b.Resource.URI, quote(*b.Resource.Text))
		case b.Type == "resource_link":
			text = fmt.Sprintf("You gave me a link to %s. ", b.URI)
		default:
			continue
		}
		if err := t.say(ctx, text); err != nil {
			return err
		}
	}
	return nil
}
