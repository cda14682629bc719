//go:build !linux

package main_test

// requireInputRead does nothing: only Linux reports the unread bytes of a pipe to the test.
func (p *process) requireInputRead() {}

// requireDescriptorsTaken does nothing: only Linux has /proc.
func (p *process) requireDescriptorsTaken() {}
