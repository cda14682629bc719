//go:build !unix

package sqlite

// freeBytes returns -1: the free space is unknown on this system.
func freeBytes(string) int64 { return -1 }
