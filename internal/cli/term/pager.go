package term

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// The pager for long texts.

// Paging is a text in a running pager.
type Paging struct {
	done <-chan struct{}
	stop context.CancelFunc
}

// Done returns a channel that is closed when the pager has ended.
func (p Paging) Done() <-chan struct{} { return p.done }

// Stop asks the pager to end.
func (p Paging) Stop() { p.stop() }

// StartPager shows a text in the pager that $PAGER names, or in less. If neither exists, or
// out is not a terminal with cursor control, it prints the text. All characters must be
// visible already.
func StartPager(out io.Writer, text string) Paging {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	cmd := command(ctx)
	if cmd == nil || !IsTerminal(out) {
		_, _ = io.WriteString(out, text)
		stop()
		close(done)
		return Paging{done, stop}
	}
	terminal := fileOf(out)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(Marks.Signs(text)), terminal, terminal
	go func() {
		defer close(done)
		defer stop()
		if err := cmd.Run(); cmd.ProcessState == nil { // the pager did not start
			_, _ = io.WriteString(out, text)
			fmt.Fprintf(out, "— the pager could not be started: %s\n", Line(err.Error()))
		}
	}()
	return Paging{done, stop}
}

// Page is StartPager for a command with nothing else to do: it waits for the end. Interrupts
// go to the pager.
func Page(out io.Writer, text string) error {
	if !IsTerminal(out) {
		_, err := io.WriteString(out, text)
		return err
	}
	signal.Ignore(os.Interrupt)
	<-StartPager(out, text).done
	return nil
}

// ShowsColors reports whether the pager passes colours on to the terminal.
func ShowsColors() bool {
	named := strings.Fields(cmp.Or(os.Getenv("PAGER"), "less"))
	options := os.Getenv("LESS")
	switch {
	case len(named) == 0 || filepath.Base(named[0]) == "cat":
		return true
	case filepath.Base(named[0]) != "less":
		return false
	}
	for _, argument := range append(strings.Fields(options), named[1:]...) {
		if argument == "--RAW-CONTROL-CHARS" || !strings.HasPrefix(argument, "--") && strings.ContainsAny(argument, "Rr") {
			return true
		}
	}
	return options == ""
}

// command returns the pager's command, or nil.
func command(ctx context.Context) *exec.Cmd {
	if os.Getenv("TERM") == "dumb" { // an editor's terminal: less would warn, wait and read the next input as its commands
		return nil
	}
	var cmd *exec.Cmd
	named := cmp.Or(strings.TrimSpace(os.Getenv("PAGER")), "less")
	if shell, err := exec.LookPath("sh"); err == nil && named != "less" {
		cmd = exec.CommandContext(ctx, shell, "-c", named)
	} else if program, err := exec.LookPath(named); err == nil {
		cmd = exec.CommandContext(ctx, program)
	} else {
		return nil
	}
	cmd.Env = os.Environ()
	if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX") // quit if the text fits on one screen, and keep it there; with colours
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the pager resets the terminal
	cmd.WaitDelay = time.Second
	return cmd
}

// The picker: the user chooses a line by typing a few letters.

// shownAtMost is how many lines are shown at once.
const shownAtMost = 12

// Pick shows lines on out and returns the index of the line that the user chooses with keys
// from in, or -1. It returns at the latest at the end of the input. It checks ctx only after a
// key.
func Pick(ctx context.Context, in, out *os.File, lines []string) (chosen int, err error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return -1, fmt.Errorf("reading keys from the terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }()
	columns, rows, ok := Size(out)
	if !ok {
		columns, rows = 80, 24
	}
	l := newList(lines, columns, min(shownAtMost, max(1, rows-2)))
	shown := Terminal(out)
	fmt.Fprint(shown, l.screen())
	defer func() { fmt.Fprint(shown, l.cleared()) }()
	keys := make([]byte, 256)
	for {
		n, err := in.Read(keys)
		if ctx.Err() != nil {
			return -1, ctx.Err()
		}
		if n > 0 {
			if done, chosen := l.take(keys[:n]); done {
				return chosen, nil
			}
			fmt.Fprint(shown, l.cleared()+l.screen())
		}
		if err == io.EOF || err != nil && n == 0 {
			return -1, nil
		}
	}
}

// list is the visible part of the lines, and the typed filter.
type list struct {
	lines   []string
	columns int
	rows    int // number of visible lines

	typed string
	fit   []int // indexes of the lines that match the filter
	at    int   // index in fit of the marked line
	tall  int   // number of rows above the cursor
}

func newList(lines []string, columns, rows int) *list {
	l := &list{lines: lines, columns: columns, rows: rows}
	l.narrow()
	return l
}

// narrow finds the lines that contain all typed words, ignoring case.
func (l *list) narrow() {
	l.fit, l.at = l.fit[:0], 0
	words := strings.Fields(strings.ToLower(l.typed))
next:
	for i, line := range l.lines {
		lower := strings.ToLower(line)
		for _, word := range words {
			if !strings.Contains(lower, word) {
				continue next
			}
		}
		l.fit = append(l.fit, i)
	}
}

// take handles input from the terminal. done means that the picker is closed; chosen is the
// chosen line, or -1.
func (l *list) take(keys []byte) (done bool, chosen int) {
	text := string(keys)
	for text != "" {
		size := 1
		switch {
		case strings.HasPrefix(text, "\x1b[A"), strings.HasPrefix(text, "\x1bOA"):
			l.at, size = max(0, l.at-1), 3
		case strings.HasPrefix(text, "\x1b[B"), strings.HasPrefix(text, "\x1bOB"):
			l.at, size = min(max(0, len(l.fit)-1), l.at+1), 3
		case strings.HasPrefix(text, "\x1b[") && len(text) > 2:
			size = len(text) // skip another special key
		case text[0] == 16: // C-p
			l.at = max(0, l.at-1)
		case text[0] == 14: // C-n
			l.at = min(max(0, len(l.fit)-1), l.at+1)
		case text[0] == 3, text[0] == 4, text[0] == 7, text[0] == 27: // C-c, C-d, C-g, ESC
			return true, -1
		case text[0] == '\r' || text[0] == '\n':
			if len(l.fit) > 0 {
				return true, l.fit[l.at]
			}
		case text[0] == 127 || text[0] == 8:
			_, last := utf8.DecodeLastRuneInString(l.typed)
			l.typed = l.typed[:len(l.typed)-last]
			l.narrow()
		case text[0] == 21: // C-u
			l.typed = ""
			l.narrow()
		case text[0] >= 32:
			var r rune
			r, size = utf8.DecodeRuneInString(text)
			if r != utf8.RuneError {
				l.typed += string(r)
				l.narrow()
			}
		}
		text = text[size:]
	}
	return false, -1
}

// screen returns the picker's output, with the cursor after the filter.
func (l *list) screen() string {
	var b strings.Builder
	first := max(0, l.at-l.rows+1)
	shown := l.fit[first:min(len(l.fit), first+l.rows)]
	for i, n := range shown {
		mark := "  "
		if first+i == l.at {
			mark = "> "
		}
		b.WriteString(CutToFit(mark+l.lines[n], l.columns-1) + "\r\n")
	}
	l.tall = len(shown)
	b.WriteString(CutToFit(fmt.Sprintf("%d/%d ❯ %s", len(l.fit), len(l.lines), Line(l.typed)), l.columns-1))
	return b.String()
}

// cleared returns the output that removes the picker from the screen.
func (l *list) cleared() string {
	up := ""
	if l.tall > 0 {
		up = fmt.Sprintf("\x1b[%dA", l.tall)
	}
	return "\r" + up + "\x1b[J"
}
