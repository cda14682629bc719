// Package terminal keeps the terminals that run, and who watches each.
//
// A terminal belongs to no connection. Its executor owns the program and the PTY
// and reports what the program prints; a [Registry] keeps the end of that and
// tells it to every [View]. A view may have the terminal's descriptor instead:
// then it reads and writes the PTY itself, alone, and the executor does not. A
// terminal of an agent can be watched, and no more.
//
//   - registry.go starts terminals, lists them and passes on what is done to them.
//   - report.go takes what executors report of them.
//   - view.go lets views begin and end; descriptor.go is about those with the descriptor.
//   - scrollback.go is the end of what a terminal printed.
package terminal
