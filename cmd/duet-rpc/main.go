// Command duet-rpc is the process that an editor starts to work with coding
// agents: JSON-RPC 2.0 over stdio. This package parses the command line and
// wires the parts; what they do stands in the packages they come from.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
)

// version is set by the linker for a release.
var version = ""

func main() {
	cmd := newRootCommand()
	err := cmd.Execute()
	var status exitStatus
	switch {
	case errors.As(err, &status):
		os.Exit(int(status))
	case err != nil:
		fmt.Fprintf(os.Stderr, "duet-rpc: %s\n", shown.Exact(err.Error())) // it may quote anybody
		os.Exit(1)
	}
}

// An exitStatus ends the process with a status, and nothing more is said.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// buildVersion is the version of this binary.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}
