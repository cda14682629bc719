//go:build !unix

package project

import "io/fs"

// This system has no such flags.
const (
	NoFollow    = 0
	NonBlocking = 0
)

// On this system, file information does not contain owners. Protection comes from the inherited
// permissions of the user's directories.

// ownershipOwnerOf never knows the owner.
func ownershipOwnerOf(fs.FileInfo) (uid int, known bool) { return 0, false }

// IsForeign is always false.
func IsForeign(fs.FileInfo) bool { return false }

// sharedWrite is always false.
func sharedWrite(fs.FileInfo) bool { return false }

// WritableByOthers is always false.
func WritableByOthers(fs.FileInfo) bool { return false }
