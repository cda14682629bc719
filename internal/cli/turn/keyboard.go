package turn

import (
	"bufio"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

// typed is a line or a key that the user typed, or the end of the input.
type typed struct {
	text  string
	isKey bool   // the terminal has not shown it
	raw   []byte // the bytes of keys for the prompt box
	err   error
}

// requested is what the next read from the terminal is for.
type requested int

const (
	aLine requested = iota
	aKey
	boxKeys // any number of keys, for the prompt box
)

// theBox stands for the id of a question in lineIsFor: keys were requested for the prompt box.
const theBox = "the prompt box"

// keyboard reads answers from the terminal: lines or keys, one at a time, and only when asked
// for. A view keeps one for all turns, because a read that was started for a question of an
// earlier turn cannot be cancelled.
type keyboard struct {
	terminal     *os.File // nil: there is none
	typed        chan typed
	want         chan requested
	begin        sync.Once     // starts the reading goroutine
	lineIsFor    string        // the id of the question for which input was requested; or empty
	restoreLines func()        // restores line mode; nil: the terminal is in line mode
	showKeys     func()        // turns the echo on again; nil: it is on
	keyIsNext    bool          // the pending request, which was for the box, became one for a key
	early        []byte        // keys for the box that came before a question or a turn was shown
	paste        func(on bool) // switches bracketed paste; nil without a box
}

func newKeyboard() *keyboard {
	k := &keyboard{typed: make(chan typed), want: make(chan requested, 1)}
	if term.IsTerminal(os.Stdin) {
		k.terminal = os.Stdin
	} else if term.IsTerminal(os.Stderr) { // the prompt came from standard input
		if terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			k.terminal = terminal
		}
	}
	return k
}

// listen requests a key or a line as the answer to a question. It discards earlier input.
func (k *keyboard) listen(question string, key bool) {
	k.begin.Do(func() { go k.read() })
	k.echo(true)
	if !key {
		k.lines()
	} else if restore := term.EachKey(k.terminal); k.restoreLines == nil { // otherwise a shell may have changed the mode after C-z
		k.restoreLines = restore
	}
	term.DiscardTyped(k.terminal)
	if k.lineIsFor == theBox {
		if k.paste != nil {
			k.paste(false)
		}
		select {
		case line := <-k.typed: // typed before the question is shown
			k.early, k.lineIsFor = append(k.early, line.raw...), ""
		default:
			k.lineIsFor, k.keyIsNext = question, key && k.restoreLines != nil
		}
	}
	if k.lineIsFor == "" {
		k.lineIsFor = question
		kind := aLine
		if key && k.restoreLines != nil {
			kind = aKey
		}
		k.want <- kind
	}
}

// listenForBox requests keys for the prompt box.
func (k *keyboard) listenForBox() {
	if k.lineIsFor != "" {
		return
	}
	k.begin.Do(func() { go k.read() })
	k.keepListening()
	if k.paste != nil {
		k.paste(true)
	}
	k.lineIsFor = theBox
	k.want <- boxKeys
}

// listenForPrompt requests a line that is a prompt. What was typed before counts.
func (k *keyboard) listenForPrompt() {
	if k.lineIsFor != "" {
		return
	}
	k.begin.Do(func() { go k.read() })
	k.lines()
	k.lineIsFor = theBox
	k.want <- aLine
}

// received returns what was typed as what it is taken for now: the request for keys of the box
// may have become one for the answer to a question.
func (k *keyboard) received(line typed) typed {
	if line.raw != nil && k.lineIsFor != theBox {
		if line.isKey = k.keyIsNext; string(line.raw) == endOfInput {
			line.err = io.EOF
		}
		line.raw = nil
	}
	return line
}

// keepListening continues to wait for a key that was already requested.
func (k *keyboard) keepListening() {
	if restore := term.EachKey(k.terminal); k.restoreLines == nil {
		k.restoreLines = restore
	}
}

// echo turns the echo on or off. It is off while no question is asked, so that keys do not appear
// in the text that the agent is writing.
func (k *keyboard) echo(on bool) {
	switch {
	case on && k.showKeys != nil:
		k.showKeys()
		k.showKeys = nil
	case !on && k.terminal != nil && k.lineIsFor == "" && k.restoreLines == nil && k.showKeys == nil:
		k.showKeys = term.HideKeys(k.terminal)
	}
}

// lines puts the terminal into line mode with echo.
func (k *keyboard) lines() {
	k.echo(true)
	if k.restoreLines != nil {
		k.restoreLines()
		k.restoreLines = nil
	}
}

const endOfInput = "\x04" // what C-d types

// read reads a key or a line whenever one is requested. It discards further input that arrives
// with it, because it was typed before the next question. It ends with the process, because
// nothing else interrupts a read from a terminal.
func (k *keyboard) read() {
	for kind := range k.want {
		if kind != aLine {
			keys := make([]byte, 4096)
			n, err := k.terminal.Read(keys)
			text := string(keys[:n])
			if kind == boxKeys {
				k.typed <- typed{text: strings.TrimSpace(text), raw: keys[:n], err: err}
				continue
			}
			if text == endOfInput {
				err = io.EOF
			}
			byLine := term.IsDumb() && strings.HasSuffix(text, "\n") // an editor's terminal sends lines and shows them itself
			k.typed <- typed{text: strings.TrimSpace(text), isKey: !byLine, err: err}
			continue
		}
		text, err := bufio.NewReader(k.terminal).ReadString('\n')
		if text != "" {
			err = nil
		}
		k.typed <- typed{text: strings.TrimSpace(text), err: err}
	}
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
