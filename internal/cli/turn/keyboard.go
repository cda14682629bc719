package turn

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

// typed is what the user typed for the focus of the keyboard.
type typed struct {
	text    string     // a line, or a key
	keys    []term.Key // for the prompt box or the list
	isShown bool       // the terminal has shown the line and its end
	err     error      // the end of the input
}

// focus says who gets what the user types.
type focus int

const (
	unfocused focus = iota // it stays in the terminal, for the shell or the next program
	theBox                 // the prompt box: any number of keys
	aKey                   // a question: one key, or a word
	aLine                  // a question: a line
	aSecret                // a question: a line that is not shown
	aList                  // a list: any number of keys
)

// mode is what the terminal does with keys.
type mode int

const (
	unchanged  mode = iota
	eachKey         // it delivers each key
	hidden          // the echo is off
	hiddenLine      // the echo is off, except for newlines
)

// keyboard is the only reader of the terminal, and decodes its bytes. Its focus gets the keys. No read is
// bound to a question, and an unfinished line is in memory: a question can end, or move to another line of the
// screen, at any time. A view keeps one keyboard for all turns.
type keyboard struct {
	terminal *os.File        // nil: there is none
	input    *term.Input     // nil if terminal is nil
	typed    chan term.Typed // of input
	edits    bool            // lines are edited here and not by the terminal, if it delivers keys

	focus      focus
	unfinished term.EditedLine // the line that the user is typing
	keeps      bool            // there is a prompt box, and early is for its prompts
	early      []term.Key      // typed for the next prompt, which has not got it yet
	ahead      []term.Key      // typed behind the last line: for the next field of a form, or the next prompt
	decoder    term.Decoder
	// meant is the question that was asked first since the user typed for the last time. What the
	// user types now may be for this one, even if another one is asked meanwhile. It may be empty.
	meant string

	mode  mode
	were  *term.Modes   // nil: the modes of the terminal are unchanged
	paste func(on bool) // switches bracketed paste; nil: there is no prompt box
}

func newKeyboard() *keyboard {
	k := new(keyboard)
	if term.IsTerminal(os.Stdin) {
		k.serve(os.Stdin)
	} else if term.IsTerminal(os.Stderr) { // the prompt came from standard input
		if terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			k.serve(terminal)
		}
	}
	return k
}

func (k *keyboard) serve(terminal *os.File) {
	k.terminal, k.input = terminal, term.NewInput(terminal)
	k.typed = k.input.C
}

// listen gives the next input to f.
func (k *keyboard) listen(f focus) {
	if k.focus == f && k.mode != unchanged {
		k.input.Start()
		return
	}
	k.focus = f
	if k.input == nil {
		return
	}
	isLine := f == aLine || f == aSecret
	delivers := (k.edits || !isLine) && k.set(eachKey)
	switch {
	case delivers:
	case f == aSecret:
		k.set(hiddenLine)
	default:
		k.set(unchanged)
	}
	if k.paste != nil {
		k.paste(delivers)
	}
	k.input.Start()
}

// release gives the terminal back, for the shell or for a program that reads from it.
func (k *keyboard) release() {
	k.stop()
	k.set(unchanged)
}

// hide makes the terminal keep what the user types, without showing it in the text that the agent
// is writing.
func (k *keyboard) hide() {
	if k.focus == unfocused && k.mode == hidden {
		return
	}
	k.stop()
	k.set(hidden)
}

func (k *keyboard) stop() {
	k.focus = unfocused
	if k.input == nil {
		return
	}
	k.keep(k.decode(k.input.Stop()))
	if k.paste != nil {
		k.paste(false)
	}
}

// keep keeps keys for the next prompt of a session, after those that no form took.
func (k *keyboard) keep(keys []term.Key) {
	if k.keeps {
		k.early = append(append(k.early, k.ahead...), keys...)
	}
	k.ahead = nil
}

// decode returns the keys in input. A terminal that delivers lines has edited them, and no key in them has a meaning.
func (k *keyboard) decode(input []byte) []term.Key {
	switch {
	case k.mode == eachKey:
		return k.decoder.Keys(input)
	case len(input) == 0:
		return nil
	}
	return []term.Key{{Pasted: string(input)}}
}

// setAside takes what the user has typed so far away from the next question. The next prompt of the
// session gets it.
func (k *keyboard) setAside() {
	if k.input == nil {
		return
	}
	if k.keep(k.decode(k.input.Before())); !k.keeps || k.mode != eachKey {
		term.DiscardTyped(k.terminal)
	}
}

