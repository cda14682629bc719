//go:build !unix

package supervisor

import "github.com/duet-rpc/duet-rpc/internal/store"

// KillAgents does nothing: there are no executors here.
func KillAgents([]store.Process) {}
