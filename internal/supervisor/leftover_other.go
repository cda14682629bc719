//go:build !unix

package supervisor

import "github.com/duet-rpc/duet-rpc/internal/domain"

// KillAgents does nothing: this system has no executors.
func KillAgents([]domain.Process) {}

// runningMarks returns no marks, because KillAgents ends nothing.
func runningMarks([]domain.Process) map[string]bool { return nil }

func isGone(int) bool { return false }
