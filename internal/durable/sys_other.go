//go:build !unix

package durable

import "os"

const nonBlocking = 0

// SyncDirectory does nothing: this system writes names to the disk in order.
func SyncDirectory(string) error { return nil }

func syncFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return err
	}
	return f.Sync()
}

func isNoDirectory(error) bool { return false }
