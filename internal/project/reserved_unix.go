//go:build unix

package project

import (
	"path"
	"slices"
	"strings"
)

// ofSystem reports, by its name, whether a directory belongs to the system.
func ofSystem(dir string) bool {
	dir = strings.TrimPrefix(dir, "/private") // some of them are there on macOS
	switch dir {
	case "/root", "/home", "/Users", "/opt", "/srv", "/mnt", "/media", "/Volumes", "/run", "/run/user", "/run/media", "/nix", "/snap",
		"/usr", "/usr/local", "/usr/src", "/usr/local/src", "/usr/home", "/dev/shm",
		"/var", "/var/tmp", "/var/lib", "/var/cache", "/var/log", "/var/spool", "/var/run", "/var/mail", "/tmp", "":
		return true
	}
	if slices.ContainsFunc([]string{"/usr/src/", "/usr/local/src/", "/usr/home/", "/dev/shm/"}, func(prefix string) bool { return strings.HasPrefix(dir, prefix) }) {
		return false // people work there
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean(dir), "/"), "/")
	switch first {
	case "bin", "sbin", "lib", "lib32", "lib64", "libx32", "boot", "dev", "etc", "proc", "sys", "usr", "System", "Library", "Applications":
		return true
	}
	return false
}
