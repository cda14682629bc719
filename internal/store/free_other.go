//go:build !unix

package store

func freeBytes(string) int64 { return -1 }
