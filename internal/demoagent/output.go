package demoagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/acp"
)

var errClosed = errors.New("the agent has ended")

// lineWriter writes whole lines: each Write is one or more whole lines, and writes are
// serialized. It is safe for concurrent use.
type lineWriter struct {
	mu       sync.Mutex // guards w and answered
	w        io.Writer
	answered chan struct{} // closed when the response to a prompt is written; nil without a waiter
	closed   atomic.Bool
}

// promptAnswered returns a channel that is closed when the next response to a prompt is written.
func (l *lineWriter) promptAnswered() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered == nil {
		l.answered = make(chan struct{})
	}
	return l.answered
}

func (l *lineWriter) Write(lines []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return 0, errClosed
	}
	n, err := l.w.Write(lines)
	if l.answered != nil && bytes.Contains(lines, []byte(`"stopReason"`)) {
		close(l.answered)
		l.answered = nil
	}
	return n, err
}

// close makes later writes fail. It does not wait for a running write, which may block.
func (l *lineWriter) close() { l.closed.Store(true) }

// batchBytes is the size of a write at full speed, about a pipe's buffer.
const batchBytes = 64 << 10

// batch collects lines, because one write per line limits the speed.
type batch struct {
	w   io.Writer
	buf []byte
}

// flush writes the collected lines, unless ctx is done.
func (b *batch) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(b.buf) == 0 {
		return nil
	}
	_, err := b.w.Write(b.buf)
	b.buf = b.buf[:0]
	return err
}

// flushFull writes the lines once enough were collected.
func (b *batch) flushFull(ctx context.Context) error {
	if len(b.buf) < batchBytes {
		return nil
	}
	return b.flush(ctx)
}

// demoForm has a field of each kind.
const demoForm = `{
	"type": "object",
	"properties": {
		"colour": {"type": "string", "title": "Colour", "enum": ["red", "green", "blue"], "default": "green"},
		"count": {"type": "integer", "title": "How many", "minimum": 1, "maximum": 9},
		"gift": {"type": "boolean", "title": "Wrapped as a gift", "default": false},
		"name": {"type": "string", "title": "Name on it", "minLength": 2, "maxLength": 20}
	},
	"required": ["count"]
}`

// form asks the user to fill in a form.
func (t *turn) form(ctx context.Context, _ argument) error {
	if !acp.Has(t.served().Can.Elicitation.Form) {
		return t.say(ctx, "The client has no forms. ")
	}
	return t.elicit(ctx, acp.ElicitationRequest{Mode: "form", Message: "What shall I order?", Schema: json.RawMessage(demoForm)})
}

// link asks the user to open an example address.
func (t *turn) link(ctx context.Context, _ argument) error {
	if !acp.Has(t.served().Can.Elicitation.URL) {
		return t.say(ctx, "The client opens no addresses. ")
	}
	id := t.newCallID()
	err := t.elicit(ctx,
		acp.ElicitationRequest{Mode: "url", Message: "Sign in to the shop", ID: id, URL: "https://shop.example/sign-in?id=" + id})
	if err != nil {
		return err
	}
	return t.conn.Notify(acp.MethodElicitationDone, map[string]string{"elicitationId": id})
}

// elicit asks the user, and repeats the answer.
func (t *turn) elicit(ctx context.Context, request acp.ElicitationRequest) error {
	request.SessionID = t.id
	goesOn := t.asks(ctx)
	answer, err := askClient[acp.ElicitationResponse](ctx, t.agent, acp.MethodElicit, request)
	goesOn()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return t.say(ctx, fmt.Sprintf("I could not ask: %v. ", err))
	case answer.Action == "decline":
		return t.say(ctx, "You declined. ")
	case answer.Action != "accept":
		return t.say(ctx, "You did not answer. ")
	}
	var values map[string]any
	if len(answer.Content) > 0 {
		if err := json.Unmarshal(answer.Content, &values); err != nil {
			return fmt.Errorf("the values: %w", err)
		}
	}
	return t.say(ctx, fmt.Sprintf("You answered: %s. ", encode(values)))
}

// encode encodes a value of the agent itself.
func encode(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encoding a message of the demo agent: %v", err))
	}
	return raw
}

// Kinds of tools.
const (
	kindRead    = "read"
	kindEdit    = "edit"
	kindExecute = "execute"
	kindThink   = "think"
)

var permissionOptions = []acp.PermissionOption{
	{OptionID: "allow_once", Name: "Allow", Kind: acp.AllowOnce},
	{OptionID: "allow_always", Name: "Always allow", Kind: acp.AllowAlways},
	{OptionID: "reject_once", Name: "Reject", Kind: acp.RejectOnce},
	{OptionID: "reject_always", Name: "Always reject", Kind: acp.RejectAlways},
}

