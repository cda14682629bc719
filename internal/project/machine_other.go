//go:build !linux

package project

// machineID returns the id of this installation of the system, or "" if unknown.
func machineID() string { return "" }
