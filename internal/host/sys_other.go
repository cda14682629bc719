//go:build !linux

package host

import "runtime/debug"

// RestMemory returns memory that an idle process does not need.
func RestMemory() { debug.FreeOSMemory() }

func mapProgram() {}
