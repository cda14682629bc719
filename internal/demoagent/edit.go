package demoagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"
)

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
