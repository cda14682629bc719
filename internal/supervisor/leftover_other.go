//go:build !unix

package supervisor

import "github.com/duet-rpc/duet-rpc/internal/store"

// KillAgent does nothing: there are no executors here.
func KillAgent(store.Process) {}
