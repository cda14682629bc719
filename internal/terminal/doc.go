// Package terminal manages running terminals and their views.
//
// A terminal is independent of connections. Its executor owns the program and the PTY, and reports
// the output. A [Registry] keeps the last output and sends it to every [View]. A view may get the
// terminal's descriptor instead: it then reads and writes the PTY alone, without the executor. An
// agent's terminal can only be watched.
//
//   - registry.go lists terminals and passes on input; spawn.go starts them.
//   - report.go receives executors' reports.
//   - attach.go and view.go manage views; descriptor.go hands over descriptors.
//   - scrollback.go keeps the last output of a terminal.
package terminal
