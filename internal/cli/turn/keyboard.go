package turn

import (
	"io"
	"os"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

// typed is what the user typed for the focus of the keyboard.
type typed struct {
	text    string // a line, or a key
	raw     []byte // keys for the prompt box
	isShown bool   // the terminal has shown the line and its end
	err     error  // the end of the input
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

// keyboard is the only reader of the terminal. Its focus gets what the user types. No read is bound to
// a question, and an unfinished line is in memory: a question can end, or move to another line of the
// screen, at any time. A view keeps one keyboard for all turns.
type keyboard struct {
	terminal *os.File        // nil: there is none
	input    *term.Input     // nil if terminal is nil
	typed    chan term.Typed // of input
	edits    bool            // lines are edited here and not by the terminal, if it delivers keys

	focus      focus
	unfinished term.EditedLine // the line that the user is typing
	keeps      bool            // there is a prompt box, and early is for its prompts
	early      []byte          // typed for the next prompt, which has not got it yet
	pasting    bool            // a text whose end has not arrived yet is being pasted at a question
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
	k.keep(k.input.Stop())
	if k.paste != nil {
		k.paste(false)
	}
}

// keep keeps input for the next prompt of a session.
func (k *keyboard) keep(input []byte) {
	if k.keeps {
		k.early = append(k.early, input...)
	}
}

// setAside takes what the user has typed so far away from the next question. The next prompt of the
// session gets it.
func (k *keyboard) setAside() {
	if k.input == nil {
		return
	}
	if k.keep(k.input.Before()); !k.keeps || k.mode != eachKey {
		term.DiscardTyped(k.terminal)
	}
}

// giveUp ends an unfinished line, whose question is gone. The next prompt of the session gets it.
func (k *keyboard) giveUp() {
	if text := k.unfinished.Text(); text != "" && k.focus != aSecret {
		k.keep([]byte(term.PasteStart + text + term.PasteEnd))
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

const endOfInput = "\x04" // what C-d types

// take returns input in the form that the focus takes. ok is false if its line is not complete
// yet.
func (k *keyboard) take(input term.Typed) (line typed, ok bool) {
	switch k.focus {
	case unfocused:
		k.keep(input.Keys)
		return typed{err: input.Err}, input.Err != nil
	case theBox, aList:
		k.meant = ""
		return typed{raw: input.Keys, err: input.Err}, true
	case aKey:
		return k.takeKey(input), true
	case aLine, aSecret:
	}
	if k.mode == eachKey {
		isComplete, isClosed, rest := k.unfinished.Take(input.Keys)
		if !isComplete && input.Err == nil {
			return typed{}, false
		}
		if line.err = input.Err; isClosed {
			line.err = io.EOF
		}
		line.text = strings.TrimSpace(k.unfinished.Text())
		k.keep(rest)
	} else {
		text, rest, isComplete := strings.Cut(k.unfinished.Text()+string(input.Keys), "\n")
		k.unfinished.Set(text)
		if !isComplete && input.Err == nil {
			return typed{}, false
		}
		k.keep([]byte(rest))
		if line.text, line.isShown = strings.TrimSpace(text), true; text == "" {
			line.err = input.Err
		}
	}
	k.unfinished = term.EditedLine{}
	return line, true
}

// takeKey takes a key, or all that was typed at once as one word. A pasted text answers nothing.
func (k *keyboard) takeKey(input term.Typed) typed {
	word := string(input.Keys)
	if start := strings.LastIndex(word, term.PasteStart); start >= 0 || k.pasting {
		k.keep(input.Keys)
		k.pasting = !strings.Contains(word[max(start, 0):], term.PasteEnd)
		word = ""
	}
	line := typed{text: strings.TrimSpace(word), err: input.Err}
	if word == endOfInput {
		line.err = io.EOF
	}
	line.isShown = k.mode != eachKey || term.IsDumb() && strings.HasSuffix(word, "\n") // an editor's terminal sends lines and shows them itself
	return line
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
