//go:build !linux

package storetest

// InMemory does nothing here: only Linux has a file system in memory at a known place.
func InMemory() {}
