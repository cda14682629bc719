//go:build !unix

package project

import (
	"io/fs"
	"os"
)

// noFollow has no counterpart here.
const noFollow = 0

// foreign cannot be told from the file's information here. What keeps others
// out is that the user's directories are inherited by what is in them.
func foreign(fs.FileInfo) bool { return false }

// links is no part of a file's information here.
func links(fs.FileInfo) uint64 { return 1 }

func owner(fs.FileInfo) (uid int, known bool) { return 0, false }

// WritableByOthers cannot be told from the file's information here.
func WritableByOthers(fs.FileInfo) bool { return false }

func sharedWrite(fs.FileInfo) bool { return false }

// writable tries it: permissions are lists here, which no mode shows.
func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".duet-writable-*")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}
