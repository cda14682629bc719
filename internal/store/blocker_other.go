//go:build !unix

package store

func blocker(string) int { return 0 }
