package turn

import (
	"bufio"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

// A typed is a line or a key that was typed, or the end of the input.
type typed struct {
	text  string
	isKey bool // which the terminal has not shown
	err   error
}

// A keyboard is where somebody types answers: lines or keys of the terminal, one at
// a time and each when it is asked for. A view has one, since nothing ends a read
// that was begun for a question of an earlier turn.
type keyboard struct {
	terminal  *os.File // nil: there is none
	typed     chan typed
	want      chan bool // asks for a key (true) or a line
	begin     sync.Once // to read
	lineIsFor string    // the question for which a key or a line was asked for; or empty
	asTheyAre func()    // hands keys over as lines again; nil: so they are
}

func newKeyboard() *keyboard {
	k := &keyboard{typed: make(chan typed), want: make(chan bool, 1)}
	if term.IsTerminal(os.Stdin) {
		k.terminal = os.Stdin
	} else if term.IsTerminal(os.Stderr) { // the prompt came on standard input
		if terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			k.terminal = terminal
		}
	}
	return k
}

// listen asks for a key or a line, as an answer to a question. What was typed before
// is thrown away.
func (k *keyboard) listen(question string, key bool) {
	k.begin.Do(func() { go k.read() })
	if !key {
		k.lines()
	} else if restore := term.EachKey(k.terminal); k.asTheyAre == nil { // else a shell may have changed it since: C-z
		k.asTheyAre = restore
	}
	term.DiscardTyped(k.terminal)
	if k.lineIsFor == "" {
		k.lineIsFor = question
		k.want <- key && k.asTheyAre != nil
	}
}

// goOnListening is listen for a key that was asked for before, and is still to come.
func (k *keyboard) goOnListening() {
	if restore := term.EachKey(k.terminal); k.asTheyAre == nil {
		k.asTheyAre = restore
	}
}

// lines has the terminal hand over lines, and show them as they are typed.
func (k *keyboard) lines() {
	if k.asTheyAre != nil {
		k.asTheyAre()
		k.asTheyAre = nil
	}
}

const endOfInput = "\x04" // as C-d types it

// read reads a key or a line of the terminal whenever one is asked for. What came
// with it is thrown away: it was typed before the next question was asked. It ends
// with the process: nothing else ends a read of a terminal.
func (k *keyboard) read() {
	for key := range k.want {
		if key {
			keys := make([]byte, 64)
			n, err := k.terminal.Read(keys)
			text := string(keys[:n])
			if text == endOfInput {
				err = io.EOF
			}
			byLine := term.IsDumb() && strings.HasSuffix(text, "\n") // an editor sends lines, which it shows itself
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

// fitting is what stands before the cursor, broken between its parts where a
// terminal has so many columns; 0: it has not said.
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
