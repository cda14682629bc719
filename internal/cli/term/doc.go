// Package term is the terminal of a command: its size, keys and signals; what is printed on it,
// such as tables, JSON and Markdown; lines that are drawn over; a pager; and the choice of a line.
package term
