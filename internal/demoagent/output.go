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

	"github.com/coder/acp-go-sdk"
)

var errClosed = errors.New("the agent has ended")

// lineWriter keeps lines whole: every Write is one or more whole lines, and
// no two run at once. It is safe for concurrent use.
type lineWriter struct {
	mu       sync.Mutex // guards w and answered
	w        io.Writer
	answered chan struct{} // closed when the answer to a prompt is written; nil without a waiter
	closed   atomic.Bool
}

// promptAnswered is closed when the next answer to a prompt is written.
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

// close makes later writes fail. It does not wait for one under way, which
// may be stuck.
func (l *lineWriter) close() { l.closed.Store(true) }

// batchBytes is how much is written at once at full speed, about the size of
// a pipe's buffer.
const batchBytes = 64 << 10

// batch gathers prepared lines, because one write a line is what limits speed.
type batch struct {
	w   io.Writer
	buf []byte
}

// flush writes what was gathered, unless ctx is done.
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

// flushFull writes once enough was gathered.
func (b *batch) flushFull(ctx context.Context) error {
	if len(b.buf) < batchBytes {
		return nil
	}
	return b.flush(ctx)
}

// demoForm asks for a value of each kind.
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

// form has the human fill in a form.
func (t *turn) form(ctx context.Context, _ argument) error {
	if can := t.capabilities().Elicitation; can == nil || can.Form == nil {
		return t.say(ctx, "The client has no forms. ")
	}
	var schema acp.UnstableElicitationSchema
	if err := json.Unmarshal([]byte(demoForm), &schema); err != nil {
		return fmt.Errorf("the form: %w", err)
	}
	return t.elicit(ctx, acp.UnstableCreateElicitationRequest{
		Form: &acp.UnstableCreateElicitationForm{Mode: "form", Message: "What shall I order?", RequestedSchema: schema},
	})
}

// link asks the human to open an address that leads nowhere.
func (t *turn) link(ctx context.Context, _ argument) error {
	if can := t.capabilities().Elicitation; can == nil || can.Url == nil {
		return t.say(ctx, "The client opens no addresses. ")
	}
	id := acp.UnstableElicitationId(t.newCallID())
	err := t.elicit(ctx, acp.UnstableCreateElicitationRequest{
		Url: &acp.UnstableCreateElicitationUrl{Mode: "url", Message: "Sign in to the shop", ElicitationId: id, Url: "https://shop.example/sign-in?id=" + string(id)},
	})
	if err != nil {
		return err
	}
	return t.conn.UnstableCompleteElicitation(ctx, acp.UnstableCompleteElicitationNotification{ElicitationId: id})
}

// elicit asks the human, and repeats the answer.
func (t *turn) elicit(ctx context.Context, request acp.UnstableCreateElicitationRequest) error {
	if t.v2.on.Load() {
		meta := map[string]any{sessionMeta: t.id}
		if request.Form != nil {
			request.Form.Meta = meta
		} else {
			request.Url.Meta = meta
		}
	}
	t.v2.asks(t.id)
	answer, err := t.conn.UnstableCreateElicitation(ctx, request)
	if ctx.Err() == nil {
		t.v2.answered(t.id)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return t.say(ctx, fmt.Sprintf("I could not ask: %v. ", err))
	case answer.Decline != nil:
		return t.say(ctx, "You declined. ")
	case answer.Accept == nil:
		return t.say(ctx, "You did not answer. ")
	}
	values, err := json.Marshal(answer.Accept.Content)
	if err != nil {
		return fmt.Errorf("the values: %w", err)
	}
	return t.say(ctx, fmt.Sprintf("You answered: %s. ", values))
}

