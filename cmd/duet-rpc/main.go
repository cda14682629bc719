// Command duet-rpc is the process that an editor starts to work with coding
// agents: JSON-RPC 2.0 over stdio.
package main

import (
	"os"

	"github.com/duet-rpc/duet-rpc/internal/cli"
)

// version is set by the linker for a release.
var version = ""

func main() { os.Exit(cli.Run(version)) }
