//go:build !unix

package project

import "os"

// writable tries it: permissions are lists here, which no mode shows.
func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".duet-writable-*")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}