var permissionOptions = []acp.PermissionOption{
	{OptionId: "allow_once", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
	{OptionId: "allow_always", Name: "Always allow", Kind: acp.PermissionOptionKindAllowAlways},
	{OptionId: "reject_once", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
	{OptionId: "reject_always", Name: "Always reject", Kind: acp.PermissionOptionKindRejectAlways},
}

// newCall is a tool call that has not begun. The protocol has no field for a
// tool's name: it goes where Claude Code's agent puts it, and where ours would.
func (t *turn) newCall(name, title string, kind acp.ToolKind, rawInput any) acp.SessionUpdateToolCall {
	return acp.SessionUpdateToolCall{
		ToolCallId: t.newCallID(), Title: title, Kind: kind, RawInput: rawInput, Status: acp.ToolCallStatusPending,
		Meta: map[string]any{"duet": map[string]any{"toolName": name}, "claudeCode": map[string]any{"toolName": name}},
	}
}

func (t *turn) newCallID() acp.ToolCallId {
	t.calls++
	return acp.ToolCallId(fmt.Sprintf("call-%d-%d", t.number, t.calls))
}

// permission asks whether call may run, unless that was settled for good in
// this session. extra is what the client's answer carries under "duet" in its
// _meta.
func (t *turn) permission(ctx context.Context, name string, call acp.SessionUpdateToolCall) (allowed bool, extra map[string]any, err error) {
	known := false
	t.session.look(func(r *record) { allowed, known = r.Standing[name] })
	if known {
		return allowed, nil, nil
	}
	resp, err := t.requestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: t.id, Options: permissionOptions,
		ToolCall: acp.ToolCallUpdate{
			ToolCallId: call.ToolCallId, Title: &call.Title, Kind: &call.Kind, Status: &call.Status, Meta: call.Meta,
			Locations: call.Locations, RawInput: call.RawInput, Content: call.Content,
		},
	})
	if ctx.Err() != nil {
		return false, nil, ctx.Err()
	}
	if err != nil {
		return false, nil, fmt.Errorf("asking permission: %w", err)
	}
	if resp.Outcome.Selected == nil {
		return false, nil, errCancelled
	}
	extra, _ = resp.Meta["duet"].(map[string]any)
	for _, o := range permissionOptions {
		if o.OptionId != resp.Outcome.Selected.OptionId {
			continue
		}
		allowed = o.Kind == acp.PermissionOptionKindAllowOnce || o.Kind == acp.PermissionOptionKindAllowAlways
		if o.Kind == acp.PermissionOptionKindAllowAlways || o.Kind == acp.PermissionOptionKindRejectAlways {
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
	return false, nil, fmt.Errorf("asking permission: there is no option %q", resp.Outcome.Selected.OptionId)
}

// requestPermission asks the user. In version 2 the session's state says so.
func (t *turn) requestPermission(ctx context.Context, request acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	t.v2.asks(t.id)
	resp, err := t.conn.RequestPermission(ctx, request)
	if ctx.Err() == nil { // else the turn ends
		t.v2.answered(t.id)
	}
	return resp, err
}

// end tells how a tool call ended, and remembers it. It is told also when the
// turn has been cancelled, so that no client shows it running forever.
func (t *turn) end(ctx context.Context, call acp.SessionUpdateToolCall, status acp.ToolCallStatus) error {
	call.Status = status
	t.session.look(func(*record) { t.rec.addTool(call) })
	return t.update(context.WithoutCancel(ctx), acp.SessionUpdate{ToolCallUpdate: &acp.SessionToolCallUpdate{
		ToolCallId: call.ToolCallId, Status: &call.Status, Content: call.Content, RawInput: call.RawInput, RawOutput: call.RawOutput,
	}})
}

// permits makes several tool calls, each with a permission of its own.
func (t *turn) permits(ctx context.Context, arg argument) error {
	first := 0
	t.session.look(func(*record) { first = t.rec.Index })
	for i := first; i < arg.n; i++ {
		t.session.change(func(*record) { t.rec.Index = i })
		call := t.newCall("Bash", "Bash", acp.ToolKindExecute, map[string]any{"command": fmt.Sprintf("echo %d", i+1)})
		if err := t.update(ctx, acp.SessionUpdate{ToolCall: &call}); err != nil {
			return err
		}
		allowed, err := t.mode() == modeBypass, error(nil)
		if !allowed {
			var extra map[string]any
			allowed, extra, err = t.permission(ctx, "Bash", call)
			if changed, ok := extra["updatedInput"].(map[string]any); ok {
				call.RawInput = changed
			}
		}
		status := acp.ToolCallStatusFailed
		if allowed {
			status = acp.ToolCallStatusCompleted
			command, _ := call.RawInput.(map[string]any)["command"].(string)
			call.RawOutput = strings.TrimPrefix(command, "echo ") + "\n"
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

// rememberTool keeps a finished call of [turn.tools].
func (t *turn) rememberTool(id acp.ToolCallId, n int) {
	t.session.look(func(*record) {
		t.rec.addTool(acp.SessionUpdateToolCall{
			ToolCallId: id, Title: "Bash", Kind: acp.ToolKindExecute, Status: acp.ToolCallStatusCompleted,
			RawInput: map[string]any{"command": fmt.Sprintf("echo %d", n)},
		})
	})
}

// demoFile is what the agent edits, in the session's directory.
const demoFile = "demo.txt"

// longestEdit is the longest file the agent edits, in bytes: the whole text
// goes into the diff.
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
		input = &editInput{FilePath: path, Content: t.appended(old)}
		t.session.change(func(*record) { t.rec.Input = input })
	}
	call := t.newCall("Write", "Write "+demoFile, acp.ToolKindEdit, *input)
	call.Locations = []acp.ToolCallLocation{{Path: path}}
	call.Content = diffContent(path, old, input.Content)
	if err := t.update(ctx, acp.SessionUpdate{ToolCall: &call}); err != nil {
		return err
	}
	if err := t.pauseIfSlow(ctx); err != nil {
		return errors.Join(err, t.end(ctx, call, acp.ToolCallStatusFailed))
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
			call.RawInput, call.Content = *input, diffContent(input.FilePath, old, input.Content)
		}
	}
	if err == nil && allowed {
		err = t.write(ctx, input)
	}
	if err != nil || !allowed {
		endErr := t.end(ctx, call, acp.ToolCallStatusFailed)
		if ctx.Err() != nil || errors.Is(err, errCancelled) {
			return err
		}
		if endErr != nil {
			return endErr
		}
		return t.unchanged(ctx, err)
	}
	if err := t.end(ctx, call, acp.ToolCallStatusCompleted); err != nil {
		return err
	}
	if err := t.plan(ctx, 2); err != nil {
		return err
	}
	return t.say(ctx, fmt.Sprintf("I wrote %s. ", demoFile))
}

// unchanged says that the edit did not happen.
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

// appended is the file's text with a line for this turn.
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

// read is the file's text, as the client's editor has it if it offers that;
// nil if there is no file.
func (t *turn) read(ctx context.Context, path string) (*string, error) {
	if t.capabilities().Fs.ReadTextFile {
		resp, err := t.conn.ReadTextFile(ctx, acp.ReadTextFileRequest{SessionId: t.id, Path: path})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			return editable(resp.Content)
		} // how a client says that there is no such file is not laid down
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

// editable is a pointer to text if that can be edited.
func editable(text string) (*string, error) {
	if len(text) > longestEdit || !utf8.ValidString(text) {
		return nil, fmt.Errorf("%s is no text of at most %d bytes", demoFile, longestEdit)
	}
	return &text, nil
}

func (t *turn) write(ctx context.Context, input *editInput) error {
	if t.capabilities().Fs.WriteTextFile {
		_, err := t.conn.WriteTextFile(ctx, acp.WriteTextFileRequest{SessionId: t.id, Path: input.FilePath, Content: input.Content})
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

func diffContent(path string, old *string, content string) []acp.ToolCallContent {
	return []acp.ToolCallContent{{Diff: &acp.ToolCallContentDiff{Type: "diff", Path: path, OldText: old, NewText: content}}}
}
