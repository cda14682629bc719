// Package gateconfig is [[gates]] of a configuration: commands that work of agents is checked
// by, where a prompt names them.
package gateconfig

import (
	"github.com/duet-rpc/duet-rpc/internal/config/commandconfig"
	"github.com/duet-rpc/duet-rpc/internal/config/document"
)

// A Gate is a command that has to succeed. Its directory is relative to that in which the
// agent works.
type Gate struct{ commandconfig.Definition }

// Decode reads [[gates]] of a file; what is wrong is noted there.
func Decode(top document.Table, source string) (out []Gate) {
	commandconfig.Decode(top, "gates", source, nil, func(_ document.Table, d commandconfig.Definition) { out = append(out, Gate{d}) })
	return out
}

// Line is the gate of a line for the shell that no configuration has.
func Line(shell string) Gate {
	return Gate{commandconfig.Definition{Name: shell, Shell: shell, Timeout: commandconfig.DefaultTimeout}}
}
