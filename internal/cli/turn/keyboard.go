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
	isKey bool // the terminal has not shown it
	err   error
}

// keyboard reads answers from the terminal: lines or keys, one at a time, and only when asked
// for. A view keeps one for all turns, because a read that was started for a question of an
// earlier turn cannot be cancelled.
type keyboard struct {
	terminal     *os.File // nil: there is none
	typed        chan typed
	want         chan bool // requests a key (true) or a line
	begin        sync.Once // starts the reading goroutine
	lineIsFor    string    // the id of the question for which input was requested; or empty
	restoreLines func()    // restores line mode; nil: the terminal is in line mode
}

func newKeyboard() *keyboard {
	k := &keyboard{typed: make(chan typed), want: make(chan bool, 1)}
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
	if !key {
		k.lines()
	} else if restore := term.EachKey(k.terminal); k.restoreLines == nil { // otherwise a shell may have changed the mode after C-z
		k.restoreLines = restore
	}
	term.DiscardTyped(k.terminal)
	if k.lineIsFor == "" {
		k.lineIsFor = question
		k.want <- key && k.restoreLines != nil
	}
}

// keepListening continues to wait for a key that was already requested.
func (k *keyboard) keepListening() {
	if restore := term.EachKey(k.terminal); k.restoreLines == nil {
		k.restoreLines = restore
	}
}

// lines puts the terminal into line mode with echo.
func (k *keyboard) lines() {
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
	for key := range k.want {
		if key {
			keys := make([]byte, 64)
			n, err := k.terminal.Read(keys)
			text := string(keys[:n])
			if text == endOfInput {
				err = io.EOF
			}
			byLine := term.IsDumb() && strings.HasSuffix(text, "\n") // an editor's terminal sends lines and shows them itself
			k.typed <- typed{strings.TrimSpace(text), !byLine, err}
			continue
		}
		text, err := bufio.NewReader(k.terminal).ReadString('\n')
		if text != "" {
			err = nil
		}
		k.typed <- typed{strings.TrimSpace(text), false, err}
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