// giveUp ends an unfinished line, whose question is gone. The next prompt of the session gets it.
func (k *keyboard) giveUp() {
	if text := k.unfinished.Text(); text != "" && k.focus != aSecret {
		k.keep([]term.Key{{Pasted: text}})
	}
	k.unfinished, k.focus = term.EditedLine{}, unfocused
}

// asks reports whether the next input is for a question.
func (k *keyboard) asks() bool { return k.focus == aKey || k.focus == aLine || k.focus == aSecret }

// set changes the modes of the terminal. It returns false if the terminal cannot do that.
func (k *keyboard) set(to mode) bool {
	if k.terminal == nil || to == k.mode {
		return k.terminal != nil
	}
	if k.were == nil {
		if k.were = term.ReadModes(k.terminal); k.were == nil {
			return false
		}
	}
	ok := false
	switch to {
	case eachKey:
		ok = k.were.EachKey(k.terminal)
	case hidden:
		ok = k.were.HideKeys(k.terminal)
	case hiddenLine:
		ok = k.were.HideLine(k.terminal)
	case unchanged:
	}
	if ok {
		k.mode = to
		return true
	}
	if k.mode != unchanged {
		k.were.Restore(k.terminal)
	}
	k.mode, k.were = unchanged, nil
	return to == unchanged
}

// continued sets the modes again after this process was stopped, because a shell may have changed
// them.
func (k *keyboard) continued() {
	if to := k.mode; to != unchanged {
		k.mode = unchanged
		k.set(to)
	}
}

// takeKeys returns keys in the form that the focus takes. ok is false if its line is not complete yet. err is
// the end of the input.
func (k *keyboard) takeKeys(keys []term.Key, err error) (line typed, ok bool) {
	switch k.focus {
	case unfocused:
		k.keep(keys)
		return typed{err: err}, err != nil
	case theBox, aList:
		k.meant = ""
		return typed{keys: keys, err: err}, true
	case aKey:
		return k.takeKey(keys, err), len(keys) > 0 || err != nil || k.decoder.IsPasting()
	case aLine, aSecret:
	}
	if k.mode == eachKey {
		isComplete, isClosed, rest := k.unfinished.Take(keys)
		if !isComplete && err == nil {
			return typed{}, false
		}
		if line.err = err; isClosed {
			line.err = io.EOF
		}
		line.text = strings.TrimSpace(k.unfinished.Text())
		k.ahead = rest
	} else {
		text, rest, isComplete := strings.Cut(k.unfinished.Text()+textOf(keys), "\n")
		k.unfinished.Set(text)
		if !isComplete && err == nil {
			return typed{}, false
		}
		if rest != "" {
			k.ahead = []term.Key{{Pasted: rest}}
		}
		if line.text, line.isShown = strings.TrimSpace(text), true; text == "" {
			line.err = err
		}
	}
	k.unfinished = term.EditedLine{}
	return line, true
}

// takeKey takes a key, or all that was typed at once as one word. A pasted text answers nothing.
func (k *keyboard) takeKey(keys []term.Key, err error) typed {
	word := textOf(keys)
	isPasted := func(key term.Key) bool { return key.Pasted != "" }
	if k.mode == eachKey && (k.decoder.IsPasting() || slices.ContainsFunc(keys, isPasted)) {
		k.keep(keys)
		word = ""
	}
	line := typed{text: strings.TrimSpace(word), err: err}
	if word == term.EndOfInput {
		line.err = io.EOF
	}
	line.isShown = k.mode != eachKey || term.IsDumb() && strings.HasSuffix(word, "\n") // an editor's terminal sends lines and shows them itself
	return line
}

// textOf returns what the keys typed.
func textOf(keys []term.Key) string {
	var b strings.Builder
	for _, key := range keys {
		b.WriteString(key.Text())
	}
	return b.String()
}

// fitting breaks the text before the cursor between its parts to fit into columns; 0 means
// that the width is unknown.
func fitting(prompt string, columns int) string {
	if columns == 0 || len(prompt) < columns {
		return prompt
	}
	var b strings.Builder
	at := 0
	for i, part := range strings.SplitAfter(prompt, ", ") {
		if i > 0 && at+len(part) >= columns {
			b.WriteString("\n  ")
			at = 2
		}
		b.WriteString(part)
		at += len(part)
	}
	return strings.ReplaceAll(b.String(), ", \n", ",\n")
}
