//go:build !linux && !darwin

package project

// networkFileSystem returns "": this system does not report whether a directory is on a network.
func networkFileSystem(string) string { return "" }
