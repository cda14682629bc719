package turn

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// withEdited makes a decision of a key where another input was written.
func (a *asker) withEdited(q asked, input json.RawMessage, key string) (d wire.Decision, again bool) {
	switch strings.ToLower(key) {
	case "y", "yes":
		return wire.Decision{Decision: wire.Approve, Input: input}, false
	case "n", "no":
		a.draft = draft{}
		return denial, false
	case "t", "tell":
		a.expected = aReason
	case "e", "edit":
		a.editWith(q)
	default:
		a.view.Note("please type y, n, t or e")
	}
	return d, true
}

// editWith has the user's editor change the input of a tool. Nothing is decided by
// that: what is to run is shown, and asked again.
func (a *asker) editWith(q asked) {
	was := pretty(q.Input)
	text := was
	if a.draft.question == q.ID {
		text = a.draft.text
	}
	text, err := a.inEditor(text)
	switch {
	case err != nil:
		a.view.Note("the editor: " + err.Error())
		return
	case strings.TrimSpace(text) == "", text == was:
		a.draft = draft{}
		a.view.Note("the input stays as it is")
		a.show(q)
		return
	}
	a.draft = draft{question: q.ID, text: text}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil || members == nil {
		why := "it is null"
		if err != nil {
			why = err.Error()
		}
		a.view.Note("that is no JSON object: " + why + "; e edits it again")
		return
	}
	var line bytes.Buffer
	_ = json.Compact(&line, []byte(text)) // it was read just now
	a.draft.input = line.Bytes()
	changed := q.Approval
	changed.Input, changed.Diff, changed.Diffs, changed.Options, changed.Truncated = a.draft.input, "", nil, nil, false
	lines, _ := Sheet(changed, q.dir).Excerpt("")
	a.view.lines(lines)
}

// inEditor has a text changed. Signals that come while an editor shows it are for
// the editor, but for those that end us.
func (a *asker) inEditor(text string) (string, error) {
	a.lines()
	a.view.endLine()
	editing, err := startEditor(a.terminal, "input.json", text)
	if err != nil {
		return text, err
	}
	for {
		select {
		case <-editing.Done():
			return editing.Text()
		case <-a.continued:
		case sig := <-a.Signals:
			if sig != os.Interrupt {
				editing.Stop()
				a.interrupt(sig)
			}
		}
	}
}

// pretty is JSON laid out for an editor.
func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String() + "\n"
}
