package term

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"
)

// The prompt box: a text that the user edits at the bottom of the terminal.

// A Box edits a text of any number of lines with the keys of Emacs and readline. It has a
// history, and completes words. It reads and writes no terminal: Take takes keys,
// and Rows are what to draw. It is not safe for concurrent use.
type Box struct {
	// Complete returns the candidates for the end of a text, the cursor's line up to the cursor,
	// and how many bytes of that end they replace.
	Complete func(line string, isFirst bool) (replaces int, candidates []Candidate)

	// Queues says that texts that were sent wait in a queue of the owner.
	Queues bool

	area  textarea.Model
	isC_x bool // C-x was pressed

	history []string // the newest last
	at      int      // the shown entry; len(history): none
	draft   string   // the text before the history was shown

	pasted map[string]string // long texts by their place in the box

	popup    []Candidate
	replaces int
	selected int  // in popup
	closed   bool // the user has closed the popup; it stays so until the text changes
	moved    bool // the user has moved in the popup
	searches bool // the popup has the entries of the history that contain the text
}

// A Candidate completes a word.
type Candidate struct {
	Text string // replaces the word
	Note string // explains it; may be empty
}

// A BoxKey is a key that the owner of a box handles.
type BoxKey int

// The keys of [Box.Take].
const (
	NoKey        BoxKey = iota
	SendKey             // RET
	SteerKey            // C-s
	LeaveKey            // C-d in an empty box
	StopKey             // ESC
	EditorKey           // C-x C-e
	ModeKey             // S-TAB
	RedrawKey           // C-l
	TakeBackKey         // up in an empty box, if there is a queue
	mostPopup    = 6    // candidates shown at once
	mostBoxRows  = 8    // rows of text
	longPaste    = 12   // lines of pasted text from which on it is shown as a place
	longestPaste = 1000 // the same, in bytes
	mostLines    = 1 << 20
)

// NewBox returns an empty box. history has earlier texts, the newest last.
func NewBox(history []string) *Box {
	b := &Box{history: history, at: len(history), pasted: make(map[string]string)}
	a := newArea()
	a.DynamicHeight, a.MinHeight, a.MaxHeight, a.MaxContentHeight = true, 1, mostBoxRows, mostLines
	a.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("ctrl+j", "alt+enter", "shift+enter"))
	a.SetPromptFunc(2, func(info textarea.PromptInfo) string {
		if info.LineNumber == 0 {
			return "› "
		}
		return "  "
	})
	a.Focus()
	b.area = a
	return b
}

// newArea returns an empty text that the user edits. Its owner draws it.
func newArea() textarea.Model {
	a := textarea.New()
	a.ShowLineNumbers = false
	a.SetStyles(textarea.Styles{})
	a.SetVirtualCursor(false)
	a.EndOfBufferCharacter = ' '
	a.CharLimit = 0
	a.MaxWidth = 0
	a.KeyMap.Paste = key.NewBinding()         // it would run a program
	a.KeyMap.CopySelection = key.NewBinding() // as well
	a.KeyMap.SelectAll = key.NewBinding()     // C-g
	return a
}

// Text returns the text, with pasted texts in their places.
func (b *Box) Text() string {
	var pairs []string
	for place, pasted := range b.pasted {
		pairs = append(pairs, place, pasted)
	}
	return strings.NewReplacer(pairs...).Replace(b.area.Value()) // in one pass: a pasted text may look like a place
}

// IsEmpty reports whether there is no text.
func (b *Box) IsEmpty() bool { return b.area.Length() == 0 }

// Set replaces the text, and puts the cursor at its end.
func (b *Box) Set(text string) {
	clear(b.pasted)
	b.area.SetValue("")
	b.insert(text)
}

// Sent empties the box and adds its text to the history.
func (b *Box) Sent() {
	if text := b.Text(); strings.TrimSpace(text) != "" && (len(b.history) == 0 || b.history[len(b.history)-1] != text) {
		b.history = append(b.history, text)
	}
	b.at, b.draft, b.searches = len(b.history), "", false
	b.Set("")
}

// insert inserts text at the cursor. A long one is shown as a place.
func (b *Box) insert(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Count(text, "\n") + 1
	if lines > longPaste || len(text) > longestPaste || strings.Contains(text, "\t") {
		place := fmt.Sprintf("[text %d: %s]", len(b.pasted)+1, Count(lines, "line"))
		b.pasted[place] = text
		text = place
	}
	b.area.InsertString(text)
	b.changed()
}

// changed finds the candidates for the new text.
func (b *Box) changed() {
	b.closed, b.moved, b.selected, b.popup = false, false, 0, nil
	if b.searches {
		for _, entry := range slices.Backward(b.history) {
			if strings.Contains(strings.ToLower(entry), strings.ToLower(b.area.Value())) {
				b.popup = append(b.popup, Candidate{Text: entry})
			}
		}
	} else if b.Complete != nil {
		b.replaces, b.popup = b.Complete(b.beforeCursor(), b.area.Line() == 0)
	}
}

// beforeCursor returns the cursor's line up to the cursor.
func (b *Box) beforeCursor() string {
	lines := strings.Split(b.area.Value(), "\n")
	line := []rune(lines[min(b.area.Line(), len(lines)-1)])
	return string(line[:min(b.area.Column(), len(line))])
}

// shows reports whether candidates are shown.
func (b *Box) shows() bool { return len(b.popup) > 0 && !b.closed }

