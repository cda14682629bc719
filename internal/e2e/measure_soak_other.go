//go:build soak && !linux

package e2e

import "testing"

// Memory returns 0: only Linux reports the memory of a process.
func (p *Process) Memory(testing.TB, string) int { return 0 }

// MemoryOf is Memory for a process id.
func MemoryOf(testing.TB, int, string) int { return 0 }
