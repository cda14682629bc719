//go:build !unix

package dbfile

// Blocker is 0: this system does not say who has a lock.
func Blocker(string) int { return 0 }