// newCall returns a tool call that has not begun. Not every client has a member for a tool's name, so
// the name is also in the _meta of Claude Code's agent and of Duet.
func (t *turn) newCall(name, title, kind string, rawInput any) acp.ToolCall {
	return acp.ToolCall{
		Kind: acp.KindToolCall, ToolCallID: t.newCallID(), Name: name, Title: title, ToolKind: kind, RawInput: encode(rawInput),
		Status: acp.ToolPending,
		Meta:   map[string]any{"duet": map[string]any{"toolName": name}, "claudeCode": map[string]any{"toolName": name}},
	}
}

func (t *turn) newCallID() string {
	t.calls++
	return fmt.Sprintf("call-%d-%d", t.number, t.calls)
}

// permission asks whether call may run, unless the user has permanently answered that in this
// session. extra is the "duet" member in the _meta of the client's answer.
func (t *turn) permission(ctx context.Context, name string, call acp.ToolCall) (allowed bool, extra map[string]any, err error) {
	known := false
	t.session.look(func(r *record) { allowed, known = r.Standing[name] })
	if known {
		return allowed, nil, nil
	}
	resp, err := t.requestPermission(ctx, permissionOptions, call)
	if ctx.Err() != nil {
		return false, nil, ctx.Err()
	}
	if err != nil {
		return false, nil, fmt.Errorf("asking permission: %w", err)
	}
	if resp.Outcome.Outcome != acp.Selected {
		return false, nil, errCancelled
	}
	extra, _ = resp.Meta["duet"].(map[string]any)
	for _, o := range permissionOptions {
		if o.OptionID != resp.Outcome.OptionID {
			continue
		}
		allowed = o.Kind == acp.AllowOnce || o.Kind == acp.AllowAlways
		if o.Kind == acp.AllowAlways || o.Kind == acp.RejectAlways {
			t.session.change(func(r *record) {
				r.Standing = maps.Clone(r.Standing)
				if r.Standing == nil {
					r.Standing = map[string]bool{}
				}
				r.Standing[name] = allowed
			})
		}
		return allowed, extra, nil
	}
	return false, nil, fmt.Errorf("asking permission: there is no option %q", resp.Outcome.OptionID)
}

// requestPermission asks the user about a tool call.
func (t *turn) requestPermission(ctx context.Context, options []acp.PermissionOption, call acp.ToolCall) (acp.PermissionResponse, error) {
	call.Kind = ""
	client := t.served()
	if !client.HasToolNames() {
		call.Name = ""
	}
	question := acp.PermissionRequest{
		SessionID: t.id, ToolCall: call, Options: options, Title: call.Title, IsAboutCall: true,
	}
	defer t.asks(ctx)()
	return askClient[acp.PermissionResponse](ctx, t.agent, acp.MethodRequestPermission, client.Question(question))
}

// end reports how a tool call ended, and records it. It also reports it in a cancelled turn, so
// that no client shows the call running forever.
func (t *turn) end(ctx context.Context, call acp.ToolCall, status string) error {
	call.Status = status
	t.session.look(func(*record) { t.rec.addTool(call) })
	return t.update(context.WithoutCancel(ctx), acp.ToolCall{
		Kind: acp.KindToolUpdate, ToolCallID: call.ToolCallID, Status: call.Status, Content: call.Content, RawInput: call.RawInput,
		RawOutput: call.RawOutput,
	})
}

