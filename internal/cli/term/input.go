package term

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	uv "github.com/charmbracelet/ultraviolet"
)

// chunk is how many bytes are read from a terminal at once.
const chunk = 4096

// An Input reads a terminal in the background between Start and Stop. Only one goroutine may use
// it. What the user types while it is stopped stays in the terminal.
type Input struct {
	// C delivers what the user types, and an error when the terminal is closed or the user ends the
	// input. Call Start to read on after an error.
	C chan Typed

	terminal *os.File
	waker    waker
	done     chan struct{} // closed when the goroutine has ended; nil: there is none
}

// Typed is what the user has typed since the last one: keys, or a line if the terminal delivers
// lines.
type Typed struct {
	Keys []byte
	Err  error
}

// NewInput returns a stopped input.
func NewInput(terminal *os.File) *Input {
	return &Input{C: make(chan Typed, 1), terminal: terminal}
}

// Start reads until Stop is called, or C delivers an error.
func (i *Input) Start() {
	if i.done != nil {
		select {
		case <-i.done:
			i.waker.wake()
		default:
			return
		}
	}
	waker, err := newWaker()
	if err != nil {
		i.C <- Typed{Err: err}
		return
	}
	done := make(chan struct{})
	i.waker, i.done = waker, done
	go func() {
		defer close(done)
		defer waker.close()
		for {
			into := make([]byte, chunk)
			n, ok, err := waker.read(i.terminal, into)
			if !ok {
				return
			}
			i.C <- Typed{into[:n], err}
			if err != nil {
				return
			}
		}
	}()
}

// Stop ends reading, and returns the keys that C has not delivered. Another program may read from
// the terminal then.
func (i *Input) Stop() (left []byte) {
	if i.done == nil {
		return nil
	}
	i.waker.wake()
	late := time.After(stopWithin)
	for done := i.done; ; {
		select {
		case typed := <-i.C:
			left = append(left, typed.Keys...)
			continue
		case <-done:
			done = nil
			select {
			case typed := <-i.C:
				left = append(left, typed.Keys...)
			default:
			}
		case <-late:
		}
		i.done = nil
		return left
	}
}

// Before stops reading and returns all that the user has typed so far, also what was not read yet
// from a terminal that delivers keys.
func (i *Input) Before() []byte { return append(i.Stop(), typedAlready(i.terminal)...) }

// keyDecoder splits input into keys and pasted texts.
type keyDecoder struct {
	decoder uv.EventDecoder
	pending []byte // an incomplete key
	pasting []byte // the text that is being pasted; nil: none
}

// next returns the first key or pasted text, and the input after it. ok is false if it is
// incomplete; the decoder then keeps the input. event is nil for a pasted text.
func (d *keyDecoder) next(input []byte) (event uv.Event, pasted string, rest []byte, ok bool) {
	input = append(d.pending, input...)
	d.pending = nil
	if begun, begins := bytes.CutPrefix(input, []byte(PasteStart)); begins && d.pasting == nil {
		d.pasting, input = []byte{}, begun
	}
	switch {
	case d.pasting != nil:
		text, rest, ends := bytes.Cut(input, []byte(PasteEnd))
		if !ends { // the end may have come in part
			kept := partOf(input, PasteEnd)
			d.pasting = append(d.pasting, input[:len(input)-kept]...)
			d.pending = slices.Clone(input[len(input)-kept:])
			return nil, "", nil, false
		}
		pasted = strings.ToValidUTF8(string(append(d.pasting, text...)), "\uFFFD")
		d.pasting = nil
		return nil, pasted, rest, true
	case len(input) == 0:
		return nil, "", nil, false
	case isPartOfKey(input):
		d.pending = slices.Clone(input)
		return nil, "", nil, false
	}
	n, event := d.decoder.Decode(input)
	return event, "", input[max(n, 1):], true
}

// PasteOn has a terminal enclose pasted texts, and PasteOff ends that.
const PasteOn, PasteOff = "\x1b[?2004h", "\x1b[?2004l"

// PasteStart and PasteEnd enclose a text that the user pastes.
const PasteStart, PasteEnd = "\x1b[200~", "\x1b[201~"

// partOf returns how many bytes at the end of input may be the beginning of a sequence.
func partOf(input []byte, sequence string) int {
	for n := min(len(input), len(sequence)-1); n > 0; n-- {
		if strings.HasPrefix(sequence, string(input[len(input)-n:])) {
			return n
		}
	}
	return 0
}

// isPartOfKey reports whether input is the beginning of a key's bytes. ESC alone is a key.
func isPartOfKey(input []byte) bool {
	if input[0] != 0x1b {
		return !utf8.FullRune(input)
	}
	if len(input) < 2 || len(input) > 32 || input[1] != '[' && input[1] != 'O' {
		return false
	}
	return !slices.ContainsFunc(input[2:], func(c byte) bool { return c >= 0x40 && c <= 0x7e })
}

// An EditedLine is a line that the user is typing, with the editing keys of a [Box]. It reads and writes
// no terminal. The zero value is an empty line.
type EditedLine struct {
	area *textarea.Model // nil: empty
	keys keyDecoder
}

// Text returns what was typed so far. Only a pasted text has newlines.
func (l *EditedLine) Text() string {
	if l.area == nil {
		return ""
	}
	return l.area.Value()
}

// Cursor returns the text before the cursor, and the text after it.
func (l *EditedLine) Cursor() (before, after string) {
	if l.area == nil {
		return "", ""
	}
	text := l.area.Value()
	start := 0
	for range l.area.Line() {
		start += strings.IndexByte(text[start:], '\n') + 1
	}
	for range l.area.Column() {
		_, size := utf8.DecodeRuneInString(text[start:])
		start += size
	}
	return text[:start], text[start:]
}

// Set replaces the text, and puts the cursor at its end.
func (l *EditedLine) Set(text string) {
	area := newArea()
	area.MaxContentHeight = mostLines
	area.SetValue(text)
	area.Focus()
	l.area = &area
}

// Take handles input up to the end of the line, and returns the input after it. isClosed reports
// C-d in an empty line.
func (l *EditedLine) Take(input []byte) (isComplete, isClosed bool, rest []byte) {
	if l.area == nil {
		l.Set("")
	}
	for {
		event, pasted, after, ok := l.keys.next(input)
		if !ok {
			return false, false, nil
		}
		input = after
		pressed, isKey := event.(uv.KeyPressEvent)
		if !isKey {
			l.area.InsertString(strings.ReplaceAll(strings.ReplaceAll(pasted, "\r\n", "\n"), "\r", "\n"))
			continue
		}
		switch name := pressed.String(); {
		case name == "enter", name == "ctrl+j":
			return true, false, input
		case name == "ctrl+d" && l.area.Length() == 0:
			return true, true, input
		default:
			*l.area, _ = l.area.Update(tea.KeyPressMsg(pressed))
		}
	}
}
