//go:build !linux

package main_test

// requireInputRead is for Linux alone; elsewhere the program may be behind.
func (p *process) requireInputRead() {}

// requireDescriptorsTaken cannot check this here.
func (p *process) requireDescriptorsTaken() {}
