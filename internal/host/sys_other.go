//go:build !linux

package host

import "runtime/debug"

func restMemory() { debug.FreeOSMemory() }

func mapProgram() {}
