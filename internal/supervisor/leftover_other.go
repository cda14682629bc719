//go:build !unix

package supervisor

import "github.com/duet-rpc/duet-rpc/internal/domain"

// KillAgents does nothing: there are no executors here.
func KillAgents([]domain.Process) {}

// runningMarks returns no marks, since KillAgents ends nothing.
func runningMarks([]domain.Process) map[string]bool { return nil }
