package config

// This file is [[gates]] of a configuration: commands that work of agents is checked
// by, where a prompt names them.

// A Gate is a command that has to succeed. Its directory is relative to that in which the
// agent works.
type Gate struct{ Definition }

// decodeGate reads [[gates]] of a file; what is wrong is noted there.
func decodeGate(top table, source string) (out []Gate) {
	decodeCommand(top, "gates", source, nil, func(_ table, d Definition) { out = append(out, Gate{d}) })
	return out
}

// ShellGate is the gate of a line for the shell that no configuration has.
func ShellGate(shell string) Gate {
	return Gate{Definition{Name: shell, Shell: shell, Timeout: DefaultTimeout}}
}
