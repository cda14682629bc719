//go:build !unix

package sqlite

// freeBytes is -1: it is not known on this system.
func freeBytes(string) int64 { return -1 }
