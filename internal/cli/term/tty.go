package term

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// This file is about the terminal that a command was started on.

// Yes asks a question on the terminal that is standard input, and reads the answer from
// in. No answer is no.
func Yes(in io.Reader, out io.Writer, question string) (bool, error) {
	DiscardTyped(os.Stdin)
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes", nil
}

// IsTerminal reports whether what is written to out, or read from it, is a terminal.
func IsTerminal(file any) bool {
	f := fileOf(file)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// fileOf is the file to which is written what is written to out, by itself or by what
// says so with a method File; nil: there is none.
func fileOf(out any) *os.File {
	switch out := out.(type) {
	case *os.File:
		return out
	case interface{ File() *os.File }:
		return out.File()
	}
	return nil
}

// Size is how many columns and rows the terminal has to which out is written;
// ok is false if it is none, or does not say.
func Size(out io.Writer) (columns, rows int, ok bool) {
	f := fileOf(out)
	if f == nil {
		return 0, 0, false
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	return columns, rows, err == nil && columns > 0 && rows > 0
}

// IsDumb reports whether the terminal can neither move its cursor nor show colours,
// as those of some editors.
func IsDumb() bool { return os.Getenv("TERM") == "dumb" }

// Draws reports whether out is a terminal that can move its cursor, and knows how
// large it is.
func Draws(out io.Writer) bool {
	if term := os.Getenv("TERM"); term == "dumb" || term == "" && runtime.GOOS != "windows" || !IsTerminal(out) {
		return false
	}
	_, _, ok := Size(out)
	return ok
}
