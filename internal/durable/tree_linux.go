package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

// SyncTree writes all files below a directory to the disk. Linux writes those of the whole file
// system: one call instead of one for each file.
func SyncTree(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
