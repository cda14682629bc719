//go:build unix && !linux

package main_test

// processes cannot be told.
func (s *site) processes() []string { return nil }
