//go:build !unix

package sqlite

// blocker returns 0: this system does not report lock holders.
func blocker(string) int { return 0 }
