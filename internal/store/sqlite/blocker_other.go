//go:build !unix

package sqlite

func blocker(string) int { return 0 }