// accept replaces the word by the selected candidate.
func (b *Box) accept() {
	before, chosen := b.beforeCursor(), b.popup[b.selected].Text
	if b.searches {
		b.searches = false
		b.Set(chosen)
		b.closed = true
		return
	}
	replaced := before[len(before)-b.replaces:]
	for range utf8.RuneCountInString(replaced) {
		b.area, _ = b.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	b.area.InsertString(chosen)
	b.changed()
}

// isComplete reports whether the word before the cursor is already a candidate, perhaps except
// for a space that follows it.
func (b *Box) isComplete() bool {
	before := b.beforeCursor()
	word := before[len(before)-b.replaces:]
	return slices.ContainsFunc(b.popup, func(c Candidate) bool { return strings.TrimRight(c.Text, " ") == word })
}

// Take handles keys up to the first one that is for the owner. It returns that key, and the keys after it.
func (b *Box) Take(keys []Key) (BoxKey, []Key) {
	for i, k := range keys {
		if k.Pasted != "" {
			b.insert(k.Pasted)
		} else if owner := b.press(k.press); owner != NoKey {
			return owner, keys[i+1:]
		}
	}
	return NoKey, nil
}

// press handles one key.
func (b *Box) press(k tea.KeyPressMsg) BoxKey {
	name := k.String()
	if b.isC_x {
		b.isC_x = false
		if name == "ctrl+e" {
			return EditorKey
		}
		return NoKey
	}
	switch name {
	case "enter":
		before := b.beforeCursor()
		switch {
		case b.shows() && (b.searches || b.moved || !b.isComplete()):
			b.accept()
		case b.searches: // nothing was found
			b.endSearch()
		case strings.HasSuffix(before, `\`):
			b.area, _ = b.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
			b.area.InsertString("\n")
			b.changed()
		default:
			return SendKey
		}
		return NoKey
	case "tab":
		if b.shows() {
			b.accept()
		}
		return NoKey
	case "ctrl+r":
		if b.searches {
			b.selected = max(0, min(len(b.popup)-1, b.selected+1))
			return NoKey
		}
		b.searches = true
		b.changed()
		return NoKey
	case "shift+tab":
		return ModeKey
	case "ctrl+s":
		return SteerKey
	case "ctrl+l":
		return RedrawKey
	case "ctrl+x":
		b.isC_x = true
		return NoKey
	case "esc", "ctrl+g":
		switch {
		case b.searches:
			b.endSearch()
		case b.shows():
			b.closed = true
		default:
			return StopKey
		}
		return NoKey
	case "ctrl+d":
		if b.IsEmpty() {
			return LeaveKey
		}
	case "up", "ctrl+p":
		if b.shows() {
			b.selected, b.moved = max(0, b.selected-1), true
			return NoKey
		}
		if b.Queues && b.IsEmpty() {
			return TakeBackKey
		}
		if b.isOnFirstRow() {
			b.recall(b.at - 1)
			return NoKey
		}
	case "down", "ctrl+n":
		if b.shows() {
			b.selected, b.moved = min(len(b.popup)-1, b.selected+1), true
			return NoKey
		}
		if b.isOnLastRow() {
			b.recall(b.at + 1)
			return NoKey
		}
	}
	before := b.area.Value()
	b.area, _ = b.area.Update(k)
	if b.area.Value() != before {
		b.changed()
	}
	return NoKey
}

// endSearch leaves the text that was searched for in the box.
func (b *Box) endSearch() {
	b.searches = false
	b.changed()
	b.closed = true
}

func (b *Box) isOnFirstRow() bool { return b.area.Line() == 0 && b.area.LineInfo().RowOffset == 0 }

func (b *Box) isOnLastRow() bool {
	info := b.area.LineInfo()
	return b.area.Line() == b.area.LineCount()-1 && info.RowOffset >= info.Height-1
}

// recall shows an entry of the history; the one after the last is the user's draft.
func (b *Box) recall(at int) {
	if at < 0 || at > len(b.history) || at == b.at {
		return
	}
	if b.at == len(b.history) {
		b.draft = b.Text()
	}
	b.at = at
	if at == len(b.history) {
		b.Set(b.draft)
	} else {
		b.Set(b.history[at])
	}
	b.closed = true
}

// Rows returns the rows of the box for a width, and the cursor: how many rows it is above the
// last one, and its column. bold and dim colour text.
func (b *Box) Rows(columns int, bold, dim func(string) string) (rows []string, up, column int) {
	b.area.SetWidth(max(columns, 4))
	for i, row := range strings.Split(b.area.View(), "\n") {
		row = strings.TrimRight(row, " ")
		if text, isFirst := strings.CutPrefix(row, "›"); i == 0 && isFirst {
			row = bold("›") + text
		}
		rows = append(rows, row)
	}
	if cursor := b.area.Cursor(); cursor != nil {
		up, column = len(rows)-1-cursor.Y, cursor.X
	}
	if b.searches && len(b.popup) == 0 {
		return append(rows, dim(CutToFit("  no earlier prompt has this text", columns))), up + 1, column
	}
	if !b.shows() {
		return rows, up, column
	}
	first := max(0, b.selected-mostPopup+1)
	shown := b.popup[first:min(len(b.popup), first+mostPopup)]
	width := 0
	for _, c := range shown {
		width = max(width, displaywidth.String(Line(c.Text)))
	}
	for i, c := range shown {
		text := Line(c.Text) // a file's name may contain anything
		row := CutToFit("  "+text+strings.Repeat(" ", max(0, width-displaywidth.String(text)))+"  "+Line(c.Note), columns)
		if first+i == b.selected {
			row = bold(strings.TrimRight(row, " "))
		} else {
			row = dim(strings.TrimRight(row, " "))
		}
		rows = append(rows, row)
	}
	return rows, up + len(shown), column
}
