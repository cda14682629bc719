package turn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// withEdited makes a decision from a key after the input was edited.
func (a *asker) withEdited(q asked, input json.RawMessage, key string) (d protocol.DecisionParams, again bool) {
	switch answerTo(strings.ToLower(key)) {
	case domain.AnswerAllow:
		return protocol.DecisionParams{Decision: protocol.Approve, UpdatedInput: input}, false
	case domain.AnswerDeny:
		a.draft = draft{}
		return denial, false
	case domain.AnswerTell:
		a.expected = aReason
	case domain.AnswerEdit:
		a.editWith(q)
	default:
		a.view.Note("please type " + oneOf(keysOfEdited()))
	}
	return d, true
}

// keysOfEdited lists the keys after the input was edited.
func keysOfEdited() []domain.Answer {
	list := []domain.Answer{
		domain.AnswerNamed(domain.AnswerAllow), domain.AnswerNamed(domain.AnswerDeny), domain.AnswerNamed(domain.AnswerTell),
		domain.AnswerNamed(domain.AnswerEdit),
	}
	list[0].Words, list[3].Words = "Allow with your edit", "Edit again"
	return list
}

// editWith opens in the user's editor what the tool writes or runs, or else its input as JSON. That
// decides nothing: what is edited is shown and the question repeated.
func (a *asker) editWith(q asked) {
	name, was := editable(q)
	text := was
	if a.draft.question == q.ApprovalID {
		text = a.draft.text
	}
	text, err := a.inEditor(name, text)
	switch {
	case err != nil:
		a.view.Note("the editor: " + err.Error())
		return
	case text == was, strings.TrimSpace(text) == "" && q.TextMember == "":
		a.draft = draft{}
		a.view.Note("nothing is changed")
		a.show(q)
		return
	}
	a.draft = draft{question: q.ApprovalID, text: text}
	if a.draft.input, err = changedInput(q, text); err != nil {
		a.view.Note("that is no JSON object: " + err.Error() + "; e edits it again")
		return
	}
	edited := withInput(q.Approval, a.draft.input)
	a.view.propose(fileDiffs(edited, q.dir))
	lines, _ := sheetOf(edited, q.dir, false).Excerpt("")
	a.view.lines(lines)
}

// editable returns the text that the user edits, and the name of the file for it.
func editable(q asked) (name, text string) {
	switch text = toolinput.Text(q.ToolInput, q.TextMember); {
	case q.TextMember == "":
		return "input.json", pretty(q.ToolInput)
	case len(q.Paths) == 1:
		return filepath.Base(q.Paths[0]), text
	case q.TextMember == "command":
		return "command.sh", text
	}
	return "text", text
}

// changedInput returns the input that an edited text makes.
func changedInput(q asked, text string) (json.RawMessage, error) {
	if q.TextMember != "" {
		return toolinput.WithText(q.ToolInput, q.TextMember, text), nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return nil, err
	} else if members == nil {
		return nil, errors.New("it is null")
	}
	var line bytes.Buffer
	_ = json.Compact(&line, []byte(text)) // it was parsed just now
	return line.Bytes(), nil
}

// withInput returns a question with an edited input, and the change that it makes if that is known.
func withInput(a hubclient.Approval, input json.RawMessage) hubclient.Approval {
	was, is := toolinput.Text(a.ToolInput, a.TextMember), toolinput.Text(input, a.TextMember)
	diffs := a.Diffs
	a.ToolInput, a.Diff, a.Diffs, a.Options, a.Truncated = input, "", nil, nil, false
	if len(diffs) == 1 && was != "" && strings.Count(diffs[0].NewText, was) == 1 {
		d := diffs[0]
		d.NewText = strings.Replace(d.NewText, was, is, 1)
		a.Diffs = []domain.Diff{d}
	}
	return a
}

// inEditor opens a text in the editor, in a file with this name.
func (a *asker) inEditor(name, text string) (string, error) {
	a.release()
	a.view.endLine()
	editing, err := startEditor(a.terminal, name, text)
	if err != nil {
		return text, err
	}
	a.lend(editing.Done(), editing.Stop, func() {})
	return editing.Text()
}

// pretty indents JSON for an editor.
func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String() + "\n"
}

// Editing a text in the user's editor.

// editorName returns the editor that $VISUAL or $EDITOR names, or "". A dumb terminal uses
// only $EDITOR.
func editorName() string {
	editor := strings.TrimSpace(os.Getenv("EDITOR"))
	if os.Getenv("TERM") == "dumb" {
		return editor
	}
	return cmp.Or(strings.TrimSpace(os.Getenv("VISUAL")), editor)
}

// anEditor returns the command of the user's editor: that of editorName, or one that exists.
func anEditor() (string, error) {
	if named := editorName(); named != "" {
		return named, nil
	}
	if os.Getenv("TERM") != "dumb" {
		for _, known := range []string{"editor", "vi", "nano", "emacs"} {
			if _, err := exec.LookPath(known); err == nil {
				return known, nil
			}
		}
	}
	return "", errors.New("none is known; set EDITOR to the command of one, such as nano")
}

// hasEditor reports whether there is an editor.
func hasEditor() bool {
	_, err := anEditor()
	return err == nil
}

// editing is a text in a running editor.
type editing struct {
	file string
	done <-chan struct{}
	stop context.CancelFunc
	err  *error
}

// startEditor opens a text in the editor that [anEditor] names. The text is in a file with this
// name that other users cannot read.
func startEditor(terminal *os.File, name, text string) (editing, error) {
	editor, err := anEditor()
	if err != nil {
		return editing{}, err
	}
	dir, err := os.MkdirTemp("", "duet-rpc-edit-")
	if err != nil {
		return editing{}, err
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		_ = os.RemoveAll(dir)
		return editing{}, err
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "editor", file) // the variable may contain arguments
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the editor resets the terminal
	cmd.WaitDelay = time.Second
	done := make(chan struct{})
	e := editing{file, done, stop, new(error)}
	go func() {
		defer close(done)
		defer stop()
		if err := cmd.Run(); err != nil {
			*e.err = fmt.Errorf("%s: %w", editor, err)
		}
	}()
	return e, nil
}

// Done returns a channel that is closed when the editor has ended.
func (e editing) Done() <-chan struct{} { return e.done }

// Stop asks the editor to end.
func (e editing) Stop() { e.stop() }

// Text returns the edited text after the editor has ended, and removes the file. It returns an
// error if the editor failed.
func (e editing) Text() (string, error) {
	<-e.done
	defer os.RemoveAll(filepath.Dir(e.file))
	if *e.err != nil {
		return "", *e.err
	}
	text, err := os.ReadFile(e.file)
	return string(text), err
}