// permits makes several tool calls, each with a permission of its own.
func (t *turn) permits(ctx context.Context, arg argument) error {
	first := 0
	t.session.look(func(*record) { first = t.rec.Index })
	for i := first; i < arg.n; i++ {
		t.session.change(func(*record) { t.rec.Index = i })
		call := t.newCall("Bash", "Bash", kindExecute, map[string]any{"command": fmt.Sprintf("echo %d", i+1)})
		if err := t.update(ctx, call); err != nil {
			return err
		}
		allowed, err := t.mode() == modeBypass, error(nil)
		if !allowed {
			var extra map[string]any
			allowed, extra, err = t.permission(ctx, "Bash", call)
			if changed, ok := extra["updatedInput"].(map[string]any); ok {
				call.RawInput = encode(changed)
			}
		}
		status := acp.ToolFailed
		if allowed {
			status = acp.ToolCompleted
			var input struct{ Command string }
			_ = json.Unmarshal(call.RawInput, &input) // on failure it prints nothing
			call.RawOutput = encode(strings.TrimPrefix(input.Command, "echo ") + "\n")
		}
		if endErr := t.end(ctx, call, status); err == nil {
			err = endErr
		}
		if err != nil {
			return err
		}
		if err := t.pauseIfSlow(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rememberTool records a finished call of [turn.tools].
func (t *turn) rememberTool(id string, n int) {
	t.session.look(func(*record) {
		t.rec.addTool(acp.ToolCall{
			Kind: acp.KindToolCall, ToolCallID: id, Name: "Bash", Title: "Bash", ToolKind: kindExecute, Status: acp.ToolCompleted,
			RawInput: encode(map[string]any{"command": fmt.Sprintf("echo %d", n)}),
		})
	})
}

// demoFile is the file that the agent edits, in the session's directory.
const demoFile = "demo.txt"

// longestEdit limits the edited file, in bytes: the diff contains the whole text.
const longestEdit = 1 << 20

// edit appends a line to the file, after permission.
func (t *turn) edit(ctx context.Context, _ argument) error {
	if t.mode() == modePlan {
		return t.say(ctx, "In plan mode nothing is edited. ")
	}
	path := filepath.Join(t.cwd, demoFile)
	var input *editInput
	t.session.look(func(*record) { input = t.rec.Input })
	if input != nil {
		path = input.FilePath
	}
	old, err := t.read(ctx, path)
	if err != nil {
		return t.unchanged(ctx, err)
	}
	if input == nil {
		if err := t.warnOfWriting(ctx, old == nil); err != nil {
			return err
		}
		input = &editInput{FilePath: path, Content: t.appended(old)}
		t.session.change(func(*record) { t.rec.Input = input })
	}
	call := t.newCall("Write", "Write "+demoFile, kindEdit, *input)
	call.Locations = []acp.Location{{Path: path}}
	call.Content = diffContent(path, old, input.Content)
	if err := t.update(ctx, call); err != nil {
		return err
	}
	if err := t.pauseIfSlow(ctx); err != nil {
		return errors.Join(err, t.end(ctx, call, acp.ToolFailed))
	}
	allowed := t.mode() != modeDefault
	if !allowed {
		var extra map[string]any
		allowed, extra, err = t.permission(ctx, "Write", call)
		if changed, ok := extra["updatedInput"].(map[string]any); ok {
			input = &editInput{FilePath: path, Content: input.Content}
			if content, ok := changed["content"].(string); ok {
				input.Content = content
			}
			if to, ok := changed["file_path"].(string); ok && err == nil && to != path {
				input.FilePath = to
				old, err = t.read(ctx, to)
			}
			call.RawInput, call.Content = encode(*input), diffContent(input.FilePath, old, input.Content)
		}
	}
	if err == nil && allowed {
		err = t.write(ctx, input)
	}
	if err != nil || !allowed {
		endErr := t.end(ctx, call, acp.ToolFailed)
		if ctx.Err() != nil || errors.Is(err, errCancelled) {
			return err
		}
		if endErr != nil {
			return endErr
		}
		return t.unchanged(ctx, err)
	}
	if err := t.end(ctx, call, acp.ToolCompleted); err != nil {
		return err
	}
	if err := t.plan(ctx, 2); err != nil {
		return err
	}
	return t.say(ctx, fmt.Sprintf("I wrote %s. ", demoFile))
}

// warnOfWriting says, before the first edit in a user's repository, that no model is at work. A worktree is
// not the user's own tree.
func (t *turn) warnOfWriting(ctx context.Context, isFirst bool) error {
	for dir := t.cwd; isFirst; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, ".git", "objects")); err == nil && info.IsDir() {
			return t.say(ctx, "This is a demo without a model. It writes "+demoFile+", and nothing else; `duet-rpc agents` lists real agents. ")
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return nil
}

// unchanged reports that the edit did not happen.
func (t *turn) unchanged(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text := "Nothing was changed. "
	if cause != nil {
		text = fmt.Sprintf("Nothing was changed: %v. ", cause)
	}
	return t.say(ctx, text)
}

// appended returns the file's text with a line for this turn.
func (t *turn) appended(old *string) string {
	text := ""
	if old != nil {
		text = *old
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + fmt.Sprintf("Turn %d: %s\n", t.number, quote(t.rec.Asked))
}

// read returns the file's text, from the client's editor if it offers that; nil if there is no
// file.
func (t *turn) read(ctx context.Context, path string) (*string, error) {
	if t.served().Can.FS.ReadTextFile {
		resp, err := askClient[acp.ReadTextFileResult](ctx, t.agent, acp.MethodReadTextFile, acp.ReadTextFileParams{SessionID: t.id, Path: path})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			return editable(resp.Content)
		} // the protocol does not define the error for a missing file
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", demoFile, err)
	}
	return editable(string(data))
}

// editable returns a pointer to text if it can be edited.
func editable(text string) (*string, error) {
	if len(text) > longestEdit || !utf8.ValidString(text) {
		return nil, fmt.Errorf("%s is no text of at most %d bytes", demoFile, longestEdit)
	}
	return &text, nil
}

func (t *turn) write(ctx context.Context, input *editInput) error {
	if t.served().Can.FS.WriteTextFile {
		_, err := askClient[acp.Empty](ctx, t.agent, acp.MethodWriteTextFile,
			acp.WriteTextFileParams{SessionID: t.id, Path: input.FilePath, Content: input.Content})
		if err != nil {
			return fmt.Errorf("writing %s: %w", demoFile, err)
		}
		return nil
	}
	if err := os.WriteFile(input.FilePath, []byte(input.Content), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", demoFile, err)
	}
	return nil
}

func diffContent(path string, old *string, content string) []acp.ToolContent {
	return []acp.ToolContent{{Type: "diff", Path: path, OldText: old, NewText: &content}}
}
