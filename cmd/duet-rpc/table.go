package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// cellWidth is the most that a table shows of a text, in characters.
const cellWidth = 60

// A table is printed in columns when all rows are there.
type table struct{ w *tabwriter.Writer }

func newTable(out io.Writer, columns ...string) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.row(columns...)
	return t
}

// row adds a row of texts from anywhere.
func (t table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = oneLine(cell)
	}
	fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

func (t table) flush() error { return t.w.Flush() }

// oneLine is text that keeps to its line, in which every character is seen.
func oneLine(text string) string { return shown.Line(text) }

// short is the beginning of text, on one line.
func short(text string) string {
	text = oneLine(text)
	if utf8.RuneCountInString(text) <= cellWidth {
		return text
	}
	return string([]rune(text)[:cellWidth-1]) + "…"
}

// age is how long ago a time was, as it is written in JSON.
func age(written string) string {
	at, err := time.Parse(time.RFC3339Nano, written)
	if err != nil {
		return "-"
	}
	switch d := max(0, time.Since(at)); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// A field is a line of what is known about one thing.
type field struct{ name, value string }

// printFields prints those that have a value.
func printFields(out io.Writer, fields ...field) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		if f.value != "" {
			fmt.Fprintf(w, "%s\t%s\n", f.name, oneLine(f.value))
		}
	}
	return w.Flush()
}

// printBody prints what an agent said below what is known of it.
func printBody(out io.Writer, text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		fmt.Fprintf(out, "\n%s\n", shown.Prose(text))
	}
}
