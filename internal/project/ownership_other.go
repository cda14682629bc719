//go:build !unix

package project

import "io/fs"

// There are no such flags here.
const (
	NoFollow    = 0
	NonBlocking = 0
)

// None of this is part of a file's information here. What keeps others out is that
// the user's directories are inherited by what is in them.

// ownershipOwnerOf knows nobody.
func ownershipOwnerOf(fs.FileInfo) (uid int, known bool) { return 0, false }

// IsForeign is always false.
func IsForeign(fs.FileInfo) bool { return false }

// sharedWrite is always false.
func sharedWrite(fs.FileInfo) bool { return false }

// WritableByOthers is always false.
func WritableByOthers(fs.FileInfo) bool { return false }
