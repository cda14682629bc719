// Package tty is about the terminal that a command was started on.
package tty

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

// Is reports whether what is written to out, or read from it, is a terminal.
func Is(file any) bool {
	f := File(file)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// File is the file to which is written what is written to out, by itself or by what
// says so with a method File; nil: there is none.
func File(out any) *os.File {
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
	f := File(out)
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
	if term := os.Getenv("TERM"); term == "dumb" || term == "" && runtime.GOOS != "windows" || !Is(out) {
		return false
	}
	_, _, ok := Size(out)
	return ok
}
