package project

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func identify(path string, info fs.FileInfo) (Identity, error) {
	data, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return Identity{}, fmt.Errorf("the system does not say which directory %s is", path)
	}
	return Identity{Born: data.CreationTime.Nanoseconds()}, nil
}

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

// writePID does nothing: on this system a lock keeps others from reading the file, so a
// HeldError never has the holder's process id.
func writePID(string) error { return nil }

func hasProcess(int) bool { return false }

// ofSystem reports whether a directory belongs to the system.
func ofSystem(dir string) bool {
	for _, name := range []string{"SystemRoot", "ProgramFiles", "ProgramFiles(x86)", "ProgramData", "PUBLIC"} {
		if of := os.Getenv(name); of != "" && (SameFile(dir, of) || isBelow(dir, of)) {
			return true
		}
	}
	return false
}

// networkFileSystem returns "": this system does not report whether a directory is on a network.
func networkFileSystem(string) string { return "" }
