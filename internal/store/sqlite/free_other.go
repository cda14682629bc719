//go:build !unix

package sqlite

func freeBytes(string) int64 { return -1 }
