//go:build !unix

package project

import "os"

// ofSystem reports whether a directory belongs to the system.
func ofSystem(dir string) bool {
	for _, name := range []string{"SystemRoot", "ProgramFiles", "ProgramFiles(x86)", "ProgramData", "PUBLIC"} {
		if of := os.Getenv(name); of != "" && (SameFile(dir, of) || isBelow(dir, of)) {
			return true
		}
	}
	return false
}
