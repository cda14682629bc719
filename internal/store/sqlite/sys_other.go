//go:build !unix

package sqlite

// blocker returns 0: this system does not report lock holders.
func blocker(string) int { return 0 }

// freeBytes returns -1: the free space is unknown on this system.
func freeBytes(string) int64 { return -1 }
