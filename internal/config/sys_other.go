//go:build !unix

package config

import (
	"io/fs"
	"os/exec"
)

// ownGroup does nothing: without process groups only the command itself is ended.
func ownGroup(*exec.Cmd) {}

// readByOthers reports false: modes do not show it on this system.
func readByOthers(fs.FileInfo) bool { return false }

const nonBlocking = 0
