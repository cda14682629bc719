//go:build !linux

package main_test

import "testing"

// requireInputRead is for Linux alone; elsewhere the program may be behind.
func (p *process) requireInputRead() {}

// memory is not known.
func (p *process) memory(testing.TB, string) int { return 0 }

// requireDescriptorsTaken cannot be told.
func (p *process) requireDescriptorsTaken() {}
