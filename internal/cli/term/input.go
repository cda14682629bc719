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

// A Key is a key that the user has pressed, or a text that they have pasted.
type Key struct {
	Pasted string

	press tea.KeyPressMsg // if nothing was pasted
}

// Text returns what was typed or pasted, with RET as "\r". A special key is a text that no user types.
func (k Key) Text() string {
	switch name := k.name(); {
	case k.Pasted != "":
		return k.Pasted
	case name == "enter":
		return "\r"
	case name == "ctrl+j":
		return "\n"
	case name == "ctrl+d":
		return EndOfInput
	case k.press.Text != "":
		return k.press.Text
	default:
		return "\x1b" + name
	}
}

// EndOfInput is what C-d types.
const EndOfInput = "\x04"

// name returns the name of the key, such as "ctrl+a", or "" for a pasted text.
func (k Key) name() string {
	if k.Pasted != "" {
		return ""
	}
	return k.press.String()
}

// A Decoder turns the bytes of a terminal into keys. The bytes of a key, or of a pasted text, may come in parts.
// The zero value is ready.
type Decoder struct {
	decoder uv.EventDecoder
	pending []byte // an incomplete key
	pasting []byte // the text that is being pasted; nil: none
}

// IsPasting reports whether the end of a pasted text has not come yet.
func (d *Decoder) IsPasting() bool { return d.pasting != nil }

// Keys returns the keys that input completes.
func (d *Decoder) Keys(input []byte) (keys []Key) {
	input = append(d.pending, input...)
	d.pending = nil
	for len(input) > 0 {
		if begun, begins := bytes.CutPrefix(input, []byte(PasteStart)); begins && d.pasting == nil {
			d.pasting, input = []byte{}, begun
		}
		if d.pasting != nil {
			text, rest, ends := bytes.Cut(input, []byte(PasteEnd))
			if !ends { // the end may have come in part
				kept := partOf(input, PasteEnd)
				d.pasting = append(d.pasting, input[:len(input)-kept]...)
				d.pending = slices.Clone(input[len(input)-kept:])
				return keys
			}
			if pasted := append(d.pasting, text...); len(pasted) > 0 {
				keys = append(keys, Key{Pasted: strings.ToValidUTF8(string(pasted), "\uFFFD")})
			}
			d.pasting, input = nil, rest
			continue
		}
		if isPartOfKey(input) {
			d.pending = slices.Clone(input)
			return keys
		}
		n, event := d.decoder.Decode(input)
		input = input[max(n, 1):]
		if pressed, isKey := event.(uv.KeyPressEvent); isKey {
			keys = append(keys, Key{press: tea.KeyPressMsg(pressed)})
		}
	}
	return keys
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

// Take handles keys up to the end of the line, and returns the keys after it. isClosed reports C-d in an empty
// line.
func (l *EditedLine) Take(keys []Key) (isComplete, isClosed bool, rest []Key) {
	if l.area == nil {
		l.Set("")
	}
	for i, k := range keys {
		switch name := k.name(); {
		case k.Pasted != "":
			l.area.InsertString(strings.ReplaceAll(strings.ReplaceAll(k.Pasted, "\r\n", "\n"), "\r", "\n"))
		case name == "enter", name == "ctrl+j":
			return true, false, keys[i+1:]
		case name == "ctrl+d" && l.area.Length() == 0:
			return true, true, keys[i+1:]
		default:
			*l.area, _ = l.area.Update(k.press)
		}
	}
	return false, false, nil
}
