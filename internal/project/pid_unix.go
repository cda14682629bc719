//go:build unix

package project

import (
	"os"
	"strconv"
)

func writePID(path string) error {
	return os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
}
