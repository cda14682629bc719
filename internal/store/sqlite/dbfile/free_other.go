//go:build !unix

package dbfile

// FreeBytes is -1: it is not known on this system.
func FreeBytes(string) int64 { return -1 }
