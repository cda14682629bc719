//go:build soak && !linux

package main_test

import "testing"

// memory returns 0: only Linux reports the memory of a process.
func (p *process) memory(testing.TB, string) int { return 0 }

func memoryOf(testing.TB, int, string) int { return 0 }
