//go:build !linux

package project

// machineID returns the id of this installation of the system, or "" where it is not known.
func machineID() string { return "" }
