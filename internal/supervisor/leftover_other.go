//go:build !unix

package supervisor

import "github.com/duet-rpc/duet-rpc/internal/domain"

// KillAgents does nothing: there are no executors here.
func KillAgents([]domain.Process) {}
