//go:build !unix

package config

import (
	"io/fs"
	"os/exec"
)

// ownGroup does nothing: the command alone is ended where there are no groups.
func ownGroup(*exec.Cmd) {}

// readByOthers cannot be told from a mode here.
func readByOthers(fs.FileInfo) bool { return false }
